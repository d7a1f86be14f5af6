"""From an API's answer to its items: what the case files and the standards ask for, without a server."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.decide.cursor import Form, Id, Time
from recrawl.decide.paging import Place, first
from recrawl.declare import Api, NextLink, Offset, Since
from recrawl.discover.api import Unusable, dumped, next_link, read_answer, request_for
from recrawl.model.fetched import Answer

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
URL = "https://api.example/items"


def an_answer(body: bytes | str, *headers: tuple[str, str], status: int = 200) -> Answer:
    data = body.encode() if isinstance(body, str) else body
    return Answer(URL, URL, status, (("Content-Type", "application/json"), *headers), data, AT, 0.1)


def an_api(**options: Any) -> Api:
    return Api(URL, **{"items": "items", "id": "id", **options})


def reaches(*values: Any, zone: str = "UTC") -> list[Any]:
    """What each value adds to a cursor."""
    body = json.dumps({"items": [{"id": n, "t": value} for n, value in enumerate(values)]})
    api = an_api(updated="t", since=Since("since"))
    return [item.reach for item in read_answer(an_answer(body), api, first(None), zone).items]


@pytest.mark.parametrize(
    "header",
    [
        '</items?page=2>; rel="next"',
        "</items?page=2>; rel=next",
        '</items?page=1>; rel="prev", </items?page=2>; rel="next"',
        '</items?page=2>; title="a, <b>; c"; rel="last next"',
        "</items?page=1>;rel=first,</items?page=2>;REL=NEXT",
        '<>; rel="x", </items?page=2> ; rel = "next" ; type="text/html"',
    ],
)
def test_the_next_link_is_found_in_every_form_of_the_header(header: str) -> None:
    assert next_link(an_answer("{}", ("Link", header))) == "/items?page=2"


@pytest.mark.parametrize("header", ['</a>; rel="prev"', "next", "</a>", '</a>; title="next"', '</a>; rev="next"', "<"])
def test_another_link_is_no_next_link(header: str) -> None:
    assert next_link(an_answer("{}", ("Link", header))) is None


def test_times_are_read_in_the_forms_that_apis_use() -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert reaches("2026-01-02T12:00:00Z", "2026-01-02T12:00:00.750Z", "2026-01-02T13:00:00+01:00") == [Time(noon)] * 3
    assert reaches("2026-01-02") == [Time(datetime(2026, 1, 2, tzinfo=UTC), Form.DATE)]
    assert reaches(1767355200, "1767355200", 1767355200.5) == [Time(noon, Form.SECONDS)] * 3
    assert reaches(1767355200000) == [Time(noon, Form.MILLISECONDS)]
    assert reaches("2026-01-02T20:00:00", zone="Asia/Shanghai") == [Time(noon)]


@pytest.mark.parametrize("value", [None, True, "", "soon", [], {}, -5, 10**15, 10**400, "9" * 5000, "0000-00-00"])
def test_what_is_no_time_is_not_taken_for_one(value: Any) -> None:
    assert reaches(value) == [None]


def test_one_half_of_a_surrogate_pair_costs_no_other_item() -> None:
    found = read_answer(an_answer('{"items": [{"id": 1, "n": "\\ud800"}, {"id": 2}]}'), an_api(), first(None), "UTC")
    assert [item.id for item in found.items] == ["1", "2"]
    assert dumped(found.items[0].value) == b'{"id":1,"n":"?"}'


def test_of_a_key_that_comes_twice_the_last_one_counts() -> None:
    found = read_answer(an_answer('{"items": [{"id": 1, "id": 2}]}'), an_api(), first(None), "UTC")
    assert [item.id for item in found.items] == ["2"]


def test_an_id_can_have_any_number_of_digits() -> None:
    body = '{"items": [{"id": 9007199254740993}, {"id": 123456789012345678901234567890}, {"id": 12.0}, {"id": "007"}]}'
    found = read_answer(an_answer(body), an_api(since=Since("after")), first(None), "UTC")
    assert [item.id for item in found.items] == ["9007199254740993", "123456789012345678901234567890", "12", "007"]
    assert found.items[1].reach == Id(123456789012345678901234567890)


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"", b"null", b"3", b'"items"', b"{" * 5000, b"\x1f\x8b\x08"])
def test_no_answer_of_any_kind_is_more_than_unusable(body: bytes) -> None:
    with pytest.raises(Unusable):
        read_answer(an_answer(body), an_api(), first(None), "UTC")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "t", "items", "x"]), inner),
    max_leaves=20,
)


@given(VALUES)
def test_whatever_json_an_answer_holds_reading_it_gives_items_or_a_reason(value: Any) -> None:
    api = an_api(items="items || @", updated="t", since=Since("s"), pages=Offset(total="x"))
    try:
        found = read_answer(an_answer(json.dumps(value)), api, Place(0), "UTC")
    except Unusable:
        return
    for item in found.items:
        assert item.id is None or ("\0" not in item.id and item.id.encode())
        assert dumped(item.value).decode()


def test_parameters_take_the_place_of_those_in_the_address() -> None:
    api = Api(f"{URL}?fields=a,b&limit=5", id="id")
    request = request_for(api, {"limit": 50}, None, {"params": {"tag": ["x", "y"]}, "json": {}, "headers": {}})
    assert request.url == f"{URL}?fields=a%2Cb&tag=x&tag=y&limit=50"
    assert request.method == "GET"


def test_a_parameter_of_the_body_stands_under_its_keys_and_the_declaration_stays_as_it_is() -> None:
    declared = {"query": "{}", "variables": {"first": 5}}
    api = Api(URL, id="id", method="POST", json=declared)
    revealed = {"params": {}, "json": declared, "headers": {}}
    request = request_for(api, {"json:variables.after": "x", "json:deep.er": 1}, None, revealed)
    assert json.loads(request.body or b"") == {
        "query": "{}",
        "variables": {"first": 5, "after": "x"},
        "deep": {"er": 1},
    }
    assert declared == {"query": "{}", "variables": {"first": 5}}


def test_a_next_link_is_asked_for_as_it_came() -> None:
    api = Api(f"{URL}?limit=5", id="id", pages=NextLink())
    revealed = {"params": {"a": 1}, "json": {}, "headers": {"X": "y"}}
    request = request_for(api, {}, f"{URL}?page=2", revealed)
    assert request.url == f"{URL}?page=2"
    assert ("X", "y") in request.headers

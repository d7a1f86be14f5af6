"""Reading JSON APIs, end to end: a real server that pages and misbehaves, and what is in the database afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from recrawl.declare import (
    Adaptive,
    AfterId,
    Api,
    Basic,
    Bearer,
    Deletion,
    NextLink,
    NextToken,
    Offset,
    PageNumber,
    Record,
    Since,
    Source,
    css,
    env,
)
from recrawl.declare.paging import Paging
from recrawl.errors import Misuse
from recrawl.run import wire
from recrawl.run.engine import Ending, Result
from recrawl.run.wire import Declared, sync_source
from recrawl.store import audit
from recrawl.store.database import Store
from recrawl.store.tables import metadata
from tests.support.scripted import Reply, ScriptedSite
from tests.support.scripted_api import Call, Row, ScriptedApi


class Item(Record, table="items", key="id", history=True):
    id: int
    name: str


class Named(Record, table="items", key="id", history=True):
    id: int
    name: str
    colour: str | None


class Thing(Record, table="things", key="name"):
    name: str = css("h1::text")


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedApi]:
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")
    with ScriptedApi(most=10) as running:
        yield running


@pytest.fixture
def store(empty: Store) -> Store:
    return empty


def row(number: int, updated: str = "2026-01-01T00:00:00Z", **values: Any) -> Row:
    return {"id": number, "name": f"item {number}", "updated": updated, **values}


def rows(count: int) -> list[Row]:
    return [row(number) for number in range(1, count + 1)]


def source(
    api: ScriptedApi, path: str = "offset", /, *, policies: dict[str, Any] | None = None, **finder: Any
) -> Source:
    options: dict[str, Any] = {"items": "items", "id": "id", "pages": Offset(total="total"), **finder}
    given = {"read": Item, "forced_looks": 0.0, "max_attempts": 2, **(policies or {})}
    return Source("shop", find=Api(f"{api.url}/{path}", **options), **given)


def sync(declared: Source, store: Store, **options: Any) -> Result:
    return asyncio.run(sync_source(Declared(declared, "test"), store, **options))


def found(store: Store, sql: str) -> list[Any]:
    """The first column of a query."""
    with store.read() as connection:
        return [row[0] for row in connection.execute(text(sql))]


def ids(store: Store) -> set[int]:
    return set(found(store, "SELECT id FROM items WHERE _deleted_at IS NULL"))


def events(store: Store) -> list[str]:
    """What was noted of paging, in order."""
    told = found(store, "SELECT data FROM events WHERE kind = 'paging' ORDER BY seq")
    return [str((json.loads(data) if isinstance(data, str) else data)["what"]) for data in told]


def pass_time(span: timedelta) -> None:
    wire._VIRTUAL.ahead += span


_RANDOM = random.Random(os.environ.get("RECRAWL_SEED"))

STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "offset": ("offset", {"pages": Offset()}),
    "offset and total": ("offset", {"pages": Offset(total="total")}),
    "page number": ("pages", {"pages": PageNumber(size=7)}),
    "page number and last": ("pages", {"pages": PageNumber(last="last")}),
    "token": ("token", {"pages": NextToken("next")}),
    "link header": ("link", {"pages": NextLink()}),
    "link in the answer": ("link", {"pages": NextLink("links.next")}),
    "after id": ("after", {"pages": AfterId()}),
    "graphql": (
        "graphql",
        {
            "items": "data.things.edges[].node",
            "method": "POST",
            "json": {"query": "{ things }", "variables": {"first": 4}},
            "pages": NextToken("data.things.pageInfo.endCursor", "json:variables.after"),
        },
    ),
}


# --- what an API can do wrong ---


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply("<html><h1>Maintenance</h1></html>", headers={"Content-Type": "text/html"}), "no_json"),
        (Reply('{"items": [1, 2'), "no_json"),
        (Reply('{"items": [NaN]}'), "no_json"),
        (Reply("[" * 100_000), "no_json"),
        (Reply('{"error": {"code": 17, "message": "try later"}}'), "error"),
        (Reply('{"items": [], "errors": [{"message": "half of it failed"}]}'), "error"),
        (Reply('{"data": []}'), "no_items"),
        (Reply('{"items": null, "total": 3}'), "no_items"),
        (Reply('{"items": {"id": 1}}'), "no_items"),
    ],
)
def test_an_answer_without_items_is_a_trouble_and_no_empty_list(
    api: ScriptedApi, sqlite_store: Store, reply: Reply, kind: str
) -> None:
    api.add(*rows(3))
    sync(source(api), sqlite_store)
    api.on_answer = lambda _number, _call: reply
    result = sync(source(api), sqlite_store)
    assert (result.ending, result.complete) == (Ending.NOTHING, False)
    assert result.troubles[-1].kind == kind
    assert found(sqlite_store, "SELECT count(*) FROM members WHERE dropped IS NULL") == [3]
    assert found(sqlite_store, "SELECT signature FROM dead_letters") == [f"discover:{kind}"]
    api.on_answer = lambda _number, _call: None
    assert sync(source(api), sqlite_store).complete


def test_null_is_an_empty_list_where_the_total_says_so(api: ScriptedApi, sqlite_store: Store) -> None:
    api.on_answer = lambda _number, _call: Reply('{"items": null, "total": 0}')
    assert sync(source(api), sqlite_store).complete


Answer = Callable[[int, Call], Reply | None]


def the_same_for_ever(_number: int, _call: Call) -> Reply:
    return Reply(json.dumps({"items": rows(3), "next": "t:1", "total": 9, "last": 9}))


def always_another(number: int, _call: Call) -> Reply:
    return Reply(json.dumps({"items": [], "next": f"t:{number}", "total": 900}))


def nothing_in_the_middle(_number: int, call: Call) -> Reply | None:
    there = call.values.get("offset", "0") == "0" and call.values.get("page", "1") == "1"
    return None if there else Reply(json.dumps({"items": [], "total": 25, "last": 3}))


def another_site(_number: int, _call: Call) -> Reply:
    return Reply(json.dumps({"items": rows(2), "next": "https://elsewhere.example/items?page=2"}))


@pytest.mark.parametrize(
    ("path", "pages", "answers", "kind"),
    [
        ("offset", Offset(), the_same_for_ever, "repeats"),
        ("pages", PageNumber(), the_same_for_ever, "repeats"),
        ("pages", PageNumber(last="last"), the_same_for_ever, "repeats"),
        ("token", NextToken("next"), the_same_for_ever, "repeats"),
        ("token", NextToken("next"), always_another, "endless"),
        ("offset", Offset(total="total"), always_another, "empty_page"),
        ("offset", Offset(total="total"), nothing_in_the_middle, "empty_page"),
        ("pages", PageNumber(last="last"), nothing_in_the_middle, "empty_page"),
        ("link", NextLink("next"), another_site, "off_site"),
        ("token", NextToken("items"), the_same_for_ever, "no_token"),
    ],
)
def test_a_pager_that_leads_nowhere_is_stopped_and_the_cycle_is_incomplete(
    api: ScriptedApi, sqlite_store: Store, path: str, pages: Paging, answers: Answer, kind: str
) -> None:
    api.add(*rows(25))
    api.on_answer = answers
    result = sync(source(api, path, pages=pages), sqlite_store)
    assert not result.complete
    assert {trouble.kind for trouble in result.troubles} == {kind}
    assert len(api.calls()) < 300


def test_a_list_without_a_total_ends_at_an_empty_answer_and_that_is_noted(
    api: ScriptedApi, sqlite_store: Store
) -> None:
    api.add(*rows(25))

    def no_total(number: int, call: Call) -> Reply:
        start = int(call.values["offset"])
        return Reply(json.dumps({"total": None, "items": rows(25)[start : start + 10]}))

    api.on_answer = no_total
    assert sync(source(api), sqlite_store).complete
    assert len(ids(sqlite_store)) == 25
    assert events(sqlite_store) == ["no_total"]


def test_an_error_behind_the_last_page_is_its_end(api: ScriptedApi, sqlite_store: Store) -> None:
    api.add(*rows(20))
    api.on_answer = lambda _number, call: Reply("{}", 404) if call.values.get("page") == "3" else None
    assert sync(source(api, "pages", pages=PageNumber()), sqlite_store).complete
    assert (len(ids(sqlite_store)), events(sqlite_store)) == (20, ["past_end"])


def test_an_expired_token_begins_the_list_again(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(45))
    api.on_answer = lambda number, _call: Reply('{"error": "expired"}', 410) if number == 3 else None
    assert sync(source(api, "token", pages=NextToken("next")), store).complete
    assert (len(ids(store)), events(store)) == (45, ["token_expired"])


def test_tokens_that_always_expire_are_given_up(api: ScriptedApi, sqlite_store: Store) -> None:
    api.add(*rows(45))
    api.on_answer = lambda _number, call: Reply('{"errors": ["bad cursor"]}') if "cursor" in call.values else None
    result = sync(source(api, "token", pages=NextToken("next")), sqlite_store)
    assert not result.complete
    assert [trouble.kind for trouble in result.troubles] == ["token_expired"]
    assert len(api.calls()) == 6


def test_items_removed_while_they_are_paged_hide_no_other(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(50))

    def remove(number: int, _call: Call) -> None:
        if number == 3:
            api.remove(1, 2, 3)

    api.on_answer = remove
    assert sync(source(api), store).complete
    assert set(range(4, 51)) <= ids(store)
    assert "moved" in events(store)


def test_items_touched_while_they_are_paged_hide_no_other(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(50))
    api.order = lambda row: (row["updated"], row["id"])

    def touch(number: int, _call: Call) -> None:
        if number in (3, 4):
            api.add(row(number, f"2026-02-0{number}T00:00:00Z", name="touched"))

    api.on_answer = touch
    sync(source(api), store)
    assert ids(store) == set(range(1, 51))


def test_items_without_an_id_are_kept_as_dead_letters_and_the_others_go_on(api: ScriptedApi, store: Store) -> None:
    bad = [{"name": "none"}, {"id": None, "name": "null"}, {"id": True, "name": "yes"}, {"id": ["x"]}, {"id": "a\0b"}]
    api.on_answer = lambda _number, _call: Reply(json.dumps({"total": 7, "items": [*rows(1), *bad, *rows(2)[1:]]}))
    assert sync(source(api), store).complete
    assert ids(store) == {1, 2}
    assert found(store, "SELECT signature FROM dead_letters") == ["discover:no_id"]


def test_an_item_that_is_no_valid_record_is_judged_once_until_it_changes(api: ScriptedApi, store: Store) -> None:
    api.add(row(1), row(2, name=None))
    assert sync(source(api), store).progress.counts["invalid"] == 1
    again = sync(source(api), store)
    assert again.progress.looked_at == 0
    api.add(row(2))
    sync(source(api), store)
    assert ids(store) == {1, 2}
    assert found(store, "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL") == [0]


def test_retry_after_in_the_middle_goes_on_at_the_answer_that_was_asked_for(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(35))
    api.on_answer = lambda number, _call: Reply("", 429, {"Retry-After": "30"}) if number == 3 else None
    assert sync(source(api), store).ending is Ending.FINISHED
    assert [call.values["offset"] for call in api.calls()] == ["0", "10", "20", "20", "30"]


def test_one_dead_host_neither_holds_the_run_nor_loses_its_work(api: ScriptedApi, store: Store) -> None:
    with ScriptedSite() as site:
        site["/a"] = Reply("<h1>a</h1>")
        for number, url in enumerate((f"{site.url}/a", "http://127.0.0.1:9/b", f"{api.url}/c")):
            api.add(row(number, url=url))
        declared = source(api, link="url", policies={"read": Thing, "max_attempts": 5})
        result = sync(declared, store)
    assert result.ending in (Ending.WAITING, Ending.FAILURES)
    assert found(store, "SELECT name FROM things") == ["a"]
    state = found(store, "SELECT state FROM tasks WHERE host = '127.0.0.1:9' AND kind = 'visit'")
    assert state in (["failed"], ["dead"])


# --- what it should do ---


@pytest.mark.parametrize(("path", "finder"), STYLES.values(), ids=list(STYLES))
def test_every_way_of_paging_finds_all_items_and_the_second_time_makes_no_work(
    api: ScriptedApi, store: Store, path: str, finder: dict[str, Any]
) -> None:
    api.add(*rows(25))
    declared = source(api, path, **finder)
    result = sync(declared, store)
    assert (result.ending, result.complete, result.troubles) == (Ending.FINISHED, True, ())
    assert ids(store) == set(range(1, 26))
    again = sync(declared, store)
    assert (again.progress.looked_at, again.progress.counts["unchanged_hint"]) == (0, 25)
    api.add(row(7, name="another"), row(26))
    third = sync(declared, store)
    assert (third.progress.counts["changed"], third.progress.counts["new"]) == (1, 1)
    assert found(store, "SELECT name FROM items WHERE id = 7") == ["another"]
    assert all(call.path == f"/{path}" for call in api.calls())


def test_a_plain_answer_is_the_list_itself(api: ScriptedApi, sqlite_store: Store) -> None:
    api.on_answer = lambda _number, _call: Reply(json.dumps(rows(3)))
    assert sync(source(api, items="@", pages=None), sqlite_store).complete
    assert ids(sqlite_store) == {1, 2, 3}


def test_an_item_that_is_no_longer_listed_is_no_longer_a_member(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(12))
    sync(source(api), store)
    api.remove(5)
    sync(source(api), store)
    assert found(
        store, "SELECT p.page_id FROM members m JOIN pages p ON p.id = m.page WHERE m.dropped IS NOT NULL"
    ) == ["5"]


def test_an_item_that_is_gone_for_good_is_deleted_and_comes_back_when_it_is_listed_again(
    api: ScriptedApi, store: Store
) -> None:
    api.add(*rows(12))
    policy = {"deletion": Deletion(suspect_after=2, delete_after=4)}
    sync(source(api, policies=policy), store)
    api.remove(5)
    for _ in range(3):
        sync(source(api, policies=policy), store)
        assert 5 in ids(store)
    sync(source(api, policies=policy), store)
    assert ids(store) == set(range(1, 13)) - {5}
    assert found(store, "SELECT name FROM items WHERE id = 5") == ["item 5"]
    assert {call.path for call in api.calls()} == {"/offset"}
    api.add(row(5))
    sync(source(api, policies=policy), store)
    assert ids(store) == set(range(1, 13))
    assert found(
        store, "SELECT kind FROM versions v JOIN pages p ON p.id = v.page WHERE p.page_id = '5' ORDER BY seq"
    ) == [
        "created",
        "deleted",
        "restored",
    ]


def test_an_item_that_is_suspected_and_listed_again_is_acquitted(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(12))
    sync(source(api), store)
    api.remove(5)
    for _ in range(2):
        sync(source(api), store)
    assert found(store, "SELECT page_id FROM pages WHERE status = 'suspected'") == ["5"]
    api.add(row(5))
    sync(source(api), store)
    assert found(store, "SELECT count(*) FROM pages WHERE status = 'active'") == [12]


def test_ids_keep_all_their_digits_and_the_order_of_keys_is_no_change(api: ScriptedApi, store: Store) -> None:
    long = 2**62 + 1
    api.on_answer = lambda _number, _call: Reply(
        f'{{"total": 1, "items": [{{"id": {long}, "name": "x", "n": {2**70}}}]}}'
    )
    sync(source(api), store)
    api.on_answer = lambda _number, _call: Reply(
        f'{{"total": 1, "items": [{{"n": {2**70}, "name": "x", "id": {long}}}]}}'
    )
    again = sync(source(api), store)
    assert (ids(store), found(store, "SELECT page_id FROM pages")) == ({long}, [str(long)])
    assert again.progress.looked_at == 0


def test_items_are_never_fetched_by_themselves_however_long_ago_they_were_seen(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(3), row(4, name=None))
    sync(source(api), store)
    pass_time(timedelta(days=400))
    sync(source(api), store)
    assert {call.path for call in api.calls()} == {"/offset"}
    assert {call.values["offset"] for call in api.calls()} == {"0"}


def test_an_audit_leaves_items_alone_for_they_cannot_be_fetched(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(3))
    sync(source(api), store)
    assert audit.sample(store, "shop", 10, _RANDOM) == []


def test_new_rules_read_the_stored_items_again(api: ScriptedApi, store: Store) -> None:
    api.add(row(1, colour="red"), row(2, colour="blue"))
    sync(source(api), store)
    api.asked.clear()
    result = sync(source(api, policies={"read": Named}), store)
    assert result.progress.counts["reread"] == 2
    assert found(store, "SELECT colour FROM items ORDER BY id") == ["red", "blue"]
    assert len(api.calls()) == 1


def test_an_older_item_never_takes_the_place_of_a_newer_one(api: ScriptedApi, store: Store) -> None:
    api.add(row(1, "2026-02-01T00:00:00Z", name="newer"))
    by_time = source(api, updated="updated", policies={"order": "updated", "revisit": Adaptive(min="1h")})
    sync(by_time, store)
    api.add(row(1, "2026-01-01T00:00:00Z", name="older"))
    result = sync(by_time, store)
    assert result.progress.counts["regressions"] == 1
    assert found(store, "SELECT name FROM items") == ["newer"]
    assert found(store, "SELECT source_updated_at IS NOT NULL FROM pages") in ([True], [1])
    assert sync(by_time, store).progress.counts["regressions"] == 1


def test_a_source_that_keeps_saying_the_older_state_means_it(api: ScriptedApi, store: Store) -> None:
    api.add(row(1, "2026-02-01T00:00:00Z", name="newer"))
    by_time = source(api, updated="updated", policies={"order": "updated", "revisit": Adaptive(min="1h")})
    sync(by_time, store)
    api.add(row(1, "2026-01-01T00:00:00Z", name="older"))
    sync(by_time, store)
    pass_time(timedelta(hours=2))
    sync(by_time, store)
    assert found(store, "SELECT name FROM items") == ["older"]
    assert found(store, "SELECT kind FROM versions ORDER BY seq") == ["created", "rollback"]
    assert sync(by_time, store).progress.looked_at == 0


def test_versions_of_items_are_ordered_by_their_numbers(api: ScriptedApi, store: Store) -> None:
    api.add(row(1, name="tenth", rev=10))
    by_version = source(api, version="rev", policies={"order": "version", "revisit": Adaptive(min="1h")})
    sync(by_version, store)
    api.add(row(1, name="ninth", rev=9))
    assert sync(by_version, store).progress.counts["regressions"] == 1
    api.add(row(1, name="eleventh", rev=11))
    sync(by_version, store)
    assert found(store, "SELECT name FROM items") == ["eleventh"]


def test_a_link_is_visited_and_its_time_spares_the_next_visit(api: ScriptedApi, store: Store) -> None:
    with ScriptedSite() as site:
        site["/a"], site["/b"] = Reply("<h1>a</h1>"), Reply("<h1>b</h1>")
        api.add(
            row(1, url=f"{site.url}/a"), row(2, url=f"{site.url}/b"), row(3, url=None), row(4, url="https://x.example/")
        )
        declared = source(api, link="url", updated="updated", policies={"read": Thing})
        sync(declared, store)
        assert found(store, "SELECT name FROM things ORDER BY name") == ["a", "b"]
        assert found(store, "SELECT signature FROM dead_letters") == ["discover:no_link"]
        site.forget()
        site["/b"] = Reply("<h1>new b</h1>")
        api.add(row(2, "2026-02-02T00:00:00Z", url=f"{site.url}/b"))
        sync(declared, store)
        assert site.paths() == ["/b"]


# --- changes only, and everything now and then ---


def changes(api: ScriptedApi, path: str = "offset", **finder: Any) -> Source:
    since = {"updated": "updated", "since": Since("since", overlap="10m"), **finder}
    return source(api, path, **since)


def moment(before: timedelta = timedelta()) -> str:
    """Now, or some time before, as the API writes it."""
    return (wire._VIRTUAL.now() - before).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_the_first_time_everything_is_read_once_and_then_what_changed(api: ScriptedApi, store: Store) -> None:
    api.add(*(row(number, "2026-03-01T08:00:00Z") for number in range(1, 26)))
    sync(changes(api), store)
    assert [call.values.get("since") for call in api.calls()] == [None, None, None]
    api.asked.clear()
    api.add(row(26, "2026-03-01T09:00:00Z"))
    sync(changes(api), store)
    assert {call.values.get("since") for call in api.calls()} == {"2026-03-01T07:50:00Z"}
    assert 26 in ids(store)
    api.asked.clear()
    sync(changes(api), store)
    assert [call.values["since"] for call in api.calls()] == ["2026-03-01T08:50:00Z"]


def test_rows_late_within_the_overlap_are_found_at_once_and_others_by_the_next_full_scan(
    api: ScriptedApi, store: Store
) -> None:
    api.add(row(1, moment()))
    sync(changes(api), store)
    api.add(row(2, moment(timedelta(minutes=9))), row(3, moment(timedelta(hours=5))))
    sync(changes(api), store)
    assert ids(store) == {1, 2}
    pass_time(timedelta(days=7))
    result = sync(changes(api), store)
    assert ids(store) == {1, 2, 3}
    assert result.complete


def test_everything_is_read_when_it_is_asked_for(api: ScriptedApi, store: Store) -> None:
    api.add(row(1, moment()))
    sync(changes(api), store)
    api.add(row(2, moment(timedelta(hours=5))))
    sync(changes(api), store, full=True)
    assert ids(store) == {1, 2}


def test_only_the_full_scan_tells_what_is_gone(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(3))
    sync(changes(api), store)
    api.remove(2)
    sync(changes(api), store)
    assert found(store, "SELECT count(*) FROM members WHERE dropped IS NOT NULL") == [0]
    pass_time(timedelta(days=7))
    sync(changes(api), store)
    assert found(store, "SELECT count(*) FROM members WHERE dropped IS NOT NULL") == [1]


def test_an_api_that_cannot_be_read_whole_has_one_stream(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(3))
    sync(changes(api, exhaustive=False), store)
    sync(changes(api, exhaustive=False), store)
    assert [call.values.get("since") for call in api.calls()] == [None, "2025-12-31T23:50:00Z"]
    assert found(store, "SELECT count(*) FROM members") == [0]


def test_an_empty_api_is_asked_for_everything_until_it_has_something(api: ScriptedApi, store: Store) -> None:
    sync(changes(api), store)
    api.add(row(1))
    sync(changes(api), store)
    assert ids(store) == {1}


def test_an_id_that_counts_up_is_a_cursor_too(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(12))
    declared = source(api, "after", pages=AfterId("after"), since=Since("after"), exhaustive=False)
    sync(declared, store)
    api.asked.clear()
    api.add(row(13))
    sync(declared, store)
    assert [call.values.get("after") for call in api.calls()] == ["12", "13"]
    assert ids(store) == set(range(1, 14))


def test_graphql_asks_for_changes_by_a_variable(api: ScriptedApi, store: Store) -> None:
    api.add(*rows(6))
    path, finder = STYLES["graphql"]
    declared = changes(api, path, **finder, since=Since("json:variables.since"))
    sync(declared, store)
    api.asked.clear()
    sync(declared, store)
    bodies = [json.loads(call.body) for call in api.calls()]
    assert {body["variables"]["since"] for body in bodies} == {"2025-12-31T23:50:00Z"}
    assert {body["query"] for body in bodies} == {"{ things }"}
    assert [body["variables"].get("after") for body in bodies] == [None, "t:4"]


@pytest.mark.parametrize("bad", [None, "soon", {"at": 3}, True, -1, 10**40])
def test_an_item_without_a_time_is_treated_as_declared(api: ScriptedApi, sqlite_store: Store, bad: object) -> None:
    api.add(row(1), row(2) | {"updated": bad})
    stopped = sync(changes(api), sqlite_store)
    assert not stopped.complete
    assert "'updated' of item 1" in stopped.troubles[0].message
    assert ids(sqlite_store) == set()
    sync(changes(api, since=Since("since", missing="exclude")), sqlite_store)
    assert (ids(sqlite_store), events(sqlite_store)) == ({1}, ["excluded"])
    sync(changes(api, since=Since("since", missing="include")), sqlite_store, full=True)
    assert ids(sqlite_store) == {1, 2}


def test_a_time_far_in_the_future_does_not_poison_the_cursor(api: ScriptedApi, store: Store) -> None:
    api.add(row(1, moment()), row(2, "2999-01-01T00:00:00Z"))
    sync(changes(api), store)
    api.add(row(3, moment()))
    sync(changes(api), store)
    assert ids(store) == {1, 2, 3}
    assert "future" in events(store)


def run_late(api: ScriptedApi, store: Store, chance: random.Random) -> None:
    """An API that commits rows late, for some cycles: within the overlap none is missed, and a full scan finds all."""
    late: list[tuple[datetime, Row, bool]] = []
    number = 0
    declared = changes(api)
    for _ in range(chance.randint(2, 4)):
        for _ in range(chance.randint(0, 12)):
            number += 1
            delay = chance.choice([0, 1, 5, 9, 60, 300])
            now = wire._VIRTUAL.now()
            late.append((now + timedelta(minutes=delay), row(number, moment()), delay < 10))
        due = [entry for entry in late if entry[0] <= wire._VIRTUAL.now()]
        api.add(*(entry[1] for entry in due))
        sync(declared, store)
        seen = ids(store)
        missed = [entry[1] for entry in due if entry[2] and entry[1]["id"] not in seen]
        assert not missed, f"late within the overlap, and not found: {missed}"
        pass_time(timedelta(minutes=chance.randint(0, 30)))
    api.add(*(entry[1] for entry in late))
    sync(declared, store, full=True)
    assert ids(store) == set(range(1, number + 1))


def test_an_api_that_commits_rows_late_loses_none(api: ScriptedApi, store: Store) -> None:
    api.most = 4
    run_late(api, store, _RANDOM)


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_an_api_that_commits_rows_late_loses_none_in_two_hundred_runs(api: ScriptedApi, store: Store) -> None:
    sync(changes(api), store)
    for run in range(200):
        api.rows, api.most = [], _RANDOM.randint(1, 10)
        with store.engine.begin() as connection:
            for table in [*metadata.tables, "items"]:
                if table not in ("counters", "alembic_version"):
                    connection.execute(text(f"DELETE FROM {table}"))
        run_late(api, store, random.Random(f"{os.environ.get('RECRAWL_SEED')} {run}"))


# --- a process that is killed ---


class Killed(BaseException):
    """The end of a process: no handler of the program sees it, and nothing is committed after it."""


def killed(declared: Source, store: Store, at: int) -> bool:
    """Sync until just before commit number `at`; whether the sync came so far. Its leases have run out afterwards."""
    commits = 0

    def count(*_: object) -> None:
        nonlocal commits
        commits += 1
        if commits >= at:
            raise Killed

    event.listen(store.engine, "commit", count)
    try:
        sync(declared, store)
    except Killed:
        return True
    finally:
        event.remove(store.engine, "commit", count)
        pass_time(timedelta(seconds=61))
    return False


@pytest.mark.parametrize("style", ["offset and total", "token", "after id"])
def test_a_walk_that_is_killed_goes_on_and_nothing_is_missed_or_doubled(
    api: ScriptedApi, store: Store, style: str
) -> None:
    api.add(*rows(35))
    path, finder = STYLES[style]
    declared = source(api, path, **finder)
    points = sorted(_RANDOM.sample(range(2, 24), 3))
    died = [killed(declared, store, point) for point in points]
    assert died[0]
    assert sync(declared, store).complete
    assert ids(store) == set(range(1, 36)), points
    assert found(store, "SELECT count(*) FROM versions") == [35], points
    assert found(store, "SELECT count(*) FROM members WHERE dropped IS NULL") == [35]


def test_the_position_never_leads_so_that_reading_from_it_leaves_no_gap(api: ScriptedApi, store: Store) -> None:
    api.add(*(row(number, "2026-03-01T08:00:00Z") for number in range(1, 16)))
    declared = changes(api)
    for _ in range(2):
        sync(declared, store)
    for point in _RANDOM.sample(range(5, 20), 3):
        api.add(*(row(100 * point + number, "2026-03-01T09:00:00Z") for number in range(15)))
        killed(declared, store, point)
        with store.engine.begin() as connection:
            connection.execute(text("UPDATE cursors SET seen = position"))
        assert sync(declared, store).complete
        assert ids(store) == {row["id"] for row in api.rows}
    seen = found(store, "SELECT count(*) FROM cursors WHERE CAST(seen AS text) <> CAST(position AS text)")
    assert seen == [0]


# --- secrets ---


def everything_stored(store: Store) -> str:
    names = found(
        store,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        if store.is_postgres
        else "SELECT name FROM sqlite_master WHERE type = 'table'",
    )
    told = []
    with store.read() as connection:
        for name in names:
            told += [str(dict(row)) for row in connection.execute(text(f'SELECT * FROM "{name}"')).mappings()]
    return "\n".join(told)


def test_secrets_go_out_and_are_never_told_or_stored(
    api: ScriptedApi, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TOKEN", "sesame-1"), ("KEY", "sesame 2/3"), ("HEAD", "sesame-4"), ("BODY", "sesame-5")):
        monkeypatch.setenv(name, value)
    api.add(*rows(25))

    def echo(number: int, call: Call) -> Reply | None:
        link = f"/link?page={number + 1}&key=sesame%202%2F3"
        if number < 3:
            return Reply(json.dumps({"items": rows(9)[3 * number - 3 : 3 * number], "next": link}))
        return Reply(json.dumps({"error": f"the key sesame 2/3 is worn out, {call.values}"}))

    api.on_answer = echo
    declared = source(
        api,
        "link",
        pages=NextLink("next"),
        params={"key": env("KEY")},
        headers={"X-Head": env("HEAD")},
        method="POST",
        json={"secret": env("BODY")},
        policies={"auth": Bearer(env("TOKEN"))},
    )
    result = sync(declared, store)
    first, second = api.calls()[:2]
    for call in (first, second):
        assert call.values["key"] == "sesame 2/3"
        assert (call.headers["Authorization"], call.headers["X-Head"]) == ("Bearer sesame-1", "sesame-4")
        assert json.loads(call.body) == {"secret": "sesame-5"}
    told = [f"{trouble.url} {trouble.message} {trouble.raw!r}" for trouble in result.troubles]
    assert told
    for secret in ("sesame-1", "sesame 2/3", "sesame%202", "sesame+2", "sesame-4", "sesame-5"):
        assert secret not in "".join(told)
        assert secret not in everything_stored(store)
    assert "env(KEY)" in told[0]


def test_a_connection_that_fails_does_not_tell_the_secret_of_its_url(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "sesame")
    find = Api("http://127.0.0.1:9/items", id="id", params={"key": env("KEY")})
    result = sync(Source("shop", find=find, read=Item, max_attempts=1), sqlite_store)
    assert result.troubles
    assert "sesame" not in str(result.troubles) + everything_stored(sqlite_store)


def test_a_log_in_is_of_no_other_hosts_business(
    api: ScriptedApi, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "sesame")
    with ScriptedApi() as other:
        other.add(*rows(2))
        away = f"{other.url}/offset".replace("127.0.0.1", "localhost")
        api.on_answer = lambda number, _call: Reply("", 302 if number == 1 else 301, {"Location": away})
        for _ in range(2):
            declared = source(
                api,
                policies={"auth": Basic("me", env("TOKEN")), "hosts": ["localhost"]},
                headers={"X-Key": env("TOKEN")},
            )
            sync(declared, sqlite_store)
        assert [call.headers.get("Authorization", "")[:6] for call in api.calls()] == ["Basic ", "Basic "]
        assert other.calls()
        for call in other.calls():
            assert "Authorization" not in call.headers
            assert "X-Key" not in call.headers


def test_what_is_posted_is_not_sent_on_to_another_host(
    api: ScriptedApi, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "sesame")
    with ScriptedApi() as other:
        api.on_answer = lambda _number, _call: Reply("", 307, {"Location": f"{other.url}/offset"})
        result = sync(source(api, method="POST", json={"key": env("TOKEN")}), sqlite_store)
        assert not result.complete
        assert not other.calls()


def test_a_variable_that_is_not_set_is_one_clear_error(
    api: ScriptedApi, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    with pytest.raises(Misuse, match="NO_SUCH_TOKEN is not set") as caught:
        sync(source(api, policies={"auth": Bearer(env("NO_SUCH_TOKEN"))}), sqlite_store)
    assert (caught.value.place, "export NO_SUCH_TOKEN" in caught.value.action) == ("source.shop", True)
    assert not api.asked


def test_a_variable_with_a_line_break_is_refused_without_showing_it(
    api: ScriptedApi, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "sesame\r\nX-Other: 1")
    with pytest.raises(Misuse, match="line break") as caught:
        sync(source(api, policies={"auth": Bearer(env("TOKEN"))}), sqlite_store)
    assert "sesame" not in str(caught.value)


# --- problems that users of other tools reported ---


def case(cases: Path, name: str) -> tuple[Any, Any]:
    """The input of a shared case, and what is right."""
    rows = json.loads((cases / "bugs" / "cases.json").read_text())
    found = next(row for row in (rows if isinstance(rows, list) else rows["cases"]) if row["id"] == name)
    return found["input"], found["expected"]


def test_every_shared_case_about_apis_is_among_these(cases: Path) -> None:
    rows = json.loads((cases / "bugs" / "cases.json").read_text())
    names = {row["id"] for row in (rows if isinstance(rows, list) else rows["cases"]) if row["area"] == "api"}
    assert names == {"bug-42-cursor-late-row", "bug-43-cursor-ties", "bug-46-offset-past-end"}


def test_a_row_that_is_committed_late_is_found(api: ScriptedApi, store: Store, cases: Path) -> None:
    given, expected = case(cases, "bug-42-cursor-late-row")

    def rows_of(name: str) -> list[Row]:
        return [row(one["id"], f"{one['created']}Z") for one in given[name]]

    api.add(*rows_of("run1_rows"))
    sync(changes(api), store)
    api.add(*rows_of("run2_rows_visible"))
    sync(changes(api), store)
    assert sorted(ids(store)) == expected["ids_after_run2"]


def test_rows_that_share_the_boundary_are_neither_lost_nor_doubled(api: ScriptedApi, store: Store, cases: Path) -> None:
    given, expected = case(cases, "bug-43-cursor-ties")
    first, second = ([{"id": one["id"], "name": "x", "updated": one["t"]} for one in page] for page in given["pages"])
    api.on_answer = lambda _number, _call: Reply(json.dumps({"items": first}))
    declared = changes(api, pages=None)
    sync(declared, store)
    api.on_answer = lambda _number, _call: Reply(json.dumps({"items": second}))
    sync(declared, store)
    assert sorted(ids(store)) == expected["ids"]
    assert found(store, "SELECT count(*) FROM items") == [expected["rows"]]
    assert found(store, "SELECT count(*) FROM versions") == [expected["rows"]]


@pytest.mark.parametrize("total", ["total_count", None])
def test_an_offset_past_the_end_ends_the_list(api: ScriptedApi, store: Store, cases: Path, total: str | None) -> None:
    given, expected = case(cases, "bug-46-offset-past-end")

    def answer(_number: int, call: Call) -> Reply:
        items = [row(number) for number in given["answers"].get(call.values["offset"], [])]
        return Reply(json.dumps({"total_count": given["total_count"], "items": items}))

    api.on_answer = answer
    assert sync(source(api, pages=Offset(size=given["limit"], total=total)), store).complete
    assert sorted(ids(store)) == expected["items"]
    assert len(api.calls()) <= 3

"""Bytes to raw dicts: selectors, parts, embedded JSON, what a page says of itself, and hostile pages."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.declare import Price, Record, Sitemap, Source, Url, Urls, css, jmes, jsonld, meta, names, xpath
from recrawl.errors import Permanent
from recrawl.extract.bounds import check_bounds
from recrawl.extract.fetched import Fetched
from recrawl.extract.page import Extracted, extract
from recrawl.model.fetched import Page

URL = "https://site.example/dir/page"


def page(body: str | bytes, content_type: str | None = "text/html; charset=utf-8") -> Page:
    data = body.encode() if isinstance(body, str) else body
    return Page(URL, URL, data, content_type, datetime(2026, 3, 1, tzinfo=UTC))


def read(body: str | bytes, reader: Any, content_type: str | None = "text/html; charset=utf-8") -> Extracted:
    return extract(page(body, content_type), Source("s", find=Urls([URL]), read=reader))


def record(each: str | None = None, **fields: Any) -> type[Record]:
    """A record whose fields are `str | None`, or of the type given beside the selector; `...` is no selector."""
    types = {name: given[0] if isinstance(given, tuple) else str | None for name, given in fields.items()}
    values = {name: given[1] if isinstance(given, tuple) else given for name, given in fields.items()}
    space = {name: given for name, given in values.items() if given is not ...}
    space |= {"__annotations__": {"key": str, **types}, "key": "k"}
    return type("R", (Record,), space, table="r", key="key", each=each)


def value(body: str, selector: Any, content_type: str = "text/html") -> Any:
    return read(body, record(x=selector), content_type).rows[0].values.get("x")


# --- CSS ---


def test_css_gives_the_first_match_or_all_for_a_list() -> None:
    html = "<p class=a>one</p><p class=a>two</p>"
    assert value(html, css("p.a")) == "one"
    assert value(html, css("p.a::text")) == "one"
    assert value(html, (list[str], css("p.a::text"))) == ["one", "two"]


def test_what_is_not_found_is_no_key() -> None:
    rows = read("<p>", record(x=css("h1"), y=(list[str] | None, css("h1")), z=css("p::attr(id)"))).rows
    assert rows[0].values == {}


def test_attributes_are_given_as_they_stand_and_an_empty_one_is_empty() -> None:
    html = '<a id=" 1 " data-X="&amp;2" hidden href=x>'
    assert value(html, css("a::attr(id)")) == " 1 "
    assert value(html, css("a::attr(data-x)")) == "&2"
    assert value(html, css("a::attr( DATA-X )")) == "&2"
    assert value(html, css("a::attr(hidden)")) == ""
    assert value("<a><a href=x>", css("a::attr(href)")) == "x"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<div>He<b>l</b>lo</div>", "Hello"),
        ("<div>one<br>two</div>", "one\ntwo"),
        ("<div><div>51</div><div>24</div></div>", "51\n24"),
        ("<div>a<div>b</div>c</div>", "a\nb\nc"),
        ("<div><p><b>a</b></p><b>c</b></div>", "a\nc"),
        ("<div><ul><li>1<li>2</ul></div>", "1\n2"),
        ("<div>a<script>x()</script><style>p{}</style><!-- no -->b</div>", "ab"),
        ("<div></div>", ""),
        ("<div><b></b></div>", ""),
        ("<div><b><p>a</p><script>x()</script></b>b<template>c</template></div>", "a\nb"),
        ("<div>a<b><script>x()</script></b><i>b</i></div>", "ab"),
        ("<div>1 &lt; 2&nbsp;</div>", "1 < 2\xa0"),
    ],
)
def test_text_keeps_pieces_of_different_blocks_apart(html: str, text: str) -> None:
    assert value(f"<body>{html}<p>after</p>", css("body > div")) == text
    assert value(f"<body>{html}<p>after</p>", xpath("//body/div")) == text


def test_the_text_of_a_script_itself_can_be_read() -> None:
    assert value("<script id=s>a<b</script>", css("#s")) == "a<b"


def test_links_are_made_absolute_where_the_field_is_a_link() -> None:
    html = "<head><base href='/base/'></head><a href='x y'>1</a><a href='javascript:void(0)'>2</a><a href=''>3</a>"
    assert value(html, (list[Url], css("a::attr(href)"))) == ["https://site.example/base/x%20y"]
    assert value(html, css("a::attr(href)")) == "x y"
    assert value("<a href='../up'>", (Url, xpath("//a/@href"))) == "https://site.example/up"


def test_the_pages_own_address_is_there_for_a_field_named_url() -> None:
    assert read("<p>", record(url=(Url, ...))).rows[0].values["url"] == URL
    other = '<script type="application/json">{"url": "/other", "list": [{"url": "/1"}, {"id": 2}]}</script>'
    assert read(other, record(url=(Url, ...))).rows[0].values["url"] == URL
    parts = read(other, record("list", url=(Url, ...))).rows
    assert [part.values["url"] for part in parts] == ["https://site.example/1", URL]


# --- XPath ---


def test_xpath_gives_texts_attributes_and_numbers() -> None:
    html = "<h1>A <b>b</b></h1><p id=x>1<p>2"
    assert value(html, xpath("//h1")) == "A b"
    assert value(html, xpath("//h1/text()")) == "A "
    assert value(html, xpath("//p/@id")) == "x"
    assert value(html, xpath("count(//p)")) == 2
    assert value(html, xpath("string(//p[2])")) == "2"
    assert value(html, (list[str], xpath("//p"))) == ["1", "2"]
    assert value(html, xpath("//h2")) is None


@pytest.mark.parametrize("html", ["", " ", "<!-- only -->", '<?xml version="1.0" encoding="gbk"?><p>x</p>'])
def test_xpath_reads_any_text_without_breaking(html: str) -> None:
    assert value(html, xpath("//p")) == ("x" if "<p>" in html else None)


def test_xpath_finds_what_is_nested_deeper_than_lxml_allows_by_itself() -> None:
    assert value("<div>" * 1500 + "<i>deep</i>", xpath("//i")) == "deep"


# --- parts ---


def test_each_splits_a_page_by_css_and_fields_read_their_own_part() -> None:
    rows = read(
        "<meta name=shop content=S><h1>no</h1>"
        "<ul><li data-id=1><b>a</b>1<li data-id=2>2<li data-id=3><b>c</b><b>d</b></ul>",
        record(
            "li",
            id=css("::attr(data-id)"),
            whole=css("::text"),
            b=css("b"),
            h=css("h1"),
            x=(list[str], xpath("//b")),
            up=xpath("../h1"),
            shop=meta("shop"),
        ),
    ).rows
    assert [row.values for row in rows] == [
        {"id": "1", "whole": "a1", "b": "a", "x": ["a"], "shop": "S"},
        {"id": "2", "whole": "2", "shop": "S"},
        {"id": "3", "whole": "cd", "b": "c", "x": ["c", "d"], "shop": "S"},
    ]


def test_each_may_find_nothing() -> None:
    assert read("<p>", record("li", x=css("b"))).rows == ()
    assert read("{}", record("items", x=jmes("b")), "application/json").rows == ()


def test_table_rows_can_be_parts_for_xpath_too() -> None:
    rows = read("<table><tr><td>1<td>2<tr><td>3<td>4</table>", record("tr", x=xpath("td[2]"))).rows
    assert [row.values["x"] for row in rows] == ["2", "4"]


# --- JSON ---


def test_each_splits_json_by_jmespath_and_names_are_raw_keys() -> None:
    body = '{"data": {"items": [{"id": 1, "a": {"n": "x"}, "p": "", "q": 3}, {"id": 2, "p": null, "t": ["u"]}]}}'
    fields = {"id": (int, ...), "n": jmes("a.n"), "price": (Price | None, names("p", "q")), "t": (list[str], ...)}
    rows = read(body, record("data.items", **fields), "application/json").rows
    assert [row.values for row in rows] == [{"id": 1, "n": "x", "price": 3}, {"id": 2, "price": None, "t": ["u"]}]


def test_an_array_as_body_is_several_records() -> None:
    rows = read('[{"id": 1}, {"id": 2}]', record(None, id=(int, ...)), "application/json").rows
    assert [row.values["id"] for row in rows] == [1, 2]


def test_json_is_known_by_type_or_by_look() -> None:
    for content_type in ("application/json", "application/problem+json", "text/html", None, "application/octet-stream"):
        assert value('\ufeff{"x": 1}', jmes("x"), content_type or "") == 1


def test_long_integers_keep_their_digits() -> None:
    assert value('{"x": 12345678901234567890123}', jmes("x"), "application/json") == 12345678901234567890123


def test_a_jmespath_function_on_the_wrong_type_finds_nothing() -> None:
    assert value('{"x": 1}', jmes("length(x)"), "application/json") is None


@pytest.mark.parametrize(
    "body", ["{x", "[" * 100_000 + "1" * 20, '{"x":' * 5_000, '{"x": 1} trailing', '{"x": ' + "9" * 5_000 + "}", ""]
)
def test_what_is_no_json_is_refused_for_good(body: str) -> None:
    with pytest.raises(Permanent, match="no JSON"):
        value(body, jmes("x"), "application/json")


def test_json_read_by_css_is_refused_with_a_reason() -> None:
    with pytest.raises(Permanent, match="is JSON, and it is read as HTML") as caught:
        value("{}", css("p"), "application/json")
    assert caught.value.place == URL


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"%PDF-1.7", "text/html"), (b"\x89PNG\r\n", None), (b"x", "image/png"), (b"a\x00b", "application/octet-stream")],
)
def test_binary_bodies_are_refused_with_a_reason(body: bytes, content_type: str | None) -> None:
    with pytest.raises(Permanent, match="binary"):
        read(body, record(x=css("p")), content_type)


# --- what pages embed ---

EMBEDDED = """
<script type="application/json">{"b": 2, "c": 3}</script>
<script id="__NEXT_DATA__" type="application/json">{"a": 1, "b": 1}</script>
<script type="application/ld+json"><!-- {"@type": "Thing", "d": "line
break"} --></script>
<script type="application/json">{broken</script>
"""


def test_embedded_json_is_searched_in_a_documented_order() -> None:
    assert [value(EMBEDDED, jmes(name)) for name in "abcd"] == [1, 1, 3, "line\nbreak"]
    assert value(EMBEDDED, names("zz", "c")) == 3
    assert value(EMBEDDED, jmes("zz")) is None


def test_each_can_be_in_embedded_json() -> None:
    html = '<script type="application/json">{"list": [{"id": 1}, {"id": 2}]}</script>'
    assert [row.values["id"] for row in read(html, record("list", id=(int, ...))).rows] == [1, 2]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("Product.name", "N"),
        ("name", "Site"),
        ("Product.offers.price", "1"),
        ("Product.brand", "B"),
        ("Product.brand.name", "B"),
        ("Product.author.name", "Ann"),
        ("Product.nothing", None),
        ("Person.name", "Ann"),
        ("Nobody.name", None),
    ],
)
def test_jsonld_is_read_by_a_path(path: str, found: str | None) -> None:
    html = """<script type="application/ld+json">{"@context": "https://schema.org", "@graph": [
      {"@type": "WebSite", "name": "Site"},
      {"@type": ["Thing", "http://schema.org/Product"], "name": {"@value": "N"}, "brand": "B",
       "offers": [{"price": "1"}, {"price": "2"}], "author": {"@id": "#ann"}},
      {"@type": "Person", "@id": "#ann", "name": "Ann"}]}</script>"""
    assert value(html, jsonld(path)) == found
    if path == "Product.offers.price":
        assert value(html, (list[str], jsonld(path))) == ["1", "2"]


def test_jsonld_that_refers_to_itself_ends() -> None:
    items = ", ".join('{"@id": "#a"}' for _ in range(300))
    html = f'<script type="application/ld+json">{{"@id": "#a", "a": [{items}]}}</script>'
    started = time.perf_counter()
    value(html, jsonld("a.a.a.a.a.a"))
    assert time.perf_counter() - started < 2


def test_meta_is_found_by_name_property_or_http_equiv_in_any_case() -> None:
    html = "<meta NAME=A content=1><meta property=og:x content=2><meta http-equiv=Y content=3><meta name=a content=4>"
    assert [value(html, meta(name)) for name in ("a", "OG:X", "y", "z")] == ["1", "2", "3", None]
    assert value(html, (list[str], meta("a"))) == ["1", "4"]


# --- functions ---


class Line(Record, table="lines", key="text"):
    text: str
    size: int = 0


def test_a_function_reads_a_fetched_page() -> None:
    def lines(fetched: Fetched) -> Iterator[Line]:
        assert (fetched.url, fetched.final_url, fetched.content_type) == (URL, URL, "text/html; charset=utf-8")
        assert fetched.fetched_at.year == 2026
        assert fetched.body.decode() == fetched.text
        assert fetched.join("/x") == "https://site.example/x"
        for text in fetched.css("p"):
            yield Line(text=text)

    rows = read("<p>one<p>two", lines).rows
    assert [(row.spec.table, row.values) for row in rows] == [
        ("lines", {"text": "one", "size": 0}),
        ("lines", {"text": "two", "size": 0}),
    ]


def test_a_function_can_read_json() -> None:
    def lines(fetched: Fetched) -> list[Line]:
        return [Line(text=item["t"]) for item in fetched.json()]

    assert [row.values["text"] for row in read('[{"t": "a"}]', lines, "application/json").rows] == ["a"]


def test_a_function_that_fails_is_named_with_its_line() -> None:
    def broken(fetched: Fetched) -> Iterator[Line]:
        yield Line(text="a")
        raise KeyError("price")

    with pytest.raises(Permanent, match="broken failed: KeyError: 'price'") as caught:
        read("<p>", broken)
    assert "test_extract.py, line" in caught.value.place
    with pytest.raises(Permanent, match="which is no record"):
        read("<p>", lambda fetched: [{"text": 1}])
    with pytest.raises(Permanent, match="failed: TypeError"):
        read("<p>", lambda fetched: None)


# --- what a page says of itself ---


@pytest.mark.parametrize(
    ("head", "canonical"),
    [
        ("<link rel=canonical href='/c#x'>", "https://site.example/c#x"),
        ("<link rel='nofollow Canonical' href=c>", "https://site.example/dir/c"),
        ("<link rel=canonical href=/a><link rel=canonical href=/a>", "https://site.example/a"),
        ("<link rel=canonical href=/a><link rel=canonical href=/b>", None),
        ("<link rel=canonical href='javascript:x'>", None),
        ("<link rel=canonical href='http://['>", None),
        ("<link rel=canonical>", None),
        ("", None),
    ],
)
def test_the_canonical_address_is_absolute_and_only_one(head: str, canonical: str | None) -> None:
    assert read(f"<head>{head}</head>", record()).canonical == canonical


def test_title_and_feeds_are_found() -> None:
    found = read(
        "<title> My\n page </title><link rel=alternate type='application/rss+xml; charset=x' href=/f>"
        "<link rel=alternate type=application/json href=/wp-json><link rel=alternate hreflang=de href=/de>"
        "<link rel='alternate home' type=application/atom+xml href=/g>"
        "<link rel=alternate type=application/atom+xml href=/g>",
        record(),
    )
    assert found.title == "My page"
    assert found.feeds == ("https://site.example/f", "https://site.example/g")
    assert read("<svg><title>no</title></svg>", record(url=(Url, ...))).feeds == ()


def test_the_shape_ignores_text_and_the_length_of_lists_and_sees_a_new_template() -> None:
    shapes = [
        read(html, record()).structure_hash
        for html in (
            "<div class=a><ul><li>1</ul></div>",
            "<div class=b><ul><li>1<li>other</ul></div>",
            "<div class=a><ol><li>1</ol></div>",
        )
    ]
    assert shapes[0] == shapes[1] != shapes[2]
    assert shapes[0] is not None
    assert len(shapes[0]) == 64
    json = [
        read(text, record(x=jmes("x")), "application/json").structure_hash
        for text in ('{"x": [{"a": 1}]}', '{"x": [{"a": "2"}, {"a": 3}]}', '{"x": [{"b": 1}]}')
    ]
    assert json[0] == json[1] != json[2]
    assert read("text", record(), "text/plain").structure_hash is None


def test_what_was_extracted_can_go_to_another_process_and_is_the_same_each_time() -> None:
    found = read("<h1>a</h1>", record(x=css("h1")))
    assert pickle.loads(pickle.dumps(found)) == found == read("<h1>a</h1>", record(x=css("h1")))


# --- hostile pages ---

HOSTILE = {
    "deep": "<div>" * 200_000,
    "deep, hidden by end tags": "<div></x></p></span>" * 100_000,
    "deep, in tables": "<table><td></div>" * 100_000,
    "deep, in svg": "<svg/><x/>" * 100_000,
    "deep, in svg titles": "<svg><title>" * 100_000,
    "deep, behind quotes": "<p x=\">\"><div y='>'>" * 100_000,
    "reopened": "".join(f"<p><b id={number}>" for number in range(20_000)),
    "reopened, strong": "".join(f"<p><strong id={number}>" for number in range(10_000)),
    "reopened, behind an end tag in quotes": "".join(f"<p><b id={number} x='> </b>'>" for number in range(5_000)),
    "end tags of nothing": "<x>" * 14_000 + "</y>" * 100_000,
    "end tags of nothing that is formatted": "<x>" * 14_000 + "</b>" * 100_000,
    "closed late": "".join(f"<b id={n}>" for n in range(900)) + "<div>" * 2_000 + "</b>" * 20_000,
    "closed late, in lists": "".join(f"<b id={n}>" for n in range(10)) + "<ul><li>" * 4_000 + "</b>" * 4_000,
    "closed late, behind quotes": "<i>" * 3 + "<div>" * 3_000 + "<x y='<i a='>text</i>" * 9_000,
    "attributes": "<p " + " ".join(f"a{number}" for number in range(200_000)),
    "attributes, behind quotes": "<p " + " ".join(f"a{number}='>'" for number in range(50_000)) + ">",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_page_that_would_take_for_ever_is_refused_at_once(kind: str) -> None:
    started = time.process_time()
    with pytest.raises(Permanent, match="parsing it could take for ever"):
        read(HOSTILE[kind], record(x=css("p")))
    assert time.process_time() - started < 3


SLOPPY = {
    "unclosed paragraphs": "<p>text" * 30_000,
    "unclosed items": "<ul>" + "<li><a href=x>text</a>" * 30_000,
    "unclosed cells": "<table>" + "<tr><td>1<td>2" * 20_000,
    "unclosed fonts": "<p><font color=red>text</p>" * 4_000,
    "much in bold": "<p><b class=x>text</b> and <code>more</code></p>" * 5_000,
    "formatting across blocks": "<b><div>text</b></div><a href=x><div>more<a href=y></div></a>" * 3_000,
    "formatting in formatting": "<em><a href=x><code><span class=y>text</span></code></a></em>" * 10_000,
    "icons": "<svg viewBox='0 0 1 1'><path d='M0'/><circle r=1/></svg>" * 5_000,
    "less-than signs": "1 < 2 and 2 <3 " * 50_000,
    "closed": "<div class='a'><span>text</span></div>" * 30_000,
    "one long attribute": f"<div data-x='{'{&quot;a&quot;: 1}' * 10_000}'>",
    "comments": "<!-- <div> -->" * 30_000,
    "a script": f"<script>{'document.write(`<div>`);' * 30_000}</script>",
}


@pytest.mark.parametrize("kind", SLOPPY)
def test_a_sloppy_page_is_read(kind: str) -> None:
    assert value(SLOPPY[kind] + "<h1>end</h1>", css("h1")) == "end"


def test_xpath_refuses_what_lxml_would_lose() -> None:
    with pytest.raises(Permanent, match="nested too deep"):
        value("<div>" * 2_500 + "x", xpath("//div"))
    assert value("<div></div>" * 2_500 + "<h1>x", xpath("//h1")) == "x"


@given(
    st.lists(
        st.sampled_from(["<", ">", "'", '"', "=", "!--", "-->", "/", "a", " ", "div", "script", "svg"]), max_size=40
    )
)
def test_the_bounds_take_any_text(parts: list[str]) -> None:
    check_bounds("".join(parts), URL, deepest=50)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for content_type in ("text/html", "application/json", None):
        try:
            found = read(body, record(x=css("p"), y=xpath("//p"), z=jmes("a")), content_type)
        except Permanent:
            continue
        assert len(found.rows) == 1


def test_a_list_of_links_leaves_out_what_leads_to_no_page() -> None:
    class Links(Record, table="links", key="url"):
        url: Url
        links: list[Url] = css("a::attr(href)", default=[])

    html = b"<a href='/a'>a</a><a href='javascript:void(0)'>b</a><a href='mailto:x@y.example'>c</a><a href='b'>d</a>"
    page = Page("https://s.example/x/", "https://s.example/x/", html, "text/html", datetime(2026, 1, 1, tzinfo=UTC))
    (raw,) = extract(page, Source("s", find=Sitemap("https://s.example/sitemap.xml"), read=Links)).rows
    assert raw.values["links"] == ["https://s.example/a", "https://s.example/x/b"]

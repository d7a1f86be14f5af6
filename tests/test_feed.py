"""Feeds and their dates."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.discover.dates import instant, rfc_date
from recrawl.discover.feed import FeedDocument, FeedEntry, FeedKind, read_feed

URL = "https://news.example/blog/feed.xml"


def read(text: str, zone: str | None = None) -> FeedDocument:
    return read_feed(text.encode(), URL, zone=zone)


def rss(*items: str) -> str:
    inside = "".join(f"<item>{item}</item>" for item in items)
    return f'<rss version="2.0"><channel><title>c</title>{inside}</channel></rss>'


def atom(entry: str) -> str:
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><id>f</id><entry>{entry}</entry></feed>'


def only(document: FeedDocument) -> FeedEntry:
    [entry] = document.entries
    return entry


# What is no feed


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"<html><body>502</body></html>", b"not here", b'{"items": 3}', b'{"items": [', b"[1, 2]", b"\0\0\0"),
        b"<urlset><url><loc>https://news.example/</loc></url></urlset>",
    ],
)
def test_what_is_no_feed_is_invalid_with_a_reason(data: bytes) -> None:
    document = read_feed(data, URL)
    assert (document.kind, document.entries, document.complete) == (FeedKind.INVALID, [], False)
    assert any("This is no feed but" in problem for problem in document.problems)


def test_a_feed_without_items_is_a_complete_feed() -> None:
    document = read(rss())
    assert (document.kind, document.entries, document.complete) == (FeedKind.RSS, [], True)


# Damage


def test_a_truncated_feed_keeps_its_items_and_is_incomplete() -> None:
    document = read(rss("<guid>1</guid>", "<guid>2</guid><link>https://news.example/2</link>")[:-40])
    assert document.entries[0].id == "1"
    assert not document.complete


def test_an_undefined_entity_costs_no_entry_and_is_reported() -> None:
    document = read(atom("<id>e</id><title>&ldquo;hi&rdquo; &nope;</title>"))
    assert only(document).id == "e"
    assert (only(document).title or "").startswith("“hi”")
    assert document.problems


def test_external_entities_are_never_read_and_internal_ones_are(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("top-secret")
    doctype = f'<!DOCTYPE rss [<!ENTITY s SYSTEM "{secret.as_uri()}"><!ENTITY i "tag:x,">]>'
    document = read(doctype + rss('<guid isPermaLink="false">&i;1</guid><title>&s;</title>'))
    assert only(document).id == "tag:x,1"
    assert "top-secret" not in repr(document)


def test_an_item_without_a_link_does_not_stop_the_others() -> None:
    document = read(rss("<title>only title</title>", "<title>b</title><link>https://news.example/b</link>"))
    assert [(entry.title, entry.url) for entry in document.entries] == [
        ("only title", None),
        ("b", "https://news.example/b"),
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        *("<a>" * 50_000, "<item>" * 50_000, "<a " * 50_000, "&" * 50_000, "<![CDATA[" * 50_000, "</a>" * 50_000),
        "<item " + " ".join(f'a{n}="x"' for n in range(30_000)) + "/>",
        "<item>" + "".join(f'<a xmlns:p{n}="u{n}"/>' for n in range(10_000)),
        "<item><title>" + "x" * 300_000,
    ],
)
def test_hostile_markup_ends_soon(hostile: str) -> None:
    assert not read("<rss><channel>" + hostile).complete


def test_entities_within_entities_do_not_grow() -> None:
    names = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
    document = read(f'<!DOCTYPE rss [<!ENTITY a0 "{"x" * 100}">{names}]>' + rss("<guid>1</guid><title>&a9;</title>"))
    assert len(document.entries) <= 1


def test_only_so_many_entries_are_read() -> None:
    document = read(rss(*["<guid>1</guid>"] * 10_001))
    assert len(document.entries) == 10_000
    assert not document.complete


# Which entry is it, and where


def test_ids_are_kept_as_written() -> None:
    assert only(read(atom("<id>HTTP://News.example/%7Ebob</id>"))).id == "HTTP://News.example/%7Ebob"


def test_an_id_on_several_items_gives_way_to_their_links() -> None:
    items = [f"<guid>same</guid><link>https://news.example/{n}</link>" for n in range(2)]
    document = read(rss(*items, "<guid>own</guid><link>https://news.example/own</link>"))
    assert [entry.id for entry in document.entries] == ["https://news.example/0", "https://news.example/1", "own"]
    assert document.problems


def test_the_same_item_twice_keeps_its_id() -> None:
    document = read(rss(*["<guid>same</guid><link>https://news.example/1</link>"] * 2))
    assert [entry.id for entry in document.entries] == ["same", "same"]


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("<link href='a'/>", "https://news.example/blog/a"),
        ("<link rel='self' href='s'/><link href='a'/><link rel='edit' href='e'/>", "https://news.example/blog/a"),
        ("<link href='a'/><link rel='alternate' type='text/html' href='b'/>", "https://news.example/blog/a"),
        ("<link rel='enclosure'>https://x.example/e</link><link rel='alternate'>/a</link>", "https://news.example/a"),
        ("<id>https://news.example/id</id>", "https://news.example/id"),
        ("<link rel='enclosure' href='https://x.example/e'/>", None),
    ],
)
def test_the_address_of_an_atom_entry_is_its_first_alternate_link(entry: str, url: str | None) -> None:
    assert only(read(atom(entry))).url == url


@pytest.mark.parametrize(
    ("item", "url"),
    [
        ("<link> /a?x=1&amp;y=2 </link>", "https://news.example/a?x=1&y=2"),
        ("<link>https://news.example/b<![CDATA[?q=a&l=fr]]></link>", "https://news.example/b?q=a&l=fr"),
        ("<guid>https://news.example/g</guid>", "https://news.example/g"),
        ("<guid isPermaLink='false'>https://news.example/g</guid>", "https://news.example/g"),
        ("<guid isPermaLink='false'>7bd204c6</guid>", None),
        ("<guid>g</guid><link>https://news.example/l</link>", "https://news.example/l"),
    ],
)
def test_the_address_of_an_rss_item_is_its_link_or_a_guid_that_is_one(item: str, url: str | None) -> None:
    assert only(read(rss(item))).url == url


def test_bases_nest_from_the_address_of_the_feed() -> None:
    text = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="sub/"><entry xml:base="2013/08/"><id>1</id>
        <link href="FC2"/></entry></feed>"""
    assert only(read(text)).url == "https://news.example/blog/sub/2013/08/FC2"


def test_fields_of_extensions_are_not_those_of_the_item() -> None:
    item = """<media:group xmlns:media="http://search.yahoo.com/mrss/"><media:title>no</media:title></media:group>
        <media:title xmlns:media="http://search.yahoo.com/mrss/">no</media:title><title>yes</title>
        <!-- a comment --><?and an instruction?>
        <source><id>no</id><updated>2001-01-01T00:00:00Z</updated></source><guid>1</guid>"""
    assert only(read(rss(item))) == FeedEntry(id="1", url=None, title="yes")


# Kinds


def test_every_kind_is_read() -> None:
    rdf = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
        xmlns:dc="http://purl.org/dc/elements/1.1/"><item rdf:about="https://news.example/1">
        <link>https://news.example/1</link><dc:date>2024-05-01T10:00:00+02:00</dc:date></item></rdf:RDF>"""
    document = read(rdf)
    assert document.kind is FeedKind.RDF
    assert only(document) == FeedEntry("https://news.example/1", "https://news.example/1", "2024-05-01T08:00:00Z")
    document = read(atom("<id>1</id><link href='/1'/><updated>2024-05-01T08:00:00Z</updated><title>t</title>"))
    assert document.kind is FeedKind.ATOM
    assert only(document) == FeedEntry("1", "https://news.example/1", "2024-05-01T08:00:00Z", None, "t")
    document = read('<CHANNEL><ITEM HREF="https://news.example/1" LASTMOD="2024-05-01T08:00:00Z"/></CHANNEL>')
    assert only(document) == FeedEntry(None, "https://news.example/1", "2024-05-01T08:00:00Z")


def test_a_json_feed_is_read_and_odd_items_in_it_cost_only_themselves() -> None:
    items = [
        {"id": 7, "url": "/7", "date_published": "2024-05-01T10:00:00+02:00", "date_modified": [], "title": " t "},
        "nonsense",
        {"id": "8", "external_url": "https://other.example/8"},
    ]
    document = read(json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": items}))
    assert document.kind is FeedKind.JSON
    assert document.entries == [
        FeedEntry("7", "https://news.example/7", None, "2024-05-01T08:00:00Z", "t"),
        FeedEntry("8", "https://other.example/8"),
    ]


# Dates


@pytest.mark.parametrize(
    ("text", "zone", "utc"),
    [
        ("Thu, 03 Sep 15 00:01:01 +0200", None, "2015-09-02T22:01:01Z"),
        ("Thu, 30 Apr 2015 08:57:00 MEST", None, "2015-04-30T06:57:00Z"),
        ("Sunday, 06-Nov-94 08:49:37 GMT", None, "1994-11-06T08:49:37Z"),
        ("Thu Aug 30 2012 17:26:16 GMT+0200 (Central European Summer Time)", None, "2012-08-30T15:26:16Z"),
        ("lun., 3 août 2020 10:00 +0200", None, "2020-08-03T08:00:00Z"),
        ("Jan 2, 2024 12:15 AM EST", None, "2024-01-02T05:15:00Z"),
        ("2024-07-01 10:00 Europe/Berlin", None, "2024-07-01T08:00:00Z"),
        ("2024-01-02T10:15:00Z", "Asia/Shanghai", "2024-01-02T10:15:00Z"),
        ("1704190200", None, "2024-01-02T10:10:00Z"),
        ("1704190200000", None, "2024-01-02T10:10:00Z"),
        # An unknown part is unknown.
        ("05 Jan 17 13:34:55", None, None),
        ("05 Jan 17 13:34:55", "Europe/Berlin", "2017-01-05T12:34:55Z"),
        ("2024年6月3日 10:30", None, None),
        ("2024年6月3日 10:30", "Asia/Shanghai", "2024-06-03T02:30:00Z"),
        ("2024年6月3日 下午1:05", "Asia/Shanghai", "2024-06-03T05:05:00Z"),
        ("2024-06-03", "Asia/Shanghai", "2024-06-02T16:00:00Z"),
        ("6月3日 10:30", "Asia/Shanghai", None),
        ("10:30", "Asia/Shanghai", None),
        ("03/04/2024", "Asia/Shanghai", None),
        ("200312", None, None),
        # One name of a zone, several meanings: the source's own decides.
        ("Wed, 19 Aug 2009 18:28:00 CST", None, "2009-08-20T00:28:00Z"),
        ("Wed, 19 Aug 2009 18:28:00 CST", "Asia/Shanghai", "2009-08-19T10:28:00Z"),
        ("Wed, 19 Aug 2009 18:28:00 IST", None, None),
        ("Wed, 19 Aug 2009 18:28:00 IST", "Asia/Kolkata", "2009-08-19T12:58:00Z"),
        ("Wed, 19 Aug 2009 18:28:00 QQQ", "Asia/Kolkata", None),
        ("Wed, 19 Aug 2009 18:28:00 +9900", None, None),
        # No such time.
        ("Wed, 31 Jun 2009 18:28:00 GMT", None, None),
        ("2024-01-02T25:00:00Z", None, None),
        ("9999-12-31T23:59:59-10:00", None, None),
        ("9" * 200, None, None),
    ],
)
def test_a_date_depends_on_its_text_and_the_zone_of_the_source(text: str, zone: str | None, utc: str | None) -> None:
    assert only(read(rss(f"<pubDate>{text}</pubDate>"), zone)).published == utc


def test_a_protocol_date_without_a_zone_is_utc_but_a_written_one_is_unknown() -> None:
    assert rfc_date("2004-07-08 23:56:58") == "2004-07-08T23:56:58Z"
    assert rfc_date("Thu, 01 Jan 2004") == "2004-01-01T00:00:00Z"
    assert rfc_date("2024年6月3日 10:30") is None
    assert rfc_date("2004년 05월 28일 01:31:15") == "2004-05-27T16:31:15Z"


@given(
    st.datetimes(datetime(1000, 1, 1), datetime(9998, 1, 1)),  # noqa: DTZ001
    st.integers(-12 * 60, 14 * 60),
    st.sampled_from([None, ZoneInfo("Asia/Shanghai")]),
)
def test_an_iso_date_means_what_the_standard_library_says(local: datetime, minutes: int, zone: ZoneInfo | None) -> None:
    moment = local.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
    assert instant(moment.isoformat(), zone) == instant(moment.isoformat(" "), zone) == expected


@given(st.text(max_size=60))
def test_any_text_is_a_date_or_none(text: str) -> None:
    for found in (instant(text), instant(text, ZoneInfo("Asia/Shanghai")), rfc_date(text)):
        assert found is None or len(found) == 20


# Any input

PARTS = (
    "<rss> <channel> <item> </item> <link> </link> <guid> </guid> <link\thref='a'/> <dc:date> <x:item> <feed> <entry> "
    "<entry\txmlns='a\tb'> <link\trel='x'> http://x/a & &amp; &x; &#xFFFE; &#1; <!-- <![CDATA[ ]]> <!DOCTYPE <?xml "
    "{ [ \ud800 \0 é 2024-01-01 <item\txml:base='//['> <item\txmlns:dc='q'\tdc:about='z'>"
)
MARKUP = st.lists(st.sampled_from(PARTS.split(" ")), max_size=30)


@settings(max_examples=150, deadline=2000)
@given(MARKUP, st.sampled_from(["", "<rss><channel><item>", "<feed xmlns='http://www.w3.org/2005/Atom'><entry>"]))
def test_any_markup_is_read_without_an_exception(parts: list[str], start: str) -> None:
    document = read_feed((start + "".join(parts)).encode("utf-8", "surrogatepass"), URL)
    assert document.complete or document.problems


@settings(max_examples=150, deadline=2000)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    read_feed(data, URL)


# Real feeds


def test_the_shared_feeds_hold(cases: Path) -> None:
    folder = cases / "feeds"
    for case in json.loads((folder / "expected.json").read_text("utf-8"))["cases"]:
        if case["expect_holds"] is False:
            continue
        found = read_feed(
            (folder / case["file"]).read_bytes(), "http://127.0.0.1:8097/" + case["upstream_path"]
        ).entries
        assert len(found) == len(case["entries"]), case["file"]
        for entry, wanted in zip(found, case["entries"], strict=True):
            values = {"id": entry.id, "link": entry.url, "updated": entry.updated, "published": entry.published}
            known = {name for name in values if wanted.get(name) and ":" in wanted[name]}
            assert {name: values[name] for name in known} == {name: wanted[name] for name in known}, case["file"]


def test_the_shared_feeds_of_other_kinds_hold(cases: Path) -> None:
    folder = cases / "feeds"
    for case in json.loads((folder / "expected_more.json").read_text("utf-8"))["cases"]:
        found = read_feed((folder / case["file"]).read_bytes(), URL, case["content_type"]).entries
        assert [(entry.id, entry.url) for entry in found] == [
            (wanted["id"], wanted["link"]) for wanted in case["entries"]
        ]
        for entry, wanted in zip(found, case["entries"], strict=True):
            for name, value in (("updated", entry.updated), ("published", entry.published)):
                assert value == wanted.get(name) or value == instant(wanted.get(f"{name}_raw") or "")


def test_the_shared_dates_hold(cases: Path) -> None:
    for case in json.loads((cases / "feeds/date_strings.json").read_text("utf-8"))["cases"]:
        assert rfc_date(case["input"]) == case["expected"], case["input"]

"""Sitemaps: what is kept, what is refused, and when absence means nothing."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.discover.sitemap import SitemapDocument, SitemapKind, iter_sitemap, read_sitemap
from recrawl.errors import Misuse

URL = "https://shop.example/sitemap.xml"
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*entries: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {NS}>{"".join(entries)}</urlset>'.encode()


def page(path: str, extra: str = "") -> str:
    return f"<url><loc>https://shop.example/{path}</loc>{extra}</url>"


def read(data: bytes) -> SitemapDocument:
    return read_sitemap(data, URL)


def addresses(document: SitemapDocument) -> list[str]:
    return [entry.url.removeprefix("https://shop.example/") for entry in document.entries]


# What is no sitemap


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "an empty body"),
        (b" \r\n\t", "an empty body"),
        (
            b"<!DOCTYPE html><html><body>Not found: <a href='https://shop.example/'>home</a></body></html>",
            "an HTML page",
        ),
        (b"<br />\n<b>Warning</b>: out of memory", "an HTML page"),
        (b'{"error": "not found"}', "a JSON document"),
        (b"<error><code>404</code></error>", "an XML document of <error>"),
        (b"<URLSET><URL><LOC>https://shop.example/</LOC></URL></URLSET>", "an XML document of <URLSET>"),
        (b"User-agent: *\nSitemap: https://shop.example/robots.txt\n", "a text without a web address in it"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "binary data"),
        (b"<!-- nothing -->", "markup without an element"),
    ],
)
def test_what_is_no_sitemap_is_invalid_and_says_what_it_is(data: bytes, what: str) -> None:
    document = read(data)
    assert document.kind is SitemapKind.INVALID
    assert not document.complete
    assert document.entries == document.children == []
    assert document.problems == [f"This is no sitemap but {what}."]


def test_an_empty_urlset_is_a_complete_sitemap() -> None:
    document = read(urlset())
    assert (document.kind, document.entries, document.complete, document.problems) == (SitemapKind.URLSET, [], True, [])


def test_elements_that_hold_no_address_are_not_an_empty_sitemap() -> None:
    assert not read(urlset("<url><location>https://shop.example/a</location></url>")).complete


# Damage: keep what can be kept, and say that something may be missing


def test_a_truncated_document_keeps_its_finished_entries_and_never_half_an_address() -> None:
    whole = urlset(page("a"), page("bcd"))
    for end in range(whole.index(b"<url>"), len(whole) - 1):
        document = read(whole[:end])
        assert set(addresses(document)) <= {"a", "bcd"}
        assert not document.complete
    assert addresses(read(whole)) == ["a", "bcd"]


def test_a_truncated_gzip_is_incomplete() -> None:
    packed = gzip.compress(urlset(*(page(f"p/{n}") for n in range(5000))))
    document = read(packed[: len(packed) // 2])
    assert 0 < len(document.entries) < 5000
    assert not document.complete
    assert "The gzip stream ends too early." in document.problems


def test_a_damaged_gzip_is_incomplete() -> None:
    packed = bytearray(gzip.compress(urlset(page("a"))))
    packed[-8] ^= 0xFF
    document = read(bytes(packed))
    assert addresses(document) == ["a"]
    assert not document.complete


def test_bytes_behind_a_gzip_stream_are_reported() -> None:
    document = read(gzip.compress(urlset(page("a"))) + b"trailing")
    assert addresses(document) == ["a"]
    assert not document.complete


def test_a_gzip_bomb_is_stopped_in_flat_memory() -> None:
    filler = b"<!--" + b" " * 1_000_000 + b"-->" + page("x").encode()
    bomb = gzip.compress(b"<urlset>" + filler * 70 + b"</urlset>")
    assert len(bomb) < 200_000
    tracemalloc.start()
    reading = iter_sitemap(bomb, URL)
    found = sum(len(batch) for batch in reading.batches())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 40 < found < 60
    assert not reading.complete
    assert any("52,428,800 bytes" in problem for problem in reading.problems)
    assert peak < 20_000_000


@pytest.mark.parametrize(
    ("broken", "kept"),
    [
        ("<url><loc>https://shop.example/p?a=1&b=2</loc></url>", "p?a=1&b=2"),
        ("<url><loc>https://shop.example/caf\udce9</loc></url>", "caf%E9"),
        ("<url><loc>https://shop.example/a\x0bb</loc></url>", "a%0Bb"),
        ("<url><loc>https://shop.example/m</loc></mismatched>", "m"),
    ],
)
def test_a_broken_entry_is_kept_as_written_and_costs_no_other(broken: str, kept: str) -> None:
    text = f"<urlset>{page('first')}{broken}{page('last')}</urlset>"
    document = read(text.encode("utf-8", "surrogateescape"))
    assert addresses(document)[:2] == ["first", kept]
    assert "mismatched" in broken or addresses(document)[2:] == ["last"]
    assert not document.complete
    assert document.problems


@pytest.mark.parametrize(
    "text", [b"Notice: Undefined variable in x.php", b"<br />\n<b>Warning</b>: out of memory<br />"]
)
def test_text_before_the_document_is_skipped_and_reported(text: bytes) -> None:
    document = read(text + b"\n\n" + urlset(page("a")))
    assert addresses(document) == ["a"]
    assert not document.complete


def test_blank_lines_before_the_declaration_cost_nothing() -> None:
    document = read(b"\xef\xbb\xbf\n\n" + urlset(page("a")))
    assert addresses(document) == ["a"]
    assert document.complete


def test_entities_are_never_read_and_their_entry_is_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("top-secret")
    doctype = f'<!DOCTYPE urlset [<!ENTITY s SYSTEM "{secret.as_uri()}"><!ENTITY i "inner">]>'
    data = f"{doctype}<urlset>{page('a')}{page('&s;')}{page('x&i;')}{page('b')}</urlset>".encode()
    document = read(data)
    assert addresses(document) == ["a", "b"]
    assert not document.complete
    assert "top-secret" not in repr(document)


def test_entities_that_only_html_knows_become_their_characters() -> None:
    document = read(urlset(page("caf&eacute;")))
    assert addresses(document) == ["café"]
    assert document.complete


@pytest.mark.parametrize("nest", ["<url>", "<a>", "<url><loc>", "<![CDATA[", "<!--", "<a ", "&amp;", "&", "<?x "])
def test_hostile_repetition_ends_soon(nest: str) -> None:
    assert not read(f"<urlset>{nest * 50_000}".encode()).complete


# What is an entry


def test_only_loc_is_a_page_and_extensions_are_not() -> None:
    data = """<sit:urlset xmlns:sit="http://wrong.example/ns" xmlns:xhtml="http://www.w3.org/1999/xhtml"
        xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><!-- a comment --><sit:url>
        <sit:loc> https://shop.example/a </sit:loc><!-- another -->
        <image:image><image:loc>https://shop.example/a.png</image:loc></image:image>
        <image:loc>https://shop.example/b.png</image:loc>
        <xhtml:link rel="alternate" href="https://shop.example/de/a"/></sit:url></sit:urlset>"""
    assert addresses(read(data.encode())) == ["a"]


def test_an_index_has_children_and_several_locs_each_have_the_date_behind_them() -> None:
    data = """<sitemapindex><sitemap><loc>https://shop.example/1.xml?a=1&amp;b=2</loc><lastmod>2024-05-01</lastmod>
        <loc>/2.xml</loc></sitemap><sitemap>
        https://shop.example/3.xml </sitemap></sitemapindex>"""
    document = read(data.encode())
    assert document.kind is SitemapKind.INDEX
    assert [(child.url, child.modified) for child in document.children] == [
        ("https://shop.example/1.xml?a=1&b=2", "2024-05-01T00:00:00Z"),
        ("https://shop.example/2.xml", None),
        ("https://shop.example/3.xml", None),
    ]
    assert document.entries == []
    assert document.complete


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("<![CDATA[https://shop.example/?a=1&b=2]]>", "https://shop.example/?a=1&b=2"),
        ("https://shop.example/x<![CDATA[?q=a&l=fr]]>", "https://shop.example/x?q=a&l=fr"),
        ("\u00a0\u2000https://shop.example/w\u200b", "https://shop.example/w"),
        ("HTTPS://Shop.Example:443/A#f", "HTTPS://Shop.Example:443/A#f"),
        ("\n  https://shop.example/long\n  /path", "https://shop.example/long/path"),
        ("../up", "https://shop.example/up"),
    ],
)
def test_an_address_is_absolute_and_as_found_but_for_white_space(written: str, url: str) -> None:
    assert [entry.url for entry in read(urlset(f"<url><loc>{written}</loc></url>")).entries] == [url]


@pytest.mark.parametrize("written", ["mailto:a@shop.example", "javascript:void(0)", "https://" + "a" * 9000, ""])
def test_what_is_no_web_address_is_left_out_with_a_reason(written: str) -> None:
    document = read(urlset(page("a"), f"<url><loc>{written}</loc></url>"))
    assert addresses(document) == ["a"]
    assert document.problems


def test_repeated_addresses_are_kept() -> None:
    assert addresses(read(urlset(page("a"), page("a")))) == ["a", "a"]


@pytest.mark.parametrize(
    ("written", "modified"),
    [
        ("2024-05-01", "2024-05-01T00:00:00Z"),
        ("2024-05", "2024-05-01T00:00:00Z"),
        ("2024-05-01T08:00+08:00", "2024-05-01T00:00:00Z"),
        ("2024-05-01T08:00:00.123456Z", "2024-05-01T08:00:00Z"),
        ("2024-05-01T08:00:00", None),
        ("2024-05-01T08:00:00Z 2024-05-02T08:00:00Z", None),
        ("0001-01-01T00:00:00-99:00", None),
        ("2024-02-30", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_date_that_cannot_be_understood_costs_only_itself(written: str, modified: str | None) -> None:
    document = read(urlset(page("a", f"<lastmod>{written}</lastmod>")))
    assert [entry.modified for entry in document.entries] == [modified]
    assert document.complete


def test_the_zone_of_the_source_places_times_without_one() -> None:
    data = urlset(page("a", "<lastmod>2024-05-01 08:00:00</lastmod>"))
    assert read_sitemap(data, URL, zone="Asia/Shanghai").entries[0].modified == "2024-05-01T00:00:00Z"
    with pytest.raises(Misuse, match="no time zone 'Mars/Base'"):
        read_sitemap(data, URL, zone="Mars/Base")


# Other forms


def test_a_text_sitemap_has_an_address_a_line() -> None:
    document = read(
        b"\xef\xbb\xbf# ours\r\nhttps://shop.example/a\r\rhttps://shop.example/caf\xe9\nhttps://shop.example/b"
    )
    assert document.kind is SitemapKind.TEXT
    assert addresses(document) == ["a", "caf%E9", "b"]


def test_a_line_that_is_no_address_makes_a_text_sitemap_incomplete() -> None:
    document = read(b"https://shop.example/a\n/b\nhttps://shop.example/c\n")
    assert addresses(document) == ["a", "c"]
    assert not document.complete


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-32", "gbk"])
def test_every_common_encoding_is_read(codec: str) -> None:
    text = f'<?xml version="1.0" encoding="{codec}"?><urlset>{page("书")}</urlset>'
    document = read(text.encode(codec))
    assert addresses(document) == ["书"]
    assert document.complete


def test_gzip_is_known_by_its_bytes_and_may_have_several_members() -> None:
    whole = urlset(page("a"), page("b"))
    document = read_sitemap(gzip.compress(whole[:90]) + gzip.compress(whole[90:]) + b"\0\0", URL, "text/plain")
    assert addresses(document) == ["a", "b"]
    assert document.complete


def test_a_feed_in_place_of_a_sitemap_gives_its_links() -> None:
    data = """<rss version="2.0"><channel><item><link>https://shop.example/a</link><guid>1</guid>
        <pubDate>Thu, 05 Jan 17 13:34:52 +0100</pubDate></item><item><guid>urn:x</guid></item></channel></rss>"""
    document = read(data.encode())
    assert document.kind is SitemapKind.RSS
    assert [(entry.url, entry.modified) for entry in document.entries] == [
        ("https://shop.example/a", "2017-01-05T12:34:52Z")
    ]


def test_batches_have_the_size_asked_for_and_the_document_may_be_longer_than_the_protocol_allows() -> None:
    reading = iter_sitemap(urlset(*(page(str(n)) for n in range(50_500))), URL, size=1000)
    assert reading.kind is SitemapKind.URLSET
    assert not reading.complete
    sizes = [len(batch) for batch in reading.batches()]
    assert sizes == [1000] * 50 + [500]
    assert reading.complete


# Any input


@settings(max_examples=150, deadline=2000)
@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"<urlset>", b"<rss>", b"\x1f\x8b\x08\0", b"http://x/\n", b"\xff\xfe<\0"]),
)
def test_any_bytes_are_read_without_an_exception(tail: bytes, start: bytes) -> None:
    document = read(start + tail)
    for entry in (*document.entries, *document.children):
        entry.url.encode()
        assert entry.url.lower().startswith(("http://", "https://"))
    assert document.complete or document.problems


PARTS = (
    "<urlset> </urlset> <url> </url> <loc> </loc> <lastmod> <sitemap> http://x/a & &amp; &x; <!-- --> <![CDATA[ ]]> "
    "<!DOCTYPE [ ]> <?xml ?> 2024-01-01 \ud800 \0 é <a:b> <item> <link> </link> <guid>"
)
MARKUP = st.lists(st.sampled_from(PARTS.split(" ")), max_size=40)


@settings(max_examples=150, deadline=2000)
@given(MARKUP)
def test_any_markup_is_read_without_an_exception(parts: list[str]) -> None:
    read("".join(["<urlset>", *parts]).encode("utf-8", "surrogatepass"))


@given(st.lists(st.from_regex(r"[a-z0-9/?=&;#%.é书<>'\" -]{0,30}[a-z]", fullmatch=True), max_size=10))
def test_what_is_written_properly_is_read_back(paths: list[str]) -> None:
    escaped = [path.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for path in paths]
    document = read(urlset(*map(page, escaped)))
    assert addresses(document) == paths
    assert document.complete


# Real documents


def test_the_shared_cases_hold(cases: Path) -> None:
    folder = cases / "sitemaps"
    for case in json.loads((folder / "expected.json").read_text("utf-8"))["cases"]:
        document = read_sitemap((folder / case["file"]).read_bytes(), case["url"], case["content_type"])
        entries = [*document.entries, *document.children]
        if case["requirement"] == "hard":
            assert document.kind == case["kind"], case["file"]
            assert [entry.url for entry in entries] == case["locs"], case["file"]
            wanted = [lastmod and lastmod["utc"] for lastmod in case["lastmods"] or [None] * case["count"]]
            assert [entry.modified for entry in entries] == wanted, case["file"]
            assert document.complete is (case["kind"] != "invalid"), case["file"]
        else:
            assert {entry.url for entry in entries} >= set(case["locs"]) or not document.complete, case["file"]

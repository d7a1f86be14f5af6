"""Problems that users of other tools reported, each as a case: URLs, sitemaps, feeds, dates, prices, encodings.

Those of APIs, validators and changes are in `test_api` and `test_scenarios`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from recrawl import Auto, Feed, Identity, Price, Record, Source, css, parse_price
from recrawl.decide.urls import canonical_url
from recrawl.discover.dates import instant, rfc_date
from recrawl.discover.feed import read_feed
from recrawl.discover.sitemap import read_sitemap
from recrawl.extract.charset import decode
from recrawl.store.database import Store
from tests.support.finding import find
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import one, rows
from tests.test_sync import sync

ELSEWHERE = {"api", "http", "change"}
SITE = "https://site.example"


@pytest.fixture
def bugs(cases: Path) -> dict[str, Any]:
    found = json.loads((cases / "bugs" / "cases.json").read_bytes())["cases"]
    return {case["id"]: case for case in found if case["area"] not in ELSEWHERE}


def test_each_case_is_shown_to_be_right(bugs: dict[str, Any]) -> None:
    of_sites = {"bug-16-sitemap-child-redirects", "bug-17-sitemap-is-robots", "bug-29-guid-follows-title"}
    for name, case in bugs.items():
        if name not in of_sites:
            _AREAS[case["area"]](case["input"], case["expected"])
    assert of_sites <= bugs.keys()


def _url(given: dict[str, Any], expected: dict[str, Any]) -> None:
    if "canon_twice" in given:
        once = canonical_url(given["canon_twice"])
        assert once == canonical_url(once) == expected["canon"]
    elif "different" in given:
        assert len({canonical_url(url) for url in given["different"]}) == 2
    else:
        rules = Identity(fragments=True)
        assert len({canonical_url(url, None, rules) for url in given["urls"]}) == expected["distinct"]


def _sitemap(given: dict[str, Any], expected: dict[str, Any]) -> None:
    document = read_sitemap(given["file"].encode(), f"{SITE}/sitemap.xml")
    listed = [*document.entries, *document.children]
    assert [entry.url for entry in listed] == (expected.get("locs") or expected["children"])
    if "lastmods" in expected:
        assert [entry.modified for entry in listed] == expected["lastmods"]


def _feed(given: dict[str, Any], expected: dict[str, Any]) -> None:
    document = read_feed(given["file"].encode(), given.get("feed_url", f"{SITE}/feed.xml"))
    if "links" in expected:
        assert [entry.url for entry in document.entries] == expected["links"]
    else:
        assert len(document.entries) == expected["records"]
    assert bool(document.problems) is expected.get("warning", bool(document.problems))


def _feed_date(given: dict[str, Any], expected: dict[str, Any]) -> None:
    text, utc = given["pubDate"], expected["utc"]
    if " with tz " in utc:
        at, zone = utc.split(", else unknown")[0].split(" with tz ")
        assert instant(text, ZoneInfo(zone)) == at
        assert instant(text) is None
    elif "source_tz" in given:
        assert instant(text, ZoneInfo(given["source_tz"])) == utc
    else:
        assert rfc_date(text) == utc


def _price(given: dict[str, Any], expected: dict[str, Any]) -> None:
    found = parse_price(given["price"])
    assert isinstance(found, Price)
    assert (str(found.amount), found.currency) == (expected["amount"], expected["currency"])


def _encoding(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert f"<title>{expected['title']}</title>" in decode(bytes.fromhex(given["bytes_hex"]), given["content_type"])


_AREAS: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "url": _url,
    "sitemap": _sitemap,
    "feed": _feed,
    "feed-date": _feed_date,
    "price": _price,
    "encoding": _encoding,
}


@pytest.mark.parametrize("name", ["bug-16-sitemap-child-redirects", "bug-17-sitemap-is-robots"])
def test_a_site_whose_sitemaps_lead_in_a_circle_comes_to_an_end(bugs: dict[str, Any], store: Store, name: str) -> None:
    given, expected = bugs[name]["input"]["site"], bugs[name]["expected"]
    with ScriptedSite() as site:
        for path, body in given.items():
            if body.startswith("301 "):
                site[path] = Reply(status=301, headers={"Location": site.url + body.removeprefix("301 ")})
            else:
                kind = "text/plain" if path == "/robots.txt" else "application/xml"
                site[path] = Reply(body.replace(SITE, site.url), headers={"Content-Type": kind})
        find(Source("site", find=Auto(f"{site.url}/")), store)
        found = [row["url"].replace(site.url, SITE) for row in rows(store, "SELECT url FROM pages")]
        assert found == expected["pages"]
        assert site.paths().count("/sitemap.xml") <= 2


class Item(Record, table="items", key="url"):
    url: str
    title: str = css("title::text")


def test_an_entry_whose_id_and_address_follow_its_title_is_one_record(bugs: dict[str, Any], store: Store) -> None:
    case = bugs["bug-29-guid-follows-title"]
    with ScriptedSite() as site:
        declared = Source("news", find=Feed(f"{site.url}/feed.xml"), read=Item, page_id=re.compile(r"a-(\d+)"))
        for state in ("before", "after"):
            body = case["input"][state].replace("https://news.example", site.url)
            entry = read_feed(body.encode(), f"{site.url}/feed.xml").entries[0]
            assert entry.url is not None
            site["/feed.xml"] = Reply(body, headers={"Content-Type": "application/rss+xml"})
            site[entry.url.removeprefix(site.url)] = Reply(f"<title>{entry.title}</title><p>{entry.title}</p>")
            sync(declared, store)
        assert one(store, "SELECT count(*) FROM pages") == case["expected"]["records"]
        assert one(store, "SELECT count(*) FROM versions") == case["expected"]["versions"]

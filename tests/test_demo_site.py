"""The demo site misbehaves exactly as it says, and changes exactly as its story tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPMessage, RemoteDisconnected
from time import monotonic
from urllib.parse import urlsplit
from xml.etree import ElementTree

import feedparser
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from recrawl.demo.plot import DAYS, QUIRKS, RESTAMPED, Kind, Quirk
from recrawl.demo.site import DemoSite
from recrawl.errors import Misuse
from recrawl.fetch.robots import crawl_delay, robots_allows, robots_sitemaps

SITEMAPS = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}


@dataclass(frozen=True)
class Got:
    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("gbk" if b"gb2312" in self.body else "utf-8")


class Client:
    """One connection to a site, kept alive; follows nothing."""

    def __init__(self, site: DemoSite) -> None:
        self.site = site
        self._connection = HTTPConnection(urlsplit(site.url).netloc, timeout=5)

    def get(self, target: str, method: str = "GET", **headers: str) -> Got:
        self._connection.request(method, target, headers={key.replace("_", "-"): v for key, v in headers.items()})
        answer = self._connection.getresponse()
        return Got(answer.status, answer.headers, answer.read())

    def sitemap(self, section: str) -> dict[str, str | None]:
        """Paths with their lastmod."""
        root = ElementTree.fromstring(self.get(f"/sitemaps/{section}.xml").body)
        return {
            (url.findtext("s:loc", "", SITEMAPS)).removeprefix(self.site.url): url.findtext("s:lastmod", None, SITEMAPS)
            for url in root.findall("s:url", SITEMAPS)
        }

    def listed(self) -> dict[str, str | None]:
        return self.sitemap("news") | self.sitemap("shop")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def site() -> Iterator[DemoSite]:
    with DemoSite() as site:
        yield site


@pytest.fixture
def client(site: DemoSite) -> Iterator[Client]:
    client = Client(site)
    yield client
    client.close()


def business(got: Got) -> tuple[str, ...]:
    """What a page says, without its frame, counters and tokens; nothing of a captcha or an error."""
    if got.status != 200 or "captcha" in got.text:
        return ()
    if "html" not in got.headers["Content-Type"]:
        return (got.text,)
    tree = LexborHTMLParser(got.text)
    selectors = ("h1", ".author", ".article-body p", ".sku", ".price", ".stock", ".blurb")
    return tuple(node.text(strip=True) for selector in selectors for node in tree.css(selector))


def with_quirk(quirk: Quirk) -> str:
    return next(path for path, its in QUIRKS.items() if its is quirk)


# Misbehaviour


def test_a_busy_page_is_503_with_retry_after_at_the_first_request_of_each_day(site: DemoSite, client: Client) -> None:
    path = with_quirk(Quirk.BUSY)
    for day in (1, 2):
        site.step(day)
        first, second = client.get(path), client.get(path)
        assert (first.status, first.headers["Retry-After"]) == (503, "1")
        assert second.status == 200


def test_a_lost_page_is_listed_and_404(client: Client) -> None:
    path = with_quirk(Quirk.LOST)
    assert path in client.listed()
    assert client.get(path).status == 404


def test_an_old_address_is_listed_and_301_to_a_page_that_exists(client: Client) -> None:
    path = with_quirk(Quirk.OLD_ADDRESS)
    assert path in client.listed()
    answer = client.get(path)
    assert answer.status == 301
    assert client.get(urlsplit(answer.headers["Location"]).path).status == 200


def test_a_letter_for_members_is_302_to_a_login_page(client: Client) -> None:
    path = with_quirk(Quirk.LOGIN)
    assert path in client.listed()
    answer = client.get(path)
    assert answer.status == 302
    login = client.get(answer.headers["Location"])
    assert login.status == 200
    assert b'type="password"' in login.body


def test_a_captcha_stands_in_the_place_of_a_product_with_status_200_on_day_2_only(
    site: DemoSite, client: Client
) -> None:
    path = with_quirk(Quirk.CAPTCHA)
    good = client.get(path)
    site.step(2)
    blocked = client.get(path, If_None_Match=good.headers["ETag"])
    assert blocked.status == 200
    assert "verify you are human" in blocked.text
    assert "安全验证" in blocked.text
    assert "HB-2013" not in blocked.text
    site.step(3)
    assert business(client.get(path)) == business(good) != ()


def test_a_noisy_page_differs_at_every_request_and_says_the_same(client: Client) -> None:
    first, second = (client.get(with_quirk(Quirk.NOISY)) for _ in range(2))
    assert first.body != second.body
    assert business(first) == business(second) != ()
    assert first.headers["ETag"] is first.headers["Last-Modified"] is None


def test_a_fresh_etag_comes_with_the_same_bytes(client: Client) -> None:
    path = with_quirk(Quirk.FRESH_ETAG)
    first = client.get(path)
    second = client.get(path, If_None_Match=first.headers["ETag"])
    assert second.status == 200
    assert second.body == first.body
    assert second.headers["ETag"] != first.headers["ETag"]


def test_a_silent_page_never_sends_validators(client: Client) -> None:
    answer = client.get(with_quirk(Quirk.SILENT), If_Modified_Since="Mon, 02 Jun 2025 00:00:00 GMT")
    assert answer.status == 200
    assert answer.headers["ETag"] is answer.headers["Last-Modified"] is None


@pytest.mark.parametrize("path", [path for path, quirk in QUIRKS.items() if quirk is Quirk.DATED])
def test_a_dated_text_is_revalidated_by_its_last_modified_alone(client: Client, path: str) -> None:
    first = client.get(path)
    assert first.headers["Content-Type"].startswith("text/")
    assert "html" not in first.headers["Content-Type"]
    assert first.headers["ETag"] is None
    assert client.get(path, If_Modified_Since=first.headers["Last-Modified"]).status == 304
    assert client.get(path, If_Modified_Since="Sun, 01 Jan 2023 00:00:00 GMT").status == 200
    assert client.get(path, If_Modified_Since="yesterday").status == 200


def test_a_gbk_page_is_declared_gb2312_and_holds_a_character_that_gb2312_lacks(client: Client) -> None:
    answer = client.get(with_quirk(Quirk.GBK))
    assert answer.headers["Content-Type"] == "text/html; charset=gb2312"
    assert "李喆" in answer.body.decode("gbk")
    with pytest.raises(UnicodeDecodeError):
        answer.body.decode("gb2312")


def test_a_slow_page_takes_three_tenths_of_a_second(client: Client) -> None:
    began = monotonic()
    assert client.get(with_quirk(Quirk.SLOW)).status == 200
    assert monotonic() - began >= 0.3


def test_private_pages_are_linked_and_disallowed_and_there_is_no_crawl_delay(client: Client) -> None:
    robots, site = client.get("/robots.txt").text, client.site.url
    link = re.search(r'href="(/private/[^"]+)"', client.get("/").text)
    assert link is not None
    assert client.get(link[1]).status == 200
    assert not robots_allows(robots, "recrawl", site + link[1])
    assert robots_allows(robots, "recrawl", f"{site}/shop/")
    assert crawl_delay(robots, "recrawl") is None
    assert robots_sitemaps(robots, site) == [f"{site}/sitemap.xml"]


# Good behaviour


def test_a_right_etag_saves_an_unchanged_article_and_not_an_edited_one(site: DemoSite, client: Client) -> None:
    edited, untouched = "/news/en/1005-storm-drains", "/news/en/1001-ferry-timetable"
    tags = {path: client.get(path).headers["ETag"] for path in (edited, untouched)}
    assert client.get(edited, If_None_Match=f'"other", {tags[edited]}').status == 304
    site.step(2)
    assert client.get(edited, If_None_Match=tags[edited]).status == 200
    not_modified = client.get(untouched, If_None_Match=tags[untouched])
    assert (not_modified.status, not_modified.body) == (304, b"")


def test_a_products_weak_etag_holds_while_its_counters_turn_and_falls_with_the_new_frame(
    site: DemoSite, client: Client
) -> None:
    path = "/shop/zh/HB-2003"
    first, second = client.get(path), client.get(path)
    tag = first.headers["ETag"]
    assert tag == second.headers["ETag"]
    assert tag.startswith("W/")
    assert first.body != second.body
    assert client.get(path, If_None_Match=tag).status == 304
    site.step(2)
    assert client.get(path, If_None_Match=tag).status == 200


def test_the_new_frame_leaves_every_product_and_its_selectors_as_they_were(site: DemoSite, client: Client) -> None:
    path = "/shop/en/HB-1004"
    before = client.get(path)
    site.step(2)
    after = client.get(path)
    assert "sale-banner" in after.text
    assert "sale-banner" not in before.text
    assert business(before) == business(after)
    tree = LexborHTMLParser(after.text)
    found = [tree.css_first(selector) for selector in ("h1.name", ".sku", ".price", ".stock", ".viewers")]
    assert [node.text() for node in found if node][:4] == ["Rope door mat", "HB-1004", "$34.00", "In stock"]
    assert found[4] is not None
    assert found[4].text().isdigit()


def test_the_api_gives_each_product_of_the_sitemap_once_over_all_its_pages(client: Client) -> None:
    urls: list[str] = []
    target: str | None = "/api/items"
    while target:
        answer = orjson.loads(client.get(target).body)
        urls += [urlsplit(item["url"]).path for item in answer["items"]]
        target = answer["next"] and answer["next"].removeprefix(client.site.url)
    assert sorted(urls) == sorted(client.sitemap("shop"))
    assert answer["total"] == len(urls)


@pytest.mark.parametrize("page", ["0", "-1", "x", "٣", "1" * 5000])
def test_a_page_number_that_is_none_is_a_bad_request(site: DemoSite, page: str) -> None:
    assert site.answer(f"/api/items?page={page}", {}).status == 400


def test_the_sitemap_index_names_two_sitemaps_with_more_than_a_hundred_pages(client: Client) -> None:
    root = ElementTree.fromstring(client.get("/sitemap.xml").body)
    locations = [loc.text for loc in root.findall("s:sitemap/s:loc", SITEMAPS)]
    assert locations == [f"{client.site.url}/sitemaps/{name}.xml" for name in ("news", "shop")]
    assert len(client.listed()) > 110


def test_the_feed_begins_with_the_articles_of_the_day(site: DemoSite, client: Client) -> None:
    before = feedparser.parse(client.get("/feed.xml").body)
    site.step(2)
    after = feedparser.parse(client.get("/feed.xml").body)
    assert not before.bozo
    assert len(before.entries) == len(after.entries) == 20
    new = {urlsplit(entry.link).path for entry in after.entries[:2]}
    assert new == {change.url for change in story(site, 2, Kind.ADDED) if change.url.startswith("/news/")}
    assert all(entry.link.endswith("?utm_source=rss") for entry in after.entries)
    assert client.get(after.entries[0].link.removeprefix(site.url)).status == 200


def test_head_is_get_without_a_body(client: Client) -> None:
    got, head = client.get("/news/en/1001-ferry-timetable"), client.get("/news/en/1001-ferry-timetable", "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers.items() == got.headers.items()


# Days


def story(site: DemoSite, day: int, *kinds: Kind) -> list[Changed]:
    return [
        Changed(change.url.removeprefix(site.url), change.after.removeprefix(site.url), change.silent)
        for change in site.story(day)
        if change.kind in kinds
    ]


@dataclass(frozen=True)
class Changed:
    url: str
    after: str
    silent: bool


def contents(client: Client) -> dict[str, tuple[str, ...]]:
    """What each listed page says, by the address at which it truly stands."""
    found = {}
    for path in client.listed():
        answer = client.get(path)
        if answer.status == 503:
            answer = client.get(path)
        if answer.status == 301:
            path = urlsplit(answer.headers["Location"]).path
            answer = client.get(path)
        if answer.status == 200:
            found[path] = business(answer)
    return found


def test_on_the_first_day_all_pages_are_new(site: DemoSite, client: Client) -> None:
    assert {change.url for change in story(site, 1, Kind.ADDED)} == contents(client).keys()


def test_each_day_changes_what_its_story_tells_and_nothing_else(site: DemoSite, client: Client) -> None:
    before = contents(client)
    for day in range(2, DAYS + 1):
        site.step(day)
        after = contents(client)
        moved = {change.url: change.after for change in story(site, day, Kind.MOVED)}
        appeared, vanished = after.keys() - before.keys(), before.keys() - after.keys()
        assert appeared - {*moved.values()} == {c.url for c in story(site, day, Kind.ADDED, Kind.RESTORED)}
        assert vanished - {*moved} == {change.url for change in story(site, day, Kind.REMOVED)}
        for old, new in moved.items():
            assert before[old] == after[new]
        for path in vanished - {*moved}:
            assert client.get(path).status == 404
        # A captcha says nothing about the product behind it.
        kept = {path for path in before.keys() & after.keys() if before[path] and after[path]}
        edited = {path for path in kept if before[path] != after[path]}
        assert edited == {change.url for change in story(site, day, Kind.EDITED)}
        before = after | {path: before[path] for path in before.keys() & after.keys() if not after[path]}


def test_what_is_restored_says_what_it_said_before(site: DemoSite, client: Client) -> None:
    (restored,) = story(site, 3, Kind.RESTORED)
    before = business(client.get(restored.url))
    site.step(2)
    assert client.get(restored.url).status == 404
    site.step(3)
    assert business(client.get(restored.url)) == before


def test_noise_changes_the_bytes_and_not_the_text(site: DemoSite, client: Client) -> None:
    (noise,) = story(site, 2, Kind.NOISE)
    before = client.get(noise.url)
    site.step(2)
    after = client.get(noise.url, If_None_Match=before.headers["ETag"])
    assert after.status == 200
    assert after.body != before.body
    assert business(after) == business(before)


def test_lastmod_moves_with_a_change_but_for_the_pages_that_are_known_to_be_wrong(
    site: DemoSite, client: Client
) -> None:
    before = client.listed()
    for day in range(2, DAYS + 1):
        site.step(day)
        after = client.listed()
        moved = {path for path, lastmod in after.items() if path in before and lastmod != before[path]}
        told = {change.url for change in story(site, day, Kind.EDITED, Kind.NOISE, Kind.MOVED) if not change.silent}
        dated = {path for path in told if after.get(path)}
        restamped = {path for path in after if path.startswith("/shop/en/")} if day == 2 else RESTAMPED
        assert moved == dated | restamped
        before = after


def test_two_sites_that_are_asked_the_same_answer_the_same(site: DemoSite, client: Client) -> None:
    def everything(client: Client) -> list[tuple[str, int, str, list[tuple[str, str]]]]:
        answers = []
        for day in range(1, DAYS + 1):
            client.site.step(day)
            for path in (*client.listed(), "/", "/news/", "/shop/", "/feed.xml", "/api/items?page=2"):
                got = client.get(path)
                headers = [
                    (name, value.replace(client.site.url, ""))
                    for name, value in got.headers.items()
                    if name != "ETag" or path[1:5] in ("news", "shop")
                ]
                answers.append((path, got.status, got.text.replace(client.site.url, ""), headers))
        return answers

    with DemoSite() as other:
        second = Client(other)
        assert everything(client) == everything(second)
        second.close()


@pytest.mark.parametrize("day", [0, -1, DAYS + 1])
def test_a_day_that_does_not_exist_is_misuse_and_changes_nothing(site: DemoSite, day: int) -> None:
    site.step(2)
    with pytest.raises(Misuse, match=f"no day {day}"):
        site.step(day)
    with pytest.raises(Misuse):
        site.story(day)
    assert site.day == 2


# The server


def test_a_client_cannot_change_the_site(client: Client) -> None:
    assert client.get("/shop/", "POST").status == 501
    assert client.site.day == 1


def test_the_site_knows_what_it_served(site: DemoSite, client: Client) -> None:
    tag = client.get("/news/en/1001-ferry-timetable").headers["ETag"]
    site.step(2)
    client.get("/news/en/1001-ferry-timetable?x=1", If_None_Match=tag)
    assert [(s.day, s.target, s.status, s.conditional) for s in site.served] == [
        (1, "/news/en/1001-ferry-timetable", 200, False),
        (2, "/news/en/1001-ferry-timetable?x=1", 304, True),
    ]


def test_a_stopped_site_answers_no_more_on_connections_that_were_open() -> None:
    with DemoSite() as site:
        client = Client(site)
        assert client.get("/robots.txt").status == 200
    with pytest.raises((RemoteDisconnected, ConnectionError)):
        client.get("/robots.txt")
    with pytest.raises(ConnectionRefusedError):
        Client(site).get("/robots.txt")
    client.close()


def test_a_site_that_never_started_can_be_stopped() -> None:
    DemoSite().stop()


@cache
def _unstarted() -> DemoSite:
    site = DemoSite()
    site.stop()
    return site


@given(st.text(), st.dictionaries(st.sampled_from(["if-none-match", "if-modified-since"]), st.text()))
def test_no_request_target_and_no_validator_makes_the_site_fail(target: str, headers: dict[str, str]) -> None:
    site = _unstarted()
    for path in (target, f"/{target}", f"/api/items?{target}", "/news/tide-tables.md"):
        assert site.answer(path, headers).status in (200, 304, 400, 404)


def test_the_declarations_are_two_sources() -> None:
    from recrawl.demo.shop import declarations

    assert [source.name for source in declarations("http://127.0.0.1:1")] == ["shop", "news"]

"""Links followed by rule, addresses made of another source's rows, feeds of several pages, and the examples shown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from recrawl.declare import Derived, Feed, Links, Record, Sitemap, Source, Urls, css
from recrawl.declare.load import load
from recrawl.declare.toml import read_toml
from recrawl.discover.feed import read_feed
from recrawl.discover.fill import filled
from recrawl.run.engine import Ending
from recrawl.store.database import Store
from tests.support.finding import ended_whole, find, found, listed, missed
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import rows
from tests.test_sync import sync

FINDING = Path(__file__).parent.parent / "docs" / "finding.md"


@pytest.fixture
def store(empty: Store) -> Store:
    return empty


def at(site: ScriptedSite, *paths: str) -> set[str]:
    return {site.url + path for path in paths}


# Links


def linking(*links: str, head: str = "", rel: str = "") -> Reply:
    return Reply(f"<head>{head}</head>" + "".join(f"<a href='{link}' rel='{rel}'>x</a>" for link in links))


def followed(site: ScriptedSite, **options: Any) -> Source:
    given: dict[str, Any] = {"follow": "/topic", "pages": "/article"}
    return Source("wiki", find=Links(f"{site.url}/", **(given | options)), forced_looks=0.0)


def test_links_are_followed_by_rule_each_once_on_the_own_site(site: ScriptedSite, store: Store) -> None:
    site["/"] = linking("/topic/a", "/article/1", "/about", "https://other.example/topic/x", "mailto:a@b.example")
    site["/topic/a"] = linking("/topic/b#top", "/", "/article/2", "https://other.example/article/9")
    site["/topic/b"] = linking("/topic/a", "/topic/b", "/article/3")
    assert find(followed(site), store) == []
    assert found(store, "wiki") == at(site, "/article/1", "/article/2", "/article/3")
    assert site.paths() == ["/", "/topic/a", "/topic/b"]
    assert ended_whole(store, "wiki")


def test_what_unchanged_pages_link_to_is_still_followed_whichever_of_them_led_there_first(
    site: ScriptedSite, store: Store
) -> None:
    site["/"] = linking("/topic/a", "/topic/b")
    site["/topic/a"] = linking("/topic/c", "/article/1")
    site["/topic/b"] = linking("/topic/c", "/topic/a")
    site["/topic/c"] = linking("/topic/b", "/article/2")
    find(followed(site), store)
    site["/topic/a"] = linking("/article/1")
    assert find(followed(site), store) == []
    assert missed(store, "wiki") == set()
    site["/topic/c"] = linking()
    assert find(followed(site), store) == []
    assert missed(store, "wiki") == at(site, "/article/2")


def test_depth_cuts_off_and_then_nothing_is_concluded_from_absence(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/"] = linking("/topic/a")
    site["/topic/a"] = linking("/topic/b", "/article/1")
    site["/topic/b"] = linking("/article/2")
    assert find(followed(site, depth=1), sqlite_store) == []
    assert found(sqlite_store, "wiki") == at(site, "/article/1")
    assert not ended_whole(sqlite_store, "wiki")
    find(followed(site, depth=2), sqlite_store)
    assert ended_whole(sqlite_store, "wiki")


def test_nofollow_is_heeded_for_following_and_not_for_pages(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/"] = Reply(
        "<a rel='external nofollow' href=/topic/a>x</a><a rel=nofollow href=/article/1>x</a><a href=/topic/b>"
    )
    site["/topic/b"] = linking("/topic/c", "/article/2", head="<meta name=robots content='noindex, NoFollow'>")
    assert find(followed(site), sqlite_store) == []
    assert site.paths() == ["/", "/topic/b"]
    assert found(sqlite_store, "wiki") == at(site, "/article/1", "/article/2")


def test_links_that_lead_nowhere_or_where_robots_are_not_wanted_are_left_out(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    site["/robots.txt"] = Reply("User-agent: *\nDisallow: /topic/secret", headers={"Content-Type": "text/plain"})
    site["/"] = linking("/topic/secret", "/topic/gone", "/topic/file", "/article/1")
    site["/topic/file"] = Reply(b"%PDF-1.7", headers={"Content-Type": "application/pdf"})
    assert find(followed(site), sqlite_store) == []
    assert "/topic/secret" not in site.paths()
    assert ended_whole(sqlite_store, "wiki")


def test_a_first_page_that_is_missing_or_one_that_fails_is_a_trouble(site: ScriptedSite, sqlite_store: Store) -> None:
    assert [trouble.kind for trouble in find(followed(site), sqlite_store)] == ["http_404"]
    site["/"] = linking("/topic/a", "/article/1")
    site["/topic/a"] = Reply("", 500)
    (trouble,) = find(followed(site), sqlite_store)
    assert trouble.again
    assert not ended_whole(sqlite_store, "wiki")


def test_a_calendar_without_end_is_a_trap(
    site: ScriptedSite, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.steps.links._MOST_BARREN", 20)
    site["/"] = linking("/topic/music", "/topic/2026/1")
    site["/topic/music"] = linking("/article/1")
    for month in range(1, 60):
        site[f"/topic/2026/{month}"] = linking(f"/topic/2026/{month + 1}", "/article/1")
    (trouble,) = find(followed(site), sqlite_store)
    assert (trouble.kind, "/topic/2026/" in trouble.message) == ("trap", True)
    assert len(site.paths()) == 2 + 20
    assert found(sqlite_store, "wiki") == at(site, "/article/1")


def test_more_links_than_are_followed_are_told(
    site: ScriptedSite, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.steps.links.MOST", 10)
    site["/"] = linking(*(f"/topic/{name}" for name in "abcdefghijklmnop"))
    assert [trouble.kind for trouble in find(followed(site), sqlite_store)] == ["too_many"]
    assert not ended_whole(sqlite_store, "wiki")


# Derived


class Thing(Record, table="things", key="sku"):
    sku: str = css("b.sku::text")
    kind: str = css("i::text", default="book")


class Part(Record, table="parts", key="sku"):
    sku: str = css("b.sku::text")


def thing(sku: str, kind: str = "book") -> Reply:
    return Reply(f"<b class=sku>{sku}</b><i>{kind}</i>")


def things(site: ScriptedSite, *paths: str, read: Any = Thing) -> Source:
    return Source("things", find=Urls([site.url + path for path in paths]), read=read)


def derived(site: ScriptedSite, template: str = "/reviews/{sku}", **options: Any) -> Source:
    given: dict[str, Any] = {"source": "things"}
    return Source("reviews", find=Derived(site.url + template, **(given | options)), forced_looks=0.0)


def test_addresses_are_made_of_the_rows_of_another_source_and_go_with_them(site: ScriptedSite, store: Store) -> None:
    for path, sku in {"/1": "a b/c", "/2": "é&?#", "/3": "3"}.items():
        site[path] = thing(sku)
    sync(things(site, "/1", "/2", "/3"), store)
    assert find(derived(site), store) == []
    assert found(store, "reviews") == at(site, "/reviews/a%20b%2Fc", "/reviews/%C3%A9%26%3F%23", "/reviews/3")
    assert ended_whole(store, "reviews")
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE things SET _deleted_at = _updated_at WHERE sku = '3'")
    assert find(derived(site), store) == []
    assert missed(store, "reviews") == at(site, "/reviews/3")


def test_rows_that_stay_cost_no_sighting(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/1"] = thing("1")
    sync(things(site, "/1"), sqlite_store)
    find(derived(site), sqlite_store)
    count = "SELECT count(*) FROM batches WHERE source = 'reviews'"
    with sqlite_store.read() as connection:
        before = connection.exec_driver_sql(count).scalar_one()
    assert find(derived(site), sqlite_store) == []
    with sqlite_store.read() as connection:
        assert connection.exec_driver_sql(count).scalar_one() == before
    assert listed(sqlite_store, "reviews") == at(site, "/reviews/1")


def test_many_rows_are_read_in_parts_of_which_a_new_row_changes_one(site: ScriptedSite, store: Store) -> None:
    site["/1"] = thing("0")
    sync(things(site, "/1"), store)

    def add(numbers: range) -> None:
        rows = ", ".join(f"('things', '{n:05}', 'book', 'p', 1, '2026-01-01')" for n in numbers)
        with store.engine.begin() as connection:
            connection.exec_driver_sql(
                f"INSERT INTO things (_source, sku, kind, _page_id, _version, _updated_at) VALUES {rows}"
            )

    add(range(1, 3001))
    assert find(derived(site), store) == []
    assert len(found(store, "reviews")) == 3001
    add(range(9000, 9001))
    find(derived(site), store)
    with store.read() as connection:
        readings = connection.exec_driver_sql("SELECT reading FROM documents WHERE source = 'reviews'").scalars().all()
    assert len(readings) > 3
    assert sorted(readings)[-2:] == [1, 2]


def test_where_keeps_to_rows_of_a_kind_and_dots_are_no_path(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/1"], site["/2"], site["/3"] = thing("1"), thing("2", "toy"), thing("..")
    declared = things(site, "/1", "/2", "/3")
    sync(declared, sqlite_store)
    assert find(derived(site, source=declared, where={"kind": "book"}), sqlite_store) == []
    assert found(sqlite_store, "reviews") == at(site, "/reviews/1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"source": "thing"}, r"no source 'thing'.*Did you mean 'things'"),
        ({"table": "thing"}, r"no table 'thing'.*Did you mean 'things'"),
        ({"template": "/reviews/{sk}"}, r"things has no column 'sk'.*Did you mean 'sku'"),
        ({"where": {"kin": "x"}}, r"no column 'kin'.*Did you mean 'kind'"),
    ],
    ids=["source", "table", "column", "column of where"],
)
def test_a_source_table_or_column_that_is_not_there_is_told_with_those_that_are(
    site: ScriptedSite, store: Store, options: dict[str, Any], said: str
) -> None:
    site["/1"] = thing("1")
    sync(things(site, "/1"), store)
    (trouble,) = find(derived(site, **options), store)
    assert trouble.kind == "no_rows"
    assert re.search(said, trouble.message, re.DOTALL)
    assert not ended_whole(store, "reviews")


def test_one_of_several_tables_must_be_named_and_a_source_without_rows_be_read_first(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    sync(things(site, "/1"), sqlite_store)
    assert "no rows yet" in find(derived(site), sqlite_store)[0].message
    site["/1"] = thing("1")
    sync(things(site, "/1", "/1?again", read=[Thing, Part]), sqlite_store)
    assert "parts, things" in find(derived(site), sqlite_store)[0].message
    assert find(derived(site, table="parts"), sqlite_store) == []


def test_values_are_percent_encoded_whole_and_what_cannot_stand_in_an_address_gives_none() -> None:
    assert filled("https://a.example/{x}?q={y}", {"x": "a/b?c=d&e#f g%", "y": 7}) == (
        "https://a.example/a%2Fb%3Fc%3Dd%26e%23f%20g%25?q=7"
    )
    for value in (None, "", ".", "..", "\ud800"):
        assert filled("https://a.example/{x}", {"x": value}) is None


def test_the_finders_read_the_same_in_toml() -> None:
    data = b"""
    [source.shop]
    find = [
        { listing = "https://a.example/l", links = "li a", next = "a.next" },
        { links = "https://a.example/", follow = "/t/", pages = "/p/", depth = 3 },
        { derived = "https://a.example/{sku}", source = "things", table = "things", where = { kind = "book" } },
    ]
    """
    (source,) = read_toml(data)
    assert [type(finder).__name__ for finder in source.finders] == ["Listing", "Links", "Derived"]
    assert source.finders[2] == Derived(
        "https://a.example/{sku}", source="things", table="things", where={"kind": "book"}
    )


# Feeds of several pages


def json_feed(site: ScriptedSite, *numbers: int, following: str | None = None) -> Reply:
    items = [{"id": str(n), "url": f"/n/{n}", "date_modified": "2026-01-01T00:00:00Z"} for n in numbers]
    body = {"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": items}
    return Reply(
        json.dumps(body | ({"next_url": following} if following else {})),
        headers={"Content-Type": "application/feed+json"},
    )


def test_a_json_feed_is_read_with_its_older_pages_until_something_is_known(site: ScriptedSite, store: Store) -> None:
    declared = Source("news", find=Feed(f"{site.url}/feed.json"), forced_looks=0.0)
    site["/feed.json"] = json_feed(site, 4, 3, following="/feed.json?page=2")
    site["/feed.json?page=2"] = json_feed(site, 2, following="/feed.json?page=3")
    site["/feed.json?page=3"] = json_feed(site, 1)
    assert find(declared, store) == []
    assert found(store, "news") == at(site, *(f"/n/{n}" for n in (1, 2, 3, 4)))
    site.forget()
    site["/feed.json"] = json_feed(site, 5, 4, following="/feed.json?page=2")
    assert find(declared, store) == []
    assert site.paths() == ["/feed.json"]
    site.forget()
    site["/feed.json"] = json_feed(site, 7, 6, following="/feed.json?page=2")
    assert find(declared, store) == []
    assert site.paths() == ["/feed.json", "/feed.json?page=2"]


def test_a_page_that_falls_out_of_a_feed_is_due_by_itself_only_where_another_list_without_dates_has_it(
    site: ScriptedSite, store: Store
) -> None:
    entries = "".join(f"<url><loc>{site.url}/n/{n}</loc></url>" for n in (1, 2))
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    site["/sitemap.xml"] = Reply(body, headers={"Content-Type": "application/xml"})
    site["/feed.json"] = json_feed(site, 1, 2, 3)
    finders = [Sitemap(f"{site.url}/sitemap.xml"), Feed(f"{site.url}/feed.json")]
    declared = Source("news", find=finders, forced_looks=0.0)
    assert find(declared, store) == []
    store.write(lambda connection: connection.execute(text("UPDATE pages SET due_at = '2099-01-01T00:00:00Z'")))
    site["/feed.json"] = json_feed(site, 2, 4)
    assert find(declared, store) == []
    hints = {row["url"].rpartition("/")[2]: row["hint"] for row in rows(store, "SELECT url, hint FROM pages")}
    assert [hints[n] for n in "1234"] == [None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"]
    soon = rows(store, "SELECT url FROM pages WHERE due_at < '2099-01-01T00:00:00Z'")
    assert [row["url"] for row in soon] == [f"{site.url}/n/1"]


def test_feeds_whose_pages_lead_in_a_circle_or_never_end_are_left(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/feed.json"] = json_feed(site, 1, following="/feed.json")
    assert find(Source("news", find=Feed(f"{site.url}/feed.json")), sqlite_store) == []
    for number in range(100):
        site[f"/f?{number}"] = json_feed(site, number, following=f"/f?{number + 1}")
    site.forget()
    assert find(Source("endless", find=Feed(f"{site.url}/f?0")), sqlite_store) == []
    assert len(site.paths()) == 50


@pytest.mark.parametrize(
    "feed",
    [
        "<feed xmlns='http://www.w3.org/2005/Atom'><link href='/s' rel='self'/><link rel='next' href='?p=2&amp;x=1'/>"
        "<entry><id>1</id><link href='/1'/><link rel='next' href='/wrong'/></entry></feed>",
        '<rss xmlns:atom="http://www.w3.org/2005/Atom"><channel><atom:link href="?p=2&amp;x=1" rel="next"/>'
        "<item><link>/1</link></item></channel></rss>",
    ],
    ids=["Atom", "RSS"],
)
def test_the_next_page_of_a_feed_is_that_of_its_own_link(feed: str) -> None:
    assert read_feed(feed.encode(), "https://a.example/feed").next == "https://a.example/feed?p=2&x=1"
    unpaged = feed.replace("rel='next' href='?", "rel='up' href='?").replace('rel="next"', 'rel="up"')
    assert read_feed(unpaged.encode(), "https://a.example/feed").next is None


# The examples shown


@pytest.mark.parametrize("name", ["shop.py", "archive.toml", "wiki.py", "reviews.py"])
def test_the_examples_of_the_page_on_finding_find_pages(
    site: ScriptedSite, sqlite_store: Store, tmp_path: Path, name: str
) -> None:
    blocks = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", FINDING.read_text("utf-8"), re.MULTILINE | re.DOTALL))
    file = tmp_path / name
    file.write_text(re.sub(r"https://\w+\.example", site.url, blocks[name]))
    site["/things"] = Reply("<li class=thing><a href=/thing/1>1</a></li>")
    site["/archive"] = Reply("<a href=/news/1>1</a>")
    site["/"] = Reply("<a href=/topic/x>x</a>")
    site["/topic/x"] = Reply("<a href=/article/1>1</a>")
    site.sitemap(["/thing/1"])
    site["/thing/1"] = Reply("<h1>Lamp</h1><b class=sku>1</b><i class=kind>book</i>")
    site["/news/1"] = site["/article/1"] = Reply(
        "<html lang=en><h1>News</h1><article><p>Some words.</p></article></html>"
    )
    site["/article/1"] = Reply("<html lang=en><h1>Word</h1><article><p>Some words.</p></article></html>")
    site["/reviews/1"] = Reply("<li class=review data-sku=1><b>Ann</b></li>")
    for source in load(file):
        assert sync(source, sqlite_store).ending is Ending.FINISHED
        assert found(sqlite_store, source.name), source.name

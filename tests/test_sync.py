"""One sync, end to end: a real server, a real database, and what stands in it afterwards."""

from __future__ import annotations

import asyncio
import gzip
import re
from typing import Any

import pytest
from sqlalchemy import text

from recrawl.declare import Adaptive, Feed, Record, Sitemap, Source, Urls, Volatile, css
from recrawl.run.engine import Ending, Engine, Result
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source
from recrawl.store.contents import body
from recrawl.store.database import Store
from tests.support.scripted import Reply, ScriptedSite


class Thing(Record, table="things", key="sku", history=True):
    sku: str = css("b.sku::text")
    name: str = css("h1::text")
    viewers: Volatile[int | None] = css("i.viewers::text")


class Renamed(Record, table="things", key="sku", history=True):
    sku: str = css("b.sku::text")
    name: str = css("h2::text")
    viewers: Volatile[int | None] = css("i.viewers::text")


def thing(sku: str, name: str, viewers: int = 1, head: str = "") -> str:
    return (
        f"<html><head>{head}</head><body><h1>{name}</h1><h2>{name.upper()}</h2><b class=sku>{sku}</b>"
        f"<i class=viewers>{viewers}</i></body></html>"
    )


@pytest.fixture
def store(empty: Store) -> Store:
    return empty


FEED = "<rss version='2.0'><channel><title>c</title><item><title>t</title><link>{}</link></item></channel></rss>"


def source(site: ScriptedSite, **policies: Any) -> Source:
    given: dict[str, Any] = {"find": Sitemap(f"{site.url}/sitemap.xml"), "read": Thing, "forced_looks": 0.0}
    return Source("shop", **(given | policies))


def sync(declared: Source, store: Store) -> Result:
    return asyncio.run(sync_source(Declared(declared, "test"), store))


def rows(store: Store, sql: str) -> list[dict[str, Any]]:
    with store.read() as connection:
        return [dict(row) for row in connection.execute(text(sql)).mappings()]


def one(store: Store, sql: str) -> Any:
    (row,) = rows(store, sql)
    (value,) = row.values()
    return value


def kinds(store: Store) -> list[str]:
    return [row["kind"] for row in rows(store, "SELECT kind FROM versions ORDER BY seq")]


def events(store: Store) -> list[str]:
    return [row["kind"] for row in rows(store, "SELECT kind FROM events ORDER BY seq")]


def test_a_page_goes_through_every_room_into_every_table(site: ScriptedSite, store: Store) -> None:
    site.sitemap({"/a": "2026-01-01"})
    site["/a"] = Reply(thing("1", "Lamp"), headers={"ETag": '"x"'})
    result = sync(source(site), store)
    assert result.ending is Ending.FINISHED
    assert result.complete
    assert result.progress.counts["new"] == 1
    (page,) = rows(store, "SELECT * FROM pages")
    assert (page["status"], page["version"], page["etag"], page["url"]) == ("active", 1, '"x"', f"{site.url}/a")
    assert body(store, page["raw_hash"]) == thing("1", "Lamp").encode()
    assert rows(store, "SELECT sku, name, viewers, _version FROM things") == [
        {"sku": "1", "name": "Lamp", "viewers": 1, "_version": 1}
    ]
    assert one(store, "SELECT state FROM batches") == "ended"
    assert one(store, "SELECT state FROM runs") == "finished"
    assert one(store, "SELECT position IS NOT NULL FROM cursors")


def test_a_page_whose_lastmod_stays_is_not_asked_for_and_one_whose_lastmod_moves_is(
    site: ScriptedSite, store: Store
) -> None:
    site.sitemap({"/a": "2026-01-01", "/b": "2026-01-01"})
    site["/a"] = site["/b"] = Reply(thing("1", "Lamp"))
    site["/b"] = Reply(thing("2", "Desk"))
    sync(source(site), store)
    site.forget()
    site.sitemap({"/a": "2026-01-01", "/b": "2026-01-02"})
    site["/b"] = Reply(thing("2", "Table"))
    result = sync(source(site), store)
    assert site.paths() == ["/b"]
    assert result.progress.counts["unchanged_hint"] == 1
    assert kinds(store) == ["created", "created", "updated"]
    history = rows(store, "SELECT name, valid_to IS NULL AS now FROM things_history WHERE sku = '2' ORDER BY _version")
    assert [(row["name"], bool(row["now"])) for row in history] == [("Desk", False), ("Table", True)]


def test_a_forced_look_goes_without_validators(site: ScriptedSite, sqlite_store: Store) -> None:
    site.sitemap({"/a": "2026-01-01"})
    site["/a"] = Reply(thing("1", "Lamp"), headers={"ETag": '"x"'})
    sync(source(site), sqlite_store)
    site.forget()
    site["/sitemap.xml"] = Reply(
        f"<urlset><!-- anew --><url><loc>{site.url}/a</loc><lastmod>2026-01-01</lastmod></url></urlset>",
        headers={"Content-Type": "application/xml"},
    )
    sync(source(site, forced_looks=1.0), sqlite_store)
    (asked,) = [asked for asked in site.asked if asked.path == "/a"]
    assert not asked.conditional


def test_new_validators_are_stored_though_the_body_is_equal(site: ScriptedSite, sqlite_store: Store) -> None:
    site.sitemap(["/a"])
    page = thing("1", "Lamp")
    site["/a"] = [Reply(page, headers={"ETag": "odd one"}), Reply(page, headers={"ETag": 'W/"2"'}), Reply(status=304)]
    for _ in range(3):
        sync(source(site), sqlite_store)
    sent = [asked.headers.get("If-None-Match") for asked in site.asked if asked.path == "/a"]
    assert sent == [None, "odd one", 'W/"2"']
    assert kinds(sqlite_store) == ["created"]


def test_a_304_that_nobody_asked_for_is_a_failure_and_never_unchanged(site: ScriptedSite, sqlite_store: Store) -> None:
    site.sitemap(["/a"])
    site["/a"] = Reply(status=304)
    result = sync(source(site, max_attempts=2), sqlite_store)
    assert result.ending is Ending.FAILURES
    assert kinds(sqlite_store) == []
    assert one(sqlite_store, "SELECT status FROM pages") == "failing"


def test_other_rules_read_stored_bodies_again_without_a_request(site: ScriptedSite, store: Store) -> None:
    site.sitemap({"/a": "2026-01-01", "/b": "2026-01-01"})
    site["/a"] = Reply(thing("1", "Lamp"))
    site["/b"] = Reply(thing("2", "DESK"))
    sync(source(site), store)
    changed_at = one(store, "SELECT max(last_changed_at) FROM pages")
    site.forget()
    result = sync(source(site, read=Renamed), store)
    assert site.paths() == []
    assert result.progress.counts["reread"] == 1, "the page whose data stay the same makes no version"
    assert sorted(kinds(store)) == ["created", "created", "reread"]
    assert one(store, "SELECT name FROM things WHERE sku = '1'") == "LAMP"
    assert one(store, "SELECT max(last_changed_at) FROM pages") == changed_at
    assert sync(source(site, read=Renamed), store).progress.looked_at == 0


def test_a_volatile_field_changes_the_row_and_makes_no_version(site: ScriptedSite, store: Store) -> None:
    site.sitemap(["/a"])
    site["/a"] = [Reply(thing("1", "Lamp", 1)), Reply(thing("1", "Lamp", 2))]
    sync(source(site), store)
    sync(source(site), store)
    assert one(store, "SELECT viewers FROM things") == 2
    assert kinds(store) == ["created"]


def test_a_moved_page_hands_its_records_over_and_is_not_asked_for_again(site: ScriptedSite, store: Store) -> None:
    site.sitemap({"/old": "2026-01-01"})
    site["/old"] = Reply(thing("1", "Lamp"))
    site["/new"] = Reply(thing("1", "Lamp"))
    sync(source(site), store)
    site["/old"] = Reply(status=301, headers={"Location": "/new"})
    site.sitemap({"/old": "2026-01-02"})
    sync(source(site), store)
    states = {row["url"].removeprefix(site.url): row["status"] for row in rows(store, "SELECT url, status FROM pages")}
    assert states == {"/old": "moved", "/new": "active"}
    assert kinds(store) == ["created", "moved"]
    assert one(store, "SELECT _page_id FROM things WHERE _deleted_at IS NULL") == f"{site.url}/new"
    assert "moved" in events(store)
    site.forget()
    site.sitemap({"/new": "2026-01-02"})
    sync(source(site), store)
    assert "/old" not in site.paths()


def test_a_moved_page_hands_on_the_id_that_was_read_out_of_it(site: ScriptedSite, store: Store) -> None:
    declared = source(site, page_id="sku")
    site.sitemap({"/old": "2026-01-01"})
    site["/old"] = site["/new"] = Reply(thing("L-1", "Lamp"))
    sync(declared, store)
    site["/old"] = Reply(status=301, headers={"Location": "/new"})
    for day, name in ((2, "Lamp"), (3, "Better lamp"), (4, "Best lamp")):
        site["/new"] = Reply(thing("L-1", name))
        site.sitemap({"/old" if day == 2 else "/new": f"2026-01-0{day}"})
        sync(declared, store)
    states = {
        row["page_id"]: row["url"].removeprefix(site.url) for row in rows(store, "SELECT page_id, url FROM pages")
    }
    assert states == {"L-1": "/new", f"{site.url}/old": "/old"}
    assert kinds(store) == ["created", "moved", "updated", "updated"]
    assert set(events(store)) == {"moved"}


def test_a_302_keeps_the_page_at_its_own_address(site: ScriptedSite, sqlite_store: Store) -> None:
    site.sitemap(["/a"])
    site["/a"] = Reply(status=302, headers={"Location": "/here-today"})
    site["/here-today"] = Reply(thing("1", "Lamp"))
    sync(source(site), sqlite_store)
    assert one(sqlite_store, "SELECT url FROM pages") == f"{site.url}/a"
    assert one(sqlite_store, "SELECT final_url FROM versions") == f"{site.url}/here-today"


@pytest.mark.parametrize("target", ["/login?next=/a", "/"])
def test_a_redirect_to_a_login_or_home_page_is_quarantined_and_the_data_stay(
    site: ScriptedSite, sqlite_store: Store, target: str
) -> None:
    site.sitemap(["/a"])
    site["/a"] = Reply(thing("1", "Lamp"))
    site[target] = Reply(thing("9", "Please log in"))
    sync(source(site), sqlite_store)
    site["/a"] = Reply(status=302, headers={"Location": target})
    result = sync(source(site), sqlite_store)
    assert result.progress.counts["quarantined"] == 1
    assert rows(sqlite_store, "SELECT sku, name FROM things") == [{"sku": "1", "name": "Lamp"}]
    assert kinds(sqlite_store) == ["created"]
    site["/a"] = Reply(thing("1", "Lamp"))
    sync(source(site), sqlite_store)
    assert one(sqlite_store, "SELECT resolution FROM dead_letters") == "superseded"
    assert kinds(sqlite_store) == ["created"]


def test_two_addresses_of_one_business_id_are_one_page(site: ScriptedSite, store: Store) -> None:
    site.sitemap({"/a": "2026-01-01", "/b": "2026-01-01"})
    site["/a"] = site["/b"] = Reply(thing("7", "Lamp"))
    site["/b"] = Reply(thing("7", "Lamp"))
    sync(source(site, page_id="sku"), store)
    active = rows(store, "SELECT page_id FROM pages WHERE status = 'active'")
    assert active == [{"page_id": "7"}]
    assert one(store, "SELECT count(*) FROM things") == 1
    site.forget()
    sync(source(site, page_id="sku"), store)
    assert site.paths() == []


def test_a_canonical_address_is_the_same_page_when_a_sitemap_lists_it_later(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    site.sitemap({"/a?x=1": "2026-01-01"})
    site["/a?x=1"] = Reply(thing("1", "Lamp", head=f'<link rel="canonical" href="{site.url}/a">'))
    sync(source(site), sqlite_store)
    site.sitemap({"/a": "2026-01-01"})
    sync(source(site), sqlite_store)
    assert one(sqlite_store, "SELECT count(*) FROM pages") == 1


def test_what_robots_txt_forbids_is_refused_without_a_dead_letter(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/robots.txt"] = Reply("User-agent: *\nDisallow: /private/", headers={"Content-Type": "text/plain"})
    site.sitemap(["/private/a", "/b"])
    site["/b"] = Reply(thing("1", "Lamp"))
    result = sync(source(site), sqlite_store)
    assert site.paths() == ["/b"]
    assert result.progress.counts["refused"] == 1
    assert one(sqlite_store, "SELECT count(*) FROM dead_letters") == 0
    assert result.ending is Ending.FINISHED


def test_while_robots_txt_cannot_be_read_nothing_is_fetched(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/robots.txt"] = Reply("", 500)
    site.sitemap(["/a"])
    result = sync(source(site), sqlite_store)
    assert set(site.paths(pages_only=False)) == {"/robots.txt"}
    assert result.ending is Ending.NOTHING
    assert "robots.txt answers 500" in result.troubles[-1].message


def test_a_retry_after_is_kept_and_uses_up_no_attempt(site: ScriptedSite, sqlite_store: Store) -> None:
    site.sitemap(["/a"])
    busy = Reply("busy", 503, {"Retry-After": "5"})
    site["/a"] = [busy, busy, busy, Reply(thing("1", "Lamp"))]
    result = sync(source(site, max_attempts=1), sqlite_store)
    assert result.ending is Ending.FINISHED
    assert kinds(sqlite_store) == ["created"]


def test_a_run_that_could_only_wait_ends_as_waiting_and_loses_nothing(site: ScriptedSite, sqlite_store: Store) -> None:
    site.sitemap(["/a"])
    site["/a"] = Reply("busy", 503, {"Retry-After": "3000"})
    result = sync(source(site), sqlite_store)
    assert result.ending is Ending.WAITING
    assert result.until is not None
    assert one(sqlite_store, "SELECT state FROM tasks WHERE kind = 'visit'") == "failed"


def test_after_all_attempts_the_page_is_failing_keeps_its_data_and_recovers(site: ScriptedSite, store: Store) -> None:
    site.sitemap(["/a"])
    site["/a"] = Reply(thing("1", "Lamp"))
    sync(source(site), store)
    site["/a"] = Reply("oops", 500)
    site.forget()
    result = sync(source(site, max_attempts=3), store)
    assert site.paths() == ["/a"] * 3
    assert result.ending is Ending.FAILURES
    assert one(store, "SELECT status FROM pages") == "failing"
    assert one(store, "SELECT count(*) FROM things WHERE _deleted_at IS NULL") == 1
    site["/a"] = Reply(thing("1", "Lamp"))
    assert sync(source(site), store).ending is Ending.FINISHED
    assert one(store, "SELECT status FROM pages") == "active"
    assert one(store, "SELECT resolution FROM dead_letters") == "superseded"


def test_a_page_that_is_no_valid_data_is_kept_once_with_its_bytes_and_the_old_data_stay(
    site: ScriptedSite, store: Store
) -> None:
    site.sitemap(["/a"])
    site["/a"] = Reply(thing("1", "Lamp"))
    sync(source(site), store)
    site["/a"] = Reply("<h1>no sku here</h1>")
    for _ in range(2):
        result = sync(source(site), store)
        assert result.progress.counts["invalid"] == 1
    (letter,) = rows(store, "SELECT * FROM dead_letters")
    assert letter["raw"]
    assert "sku" in letter["reason"]
    assert one(store, "SELECT name FROM things WHERE _deleted_at IS NULL") == "Lamp"


def test_nul_bytes_and_long_texts_are_stored_alike_on_both_databases(site: ScriptedSite, store: Store) -> None:
    site.sitemap(["/a", "/b"])
    site["/a"] = Reply(thing("1", "La\0mp").encode())
    site["/b"] = Reply(thing("2", "x" * 900_000))
    result = sync(source(site), store)
    assert result.progress.counts["new"] == 2
    assert one(store, "SELECT name FROM things WHERE sku = '1'") == "Lamp", "HTML ignores NUL in text"


def test_a_url_of_8000_characters_is_a_page(site: ScriptedSite, store: Store) -> None:
    path = f"/long?q={'x' * 7950}"
    site.sitemap([path])
    site[path] = Reply(thing("1", "Lamp"))
    assert sync(source(site), store).progress.counts["new"] == 1


def test_html_where_a_sitemap_should_be_is_a_clear_trouble(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/sitemap.xml"] = Reply("<!doctype html><title>Not found</title><p>Sorry")
    result = sync(source(site), sqlite_store)
    assert result.ending is Ending.NOTHING
    assert "/sitemap.xml cannot be read" in result.troubles[0].message
    assert one(sqlite_store, "SELECT count(*) FROM dead_letters") == 1


def test_one_broken_sitemap_stops_no_other_and_makes_the_cycle_incomplete(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    site.index("/s1.xml", "/s2.xml", "/s3.xml", "/sitemap.xml")
    site.sitemap(["/a"], "/s1.xml")
    site["/s2.xml"] = Reply(gzip.compress(b"<urlset>" * 1000)[:40], headers={"Content-Type": "application/xml"})
    site.sitemap(["/c"], "/s3.xml")
    site["/a"], site["/c"] = Reply(thing("1", "Lamp")), Reply(thing("3", "Chair"))
    result = sync(source(site), sqlite_store)
    assert result.progress.counts["new"] == 2
    assert not result.complete
    assert result.ending is Ending.FAILURES


def test_pages_of_other_sites_are_not_taken_unless_named(site: ScriptedSite, sqlite_store: Store) -> None:
    site.sitemap(["/a", "http://elsewhere.example/b"])
    site["/a"] = Reply(thing("1", "Lamp"))
    result = sync(source(site), sqlite_store)
    assert result.progress.counts["off_site"] == 1
    assert one(sqlite_store, "SELECT count(*) FROM pages") == 1


def test_an_older_source_time_is_a_regression_and_changes_nothing(site: ScriptedSite, store: Store) -> None:
    class Dated(Record, table="dated", key="sku", version="rev"):
        sku: str = css("b::text")
        rev: int = css("i::text")
        name: str = css("h1::text")

    def page(rev: int, name: str) -> Reply:
        return Reply(f"<h1>{name}</h1><b>1</b><i>{rev}</i>")

    site.sitemap(["/a"])
    site["/a"] = [page(100, "new"), page(95, "old"), page(101, "newer")]
    for name in ("new", "new", "newer"):
        sync(source(site, read=Dated, order="version"), store)
        assert one(store, "SELECT name FROM dated") == name
    assert "regression" in events(store)
    assert kinds(store) == ["created", "updated"]


def test_a_url_taken_out_of_a_list_is_no_longer_a_member(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/a"] = Reply(thing("1", "Lamp"))
    site["/b"] = Reply(thing("2", "Desk"))
    sync(source(site, find=Urls([f"{site.url}/a", f"{site.url}/b"])), sqlite_store)
    sync(source(site, find=Urls([f"{site.url}/a"])), sqlite_store)
    assert one(sqlite_store, "SELECT count(*) FROM members WHERE dropped IS NULL") == 1


def test_a_run_that_is_stopped_gives_its_work_back_and_the_next_one_finishes_it(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    pages = [f"/{number}" for number in range(40)]
    site.sitemap(pages)
    for number, path in enumerate(pages):
        site[path] = Reply(thing(str(number), "Lamp"))

    def stop_at_the_first_page(engine: Engine, progress: Progress) -> None:
        def watch(seen: Progress) -> None:
            if seen.looked_at:
                engine.stop()

        progress.on_change = watch

    declared = Declared(source(site), "test")
    result = asyncio.run(sync_source(declared, sqlite_store, prepare=stop_at_the_first_page))
    assert result.ending is Ending.INTERRUPTED
    assert one(sqlite_store, "SELECT count(*) FROM tasks WHERE state = 'running'") == 0
    assert one(sqlite_store, "SELECT max(crashes) FROM tasks") == 0
    sync(source(site), sqlite_store)
    assert len(site.paths()) == 40, "no page is asked for twice"
    assert one(sqlite_store, "SELECT count(*) FROM things") == 40


def test_a_page_with_an_id_of_its_own_is_followed_to_the_address_that_lists_it_now(
    site: ScriptedSite, store: Store
) -> None:
    declared = source(site, find=Feed(f"{site.url}/feed.xml"), page_id=re.compile(r"/a-(\d+)"))
    for slug, name in (("old", "Lamp"), ("better", "Better lamp"), ("old", "Lamp again")):
        if slug == "better":
            del site["/old/a-1"]
        elif name == "Lamp again":
            del site["/better/a-1"]
        site["/feed.xml"] = Reply(FEED.format(f"{site.url}/{slug}/a-1"), headers={"Content-Type": "text/xml"})
        site[f"/{slug}/a-1"] = Reply(thing("1", name))
        result = sync(declared, store)
        assert result.ending is Ending.FINISHED
        assert rows(store, "SELECT name FROM things") == [{"name": name}]
    assert rows(store, "SELECT page_id, status, version FROM pages") == [
        {"page_id": "1", "status": "active", "version": 3}
    ]
    assert one(store, "SELECT count(*) FROM aliases") == 2


def test_a_page_listed_under_two_addresses_at_once_is_looked_at_once_for_each_that_is_new(
    site: ScriptedSite, store: Store
) -> None:
    finders = [Feed(f"{site.url}/{tongue}.xml") for tongue in ("en", "zh")]
    declared = source(site, find=finders, page_id=re.compile(r"/a-(\d+)"), revisit=Adaptive(min="1d"))
    listed = {tongue: FEED.format(f"{site.url}/{tongue}/a-1") for tongue in ("en", "zh")}
    told = Reply(listed["en"], headers={"Content-Type": "text/xml"})
    site["/en.xml"] = site["/zh.xml"] = told
    site["/en/a-1"] = site["/zh/a-1"] = Reply(thing("1", "Lamp"))
    sync(declared, store)
    site["/zh.xml"] = Reply(listed["zh"], headers=told.headers)
    for _ in range(3):
        sync(declared, store)
    assert [path for path in site.paths() if "/a-1" in path] == ["/en/a-1", "/zh/a-1"]

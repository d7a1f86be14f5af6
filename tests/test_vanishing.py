"""Pages that vanish, end to end: a real server that breaks, moves and forgets, on a clock that jumps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.declare import Deletion, Feed, Record, Sitemap, Source, css
from recrawl.run import wire
from recrawl.run.engine import Ending, Result
from recrawl.run.wire import Declared, sync_source
from recrawl.store.database import Store, open_store
from tests.support.scripted import Reply, ScriptedSite

PATHS = [f"/{number}" for number in range(12)]


class Thing(Record, table="things", key="sku"):
    sku: str = css("b::text")


def thing(path: str) -> Reply:
    return Reply(f"<html><body><b>{path}</b></body></html>", headers={"ETag": f'"{path}"'})


@pytest.fixture
def site(site: ScriptedSite) -> ScriptedSite:
    site.sitemap(PATHS)
    for path in PATHS:
        site[path] = thing(path)
    return site


@pytest.fixture
def store(empty: Store) -> Store:
    return empty


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "recrawl.db")


@pytest.fixture
def sqlite_store(address: str) -> Iterator[Store]:
    opened = open_store(address)
    yield opened
    opened.close()


def source(site: ScriptedSite, **policies: Any) -> Source:
    given: dict[str, Any] = {"find": Sitemap(f"{site.url}/sitemap.xml"), "read": Thing, "forced_looks": 0.0}
    return Source("shop", **(given | policies))


def sync(site: ScriptedSite, store: Store, after: float = 6.1, **policies: Any) -> Result:
    """Sync, this many hours after the last time."""
    wire._VIRTUAL.ahead += timedelta(hours=after)
    return asyncio.run(sync_source(Declared(source(site, **policies), "test"), store))


def states(store: Store) -> dict[str, str]:
    with store.read() as connection:
        rows = connection.execute(text("SELECT url, status FROM pages"))
        return {f"/{row.url.rpartition('/')[2]}": row.status for row in rows}


def events(store: Store, kind: str) -> int:
    with store.read() as connection:
        statement = text("SELECT count(*) FROM events WHERE kind = :kind")
        return int(connection.execute(statement, {"kind": kind}).scalar_one())


def kinds(store: Store, path: str) -> list[str]:
    with store.read() as connection:
        query = "SELECT v.kind FROM versions v JOIN pages p ON p.id = v.page WHERE p.url LIKE :path ORDER BY v.seq"
        return list(connection.execute(text(query), {"path": f"%{path}"}).scalars())


def live(store: Store) -> set[str]:
    with store.read() as connection:
        return set(connection.execute(text("SELECT sku FROM things WHERE _deleted_at IS NULL")).scalars())


def gone(site: ScriptedSite, *paths: str, status: int = 404) -> None:
    for path in paths:
        site[path] = Reply("gone", status)


# A host that is not itself


@pytest.mark.parametrize("sitemap_too", [True, False])
def test_a_deploy_that_answers_404_to_everything_for_a_day_makes_no_page_suspect(
    site: ScriptedSite, store: Store, sitemap_too: bool
) -> None:
    sync(site, store)
    gone(site, *PATHS, *(["/sitemap.xml"] if sitemap_too else []))
    for _ in range(4):
        assert sync(site, store, after=6, max_attempts=2).progress.counts["gone"] == 0
    site.sitemap(PATHS)
    for path in PATHS:
        site[path] = thing(path)
    for _ in range(2):
        sync(site, store)
    assert set(states(store).values()) == {"active"}
    assert events(store, "suspected") == events(store, "gone") == 0
    assert live(store) == set(PATHS)


def test_a_deploy_that_begins_in_the_middle_of_a_run_makes_no_page_suspect(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    sync(site, sqlite_store)
    gone(site, *PATHS[5:])
    for path in PATHS[:5]:
        site[path] = [thing(path), Reply("gone", 404)]
    sync(site, sqlite_store)
    assert events(sqlite_store, "suspected") == 0


def test_a_deploy_that_ends_in_the_middle_of_a_run_makes_no_page_suspect(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    sync(site, sqlite_store)
    for path in PATHS:
        site[path] = [Reply("gone", 404), thing(path)]
    result = sync(site, sqlite_store)
    assert result.ending is Ending.FINISHED
    assert events(sqlite_store, "gone") == 0


def test_a_page_is_believed_to_be_gone_beside_one_that_is_there_and_few_are_asked_for_it(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    dated = dict.fromkeys(PATHS, "2026-01-01")
    site.sitemap(dated)
    sync(site, sqlite_store)
    site.sitemap(dated | dict.fromkeys(PATHS[:2], "2026-02-02"))
    gone(site, *PATHS[:2])
    site.forget()
    result = sync(site, sqlite_store)
    assert result.progress.counts["gone"] == 2
    asked = site.paths()
    assert len([path for path in asked if path in PATHS[2:]]) <= 4
    assert result.progress.counts["requests"] == len(asked) + 1, "control pages are counted as requests"


def test_a_host_that_asks_to_wait_while_it_is_asked_for_a_control_page_is_waited_for(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    dated = dict.fromkeys(PATHS, "2026-01-01")
    site.sitemap(dated)
    sync(site, sqlite_store)
    site.sitemap(dated | {"/0": "2026-02-02"})
    gone(site, "/0")
    for path in PATHS[1:]:
        site[path] = [Reply("busy", 503, {"Retry-After": "30"}), thing(path)]
    assert sync(site, sqlite_store).progress.counts["postponed"] >= 1
    assert sync(site, sqlite_store).ending is Ending.FINISHED
    assert states(sqlite_store)["/0"] == "suspected"


def test_a_page_that_was_never_read_is_not_found_without_further_questions(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    site.sitemap(["/nowhere"])
    result = sync(site, sqlite_store)
    assert result.progress.counts["gone"] == 1
    assert site.paths() == ["/nowhere"]


# From absence to deletion and back


def test_a_page_that_vanished_is_deleted_and_one_that_comes_back_is_restored(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    site.sitemap(PATHS[1:])
    gone(site, "/0")
    results = [sync(site, store) for _ in range(4)]
    assert states(store)["/0"] == "deleted"
    assert live(store) == set(PATHS[1:])
    assert ("deleted", f"{site.url}/0") in [change for result in results for change in result.progress.changes]
    site.sitemap(PATHS)
    site["/0"] = thing("/0")
    sync(site, store)
    assert states(store)["/0"] == "active"
    assert kinds(store, "/0") == ["created", "deleted", "restored"]
    assert live(store) == set(PATHS)


def test_a_page_that_is_only_unlisted_stays(site: ScriptedSite, sqlite_store: Store) -> None:
    sync(site, sqlite_store)
    site.sitemap(PATHS[1:])
    for _ in range(6):
        sync(site, sqlite_store)
    assert states(sqlite_store)["/0"] in ("active", "suspected")
    assert kinds(sqlite_store, "/0") == ["created"]


def test_a_page_that_is_listed_and_answers_410_is_deleted_after_one_confirmation(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    sync(site, sqlite_store)
    gone(site, "/0", status=410)
    sync(site, sqlite_store)
    assert states(sqlite_store)["/0"] == "suspected"
    sync(site, sqlite_store)
    assert states(sqlite_store)["/0"] == "deleted"


def test_looks_that_come_too_soon_confirm_nothing(site: ScriptedSite, sqlite_store: Store) -> None:
    sync(site, sqlite_store)
    gone(site, "/0")
    for _ in range(11):
        sync(site, sqlite_store, after=1)
    assert states(sqlite_store)["/0"] == "suspected"


def test_a_child_sitemap_that_is_taken_away_takes_its_pages_with_it_unless_another_lists_them(
    site: ScriptedSite, store: Store
) -> None:
    site.index("/a.xml", "/b.xml")
    site.sitemap(PATHS, path="/a.xml")
    site.sitemap(["/0", "/extra"], path="/b.xml")
    site["/extra"] = thing("/extra")
    sync(site, store)
    site.index("/a.xml")
    gone(site, "/extra", "/b.xml")
    for _ in range(4):
        sync(site, store)
    assert (states(store)["/extra"], states(store)["/0"]) == ("deleted", "active")


def test_a_page_that_moved_hands_over_its_records_and_its_old_address_may_vanish(
    site: ScriptedSite, store: Store
) -> None:
    sync(site, store)
    site["/0"] = Reply("", 301, {"Location": f"{site.url}/new"})
    site["/new"] = thing("/0")
    sync(site, store)
    site.sitemap(PATHS[1:])
    gone(site, "/0")
    for _ in range(5):
        sync(site, store)
    assert (states(store)["/0"], states(store)["/new"]) == ("moved", "active")
    assert live(store) == set(PATHS)


def test_what_only_a_feed_told_of_is_not_missed_when_the_feed_goes_on(site: ScriptedSite, sqlite_store: Store) -> None:
    def feed(paths: Iterable[str]) -> Reply:
        items = "".join(f"<item><link>{site.url}{path}</link></item>" for path in paths)
        return Reply(f"<rss version='2.0'><channel>{items}</channel></rss>", headers={"Content-Type": "text/xml"})

    found = [Feed(f"{site.url}/feed.xml")]
    site["/feed.xml"] = feed(PATHS)
    sync(site, sqlite_store, find=found)
    site["/feed.xml"] = feed(PATHS[:1])
    for _ in range(4):
        sync(site, sqlite_store, find=found)
    assert set(states(sqlite_store).values()) == {"active"}
    assert events(sqlite_store, "suspected") == 0


# Faults of documents


def test_a_sitemap_that_is_empty_once_is_not_believed(site: ScriptedSite, sqlite_store: Store) -> None:
    sync(site, sqlite_store)
    site.sitemap([])
    result = sync(site, sqlite_store)
    assert (result.complete, result.ending) == (False, Ending.FAILURES)
    assert [trouble.kind for trouble in result.troubles] == ["emptied"]
    assert sync(site, sqlite_store).complete, "found empty again, it is believed"


def test_a_sitemap_that_stays_empty_is_held_back_by_the_guard(site: ScriptedSite, sqlite_store: Store) -> None:
    dated = dict.fromkeys(PATHS, "2026-01-01")
    site.sitemap(dated)
    sync(site, sqlite_store)
    site.sitemap([])
    results = [sync(site, sqlite_store) for _ in range(5)]
    assert results[-1].ending is Ending.APPROVAL
    assert events(sqlite_store, "suspected") == 0
    site.sitemap(dated)
    assert sync(site, sqlite_store).ending is Ending.FINISHED


# The guard and approval


def _vanished(site: ScriptedSite, store: Store) -> Result:
    sync(site, store)
    site.sitemap(PATHS[4:])
    gone(site, *PATHS[:4])
    return [sync(site, store) for _ in range(2)][-1]


def _run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_too_much_at_once_waits_for_a_word_and_goes_then(site: ScriptedSite, address: str, sqlite_store: Store) -> None:
    result = _vanished(site, sqlite_store)
    assert (result.ending, result.progress.counts["held"]) == (Ending.APPROVAL, 4)
    status = json.loads(_run("status", "--store", address, "--json").stdout)["sources"][0]
    assert (status["held"], status["needs_attention"]) == (4, True)
    assert "recrawl approve shop" in _run("status", "--store", address).stdout
    assert "held back" in _run("show", f"{site.url}/0", "--store", address).stdout
    asked = _run("approve", "shop", "--store", address)
    assert asked.exit_code == 4, "nobody is there to answer"
    assert f"{site.url}/3" in asked.stdout
    shown = json.loads(_run("approve", "shop", "--store", address, "--json").stdout)
    assert ([page["url"] for page in shown["held"]], shown["approved"]) == ([f"{site.url}{p}" for p in PATHS[:4]], 0)
    assert _run("approve", "shop", "--store", address, "--yes").exit_code == 0
    for _ in range(3):
        assert sync(site, sqlite_store).ending is Ending.FINISHED
    assert [states(sqlite_store)[path] for path in PATHS[:4]] == ["deleted"] * 4
    told = _run("show", f"{site.url}/0", "--store", address).stdout
    assert "deleted at" in told
    assert "not found by 2 looks" in told


def test_a_held_page_that_is_back_is_let_go_of(site: ScriptedSite, address: str, sqlite_store: Store) -> None:
    _vanished(site, sqlite_store)
    assert _run("approve", "shop", "--store", address, "--yes").exit_code == 0
    site["/0"] = thing("/0")
    site.sitemap(["/0", *PATHS[4:]])
    for _ in range(4):
        sync(site, sqlite_store)
    assert [states(sqlite_store)[path] for path in PATHS[:4]] == ["active", *["deleted"] * 3]


def test_there_may_be_nothing_to_approve_and_no_such_source(
    site: ScriptedSite, address: str, sqlite_store: Store
) -> None:
    sync(site, sqlite_store)
    assert "nothing waits" in _run("approve", "shop", "--store", address).stdout
    assert _run("approve", "shp", "--store", address).exit_code == 2


def test_a_policy_may_let_more_go_and_sooner(site: ScriptedSite, sqlite_store: Store) -> None:
    hasty = Deletion(suspect_after=1, confirm_after=1, confirm_gap="1h", max_vanish=0.5)
    sync(site, sqlite_store, deletion=hasty)
    site.sitemap(PATHS[4:])
    gone(site, *PATHS[:4])
    for _ in range(2):
        sync(site, sqlite_store, after=1.1, deletion=hasty)
    assert [states(sqlite_store)[path] for path in PATHS[:4]] == ["deleted"] * 4

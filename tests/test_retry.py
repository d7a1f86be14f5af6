"""`retry`: exactly what has no good end, once, with fresh attempts."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.declare import Record, Sitemap, Source, css
from recrawl.model.outcome import Quarantined
from recrawl.model.settlement import TaskEnd
from recrawl.model.work import Stage, TaskState
from recrawl.run.wire import Declared, sync_source
from recrawl.store import leases
from recrawl.store.database import Store
from recrawl.store.retry import Retried, retry
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import (
    NOW,
    SOURCE,
    a_broken_outcome,
    a_look,
    a_page,
    a_walk,
    one,
    put,
    rows,
    sight,
    take,
    take_one,
    visited,
)

LATER = timedelta(minutes=7)


def dead(store: Store, *names: str) -> None:
    """Pages that were read well once, and then showed a captcha."""
    visited(store, *((a_page(name, "1"), "one") for name in names))
    sight(store, *(a_page(name, "2") for name in names))
    put(store, *((task, Quarantined(look=a_look(task), reason="captcha", raw=b"?")) for task in take(store)))


def ask(store: Store, *, failed: bool = True, missing: bool = False) -> Retried:
    return retry(store, SOURCE, failed=failed, missing=missing, now=NOW + LATER)


def due(store: Store) -> list[str]:
    now = "2026-11-30T12:07:00.000000Z"
    return [row["page_id"] for row in rows(store, f"SELECT page_id FROM pages WHERE due_at = '{now}' ORDER BY page_id")]


def test_failed_pages_and_only_they_are_due_at_once(store: Store) -> None:
    visited(store, (a_page("well"), "one"))
    dead(store, "bad", "worse")
    assert ask(store) == Retried(failed=2, due=2)
    assert due(store) == ["bad", "worse"]
    assert one(store, "SELECT sum(failures) FROM pages") == 0


def test_asking_twice_changes_nothing(store: Store) -> None:
    dead(store, "bad")
    ask(store)
    before = rows(store, "SELECT * FROM pages"), rows(store, "SELECT * FROM tasks")
    assert ask(store) == Retried(failed=1, due=1)
    assert (rows(store, "SELECT * FROM pages"), rows(store, "SELECT * FROM tasks")) == before


def test_a_task_that_waits_to_be_tried_again_is_claimable_with_fresh_attempts(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    put(store, (task, a_broken_outcome(task)))
    assert take(store) == []
    assert ask(store) == Retried(failed=1, hastened=1)
    assert take_one(store).attempt == 1
    assert one(store, "SELECT count(*) FROM tasks WHERE kind = 'visit'") == 1


def test_a_page_that_is_being_looked_at_gets_no_second_task(store: Store) -> None:
    dead(store, "bad")
    sight(store, a_page("bad", "3"))
    take_one(store)
    assert ask(store) == Retried(failed=1, under_way=1)
    assert one(store, "SELECT count(*) FROM tasks WHERE state = 'running'") == 1


def test_a_stream_that_waits_to_be_tried_again_is_hastened_too(store: Store) -> None:
    walk = a_walk(store)
    wait = TaskEnd(state=TaskState.FAILED, stage=Stage.FETCH, due_at=NOW + 9 * LATER)
    leases.end_task(store, walk.task.id, walk.task.token, wait, NOW)
    assert ask(store) == Retried(streams=1)
    assert take_one(store).id == walk.task.id


def test_missing_pages_are_those_that_never_read_well(store: Store) -> None:
    dead(store, "once-well")
    sight(store, a_page("never"), now=NOW)
    put(store, *((task, Quarantined(look=a_look(task), reason="captcha")) for task in take(store)))
    assert ask(store, failed=False, missing=True) == Retried(missing=1, due=1)
    assert due(store) == ["never"]
    assert ask(store, failed=True, missing=True) == Retried(failed=2, due=2)


def test_a_page_that_robots_txt_keeps_closed_is_not_missing(store: Store) -> None:
    visited(store, (a_page("a"), "one"))
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE pages SET status = 'refused', version = 0")
    assert ask(store, failed=True, missing=True) == Retried()


class Thing(Record, table="things", key="sku"):
    sku: str = css("b.sku::text")


def sync(site: ScriptedSite, store: Store) -> Any:
    declared = Source("shop", find=Sitemap(f"{site.url}/sitemap.xml"), read=Thing, forced_looks=0.0)
    return asyncio.run(sync_source(Declared(declared, "test"), store))


def test_retry_and_sync_look_at_failed_pages_again_and_put_their_dead_letters_aside(
    site: ScriptedSite, empty: Store, store_address: str
) -> None:
    site.sitemap({"/good": "2026-01-01", "/bad": "2026-01-01"})
    site["/good"] = Reply("<b class=sku>1</b>")
    site["/bad"] = [Reply("no", 403), Reply("no", 403), Reply("no", 403), Reply("<b class=sku>2</b>")]
    for _ in range(3):
        sync(site, empty)
    site.forget()
    sync(site, empty)
    assert site.paths() == [], "after three failures in a row it is left alone for a while"
    told = CliRunner().invoke(app, ["retry", "--failed", "--json", "--store", store_address])
    assert json.loads(told.stdout)["sources"][0]["due"] == 1
    sync(site, empty)
    assert site.paths() == ["/bad"]
    assert one(empty, "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL") == 0
    assert one(empty, "SELECT count(*) FROM things") == 2


def test_a_sitemap_that_reads_well_again_puts_its_dead_letter_aside(site: ScriptedSite, empty: Store) -> None:
    site["/sitemap.xml"] = Reply("<html>", headers={"Content-Type": "text/html"})
    sync(site, empty)
    assert one(empty, "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL") == 1
    site.sitemap([])
    sync(site, empty)
    assert one(empty, "SELECT resolution FROM dead_letters") == "superseded"


def test_the_command_says_what_it_did_and_what_comes_next(store: Store, store_address: str) -> None:
    dead(store, "bad")
    said = CliRunner().invoke(app, ["retry", SOURCE, "--store", store_address])
    assert said.exit_code == 0
    assert "shop: 1 failed, 0 missing: 1 to be looked at" in said.stdout
    assert "recrawl sync" in said.stdout
    assert CliRunner().invoke(app, ["retry", "shpo", "--store", store_address]).exit_code == 2

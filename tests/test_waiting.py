"""Waits of a run: for its turn at a slow host, and for one that is too far off."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from recrawl.declare import Record, Source, Urls, css
from recrawl.run import wire
from recrawl.run.engine import Ending, Engine
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source
from recrawl.steps.courtesy import PATIENCE
from recrawl.store import hosts, migrate
from recrawl.store.database import Store, open_store
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import one, rows


class Thing(Record, table="things", key="sku"):
    sku: str = css("b::text")


@pytest.fixture
def site() -> Iterator[ScriptedSite]:
    with ScriptedSite() as running:
        for number in range(6):
            running[f"/{number}"] = Reply(f"<b>{number}</b>")
        yield running


@pytest.fixture
def opened(store_address: str) -> Iterator[Store]:
    store = open_store(store_address)
    migrate.ready(store)
    yield store
    store.close()


def crawl_delay(site: ScriptedSite, seconds: int) -> None:
    site["/robots.txt"] = Reply(f"User-agent: *\nCrawl-delay: {seconds}\n", headers={"Content-Type": "text/plain"})


def declared(site: ScriptedSite) -> Declared:
    return Declared(Source("shop", find=Urls([f"{site.url}/{number}" for number in range(6)]), read=Thing), "test")


def test_an_interrupt_does_not_wait_for_a_long_crawl_delay(site: ScriptedSite, opened: Store) -> None:
    crawl_delay(site, 60)

    def stop_after_the_first_page(engine: Engine, progress: Progress) -> None:
        def watch(seen: Progress) -> None:
            if seen.looked_at:
                engine.stop()

        progress.on_change = watch

    began = time.monotonic()
    result = asyncio.run(sync_source(declared(site), opened, prepare=stop_after_the_first_page))
    assert result.ending is Ending.INTERRUPTED
    assert time.monotonic() - began < 30, "the next page's turn would have come after a minute"
    assert len(site.paths()) == 1
    waits = "SELECT count(*) AS tasks, max(attempt) AS attempts FROM tasks WHERE state IN ('pending', 'failed')"
    (waiting,) = rows(opened, waits)
    assert (waiting["tasks"], waiting["attempts"]) == (5, 0), "what only waited has spent no attempt"
    assert one(opened, "SELECT count(*) FROM tasks WHERE state = 'running'") == 0


def test_a_turn_beyond_the_patience_of_a_run_ends_it_as_waiting_and_the_next_run_goes_on(
    site: ScriptedSite, opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")
    crawl_delay(site, 1)
    far = 10 * PATIENCE
    now = wire._VIRTUAL.now()
    hosts.reserve(opened, site.url.removeprefix("http://"), 1, far, now)
    result = asyncio.run(sync_source(declared(site), opened))
    assert result.ending is Ending.WAITING
    assert result.until is not None
    assert result.until >= now + timedelta(seconds=far)
    assert site.paths() == []
    assert one(opened, "SELECT max(attempt) FROM tasks WHERE kind = 'visit'") == 0
    wire._VIRTUAL.ahead += result.until - wire._VIRTUAL.now()
    assert asyncio.run(sync_source(declared(site), opened)).ending is Ending.FINISHED
    assert len(site.paths()) == 6
    assert one(opened, "SELECT count(*) FROM things") == 6

"""Waits of a run for its turn at a slow host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from recrawl.declare import Record, Source, Urls, css
from recrawl.run.engine import Ending, Engine
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source
from recrawl.store import migrate
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

"""Ten years of a real site, replayed: after each sync the database holds what the site holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from recrawl.declare import Sitemap, Source
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source
from recrawl.store.database import Store, open_store
from tests.support.history import History, Mirror, served

GUARDED = (7, 48)
"""The steps that remove so much at once that a person has to agree."""


@pytest.fixture(scope="module")
def history(cases: Path) -> Iterator[History]:
    with served(cases / "histories") as running:
        yield running


def _sync(history: History, store: Store) -> Progress:
    source = Source("jobs", find=Sitemap(f"{history.base}/sitemap.xml"), forced_looks=0.0)
    result = asyncio.run(sync_source(Declared(source, history.base), store, concurrency=8))
    return result.progress


def _one(store: Store, sql: str) -> Any:
    with store.read() as connection:
        return connection.execute(text(sql)).scalar_one()


def _stored(store: Store) -> dict[str, str]:
    with store.read() as connection:
        return {row.url: row.raw_hash for row in connection.execute(text("SELECT url, raw_hash FROM pages"))}


def _walk(history: History, store: Store, steps: range, *, hinted: bool) -> None:
    for step in steps:
        history.go(step)
        _sync(history, store)
        stored, truth = _stored(store), history.truth()
        wrong = [url for url, hashed in truth.items() if stored.get(url) != hashed]
        assert not wrong, f"step {step}: {len(wrong)} pages differ, {wrong[:3]}"
        versions = _one(store, "SELECT count(*) FROM versions")
        history.go(step)
        again = _sync(history, store)
        assert _one(store, "SELECT count(*) FROM versions") == versions, f"step {step}: a version of nothing new"
        if hinted:
            assert history.pages_served() == 0, f"step {step}: pages were fetched though their lastmod stayed"
            assert again.looked_at == 0


def test_after_each_of_all_steps_every_page_of_the_site_is_stored_and_a_second_sync_asks_for_no_page(
    history: History, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "history.db"))
    history.fault("none")
    _walk(history, store, range(history.steps), hinted=True)


@pytest.mark.parametrize("steps", [range(13), range(40, 44)], ids=["the first years", "the migration"])
def test_without_validators_and_lastmod_every_page_is_asked_for_and_nothing_new_makes_no_version(
    history: History, tmp_path: Path, steps: range
) -> None:
    store = open_store(str(tmp_path / "history.db"))
    history.fault("no_validators")
    _walk(history, store, steps, hinted=False)


def test_a_lastmod_that_is_always_now_costs_conditional_requests_and_makes_no_version(
    history: History, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "history.db"))
    history.fault("lying_lastmod")
    _walk(history, store, range(20, 24), hinted=False)


@pytest.mark.prove
@pytest.mark.timeout(1800)
def test_all_steps_on_postgres_and_without_validators(history: History, postgres_address: str, tmp_path: Path) -> None:
    history.fault("none")
    _walk(history, open_store(postgres_address), range(history.steps), hinted=True)
    history.fault("no_validators")
    _walk(history, open_store(str(tmp_path / "blind.db")), range(history.steps), hinted=False)


# What is removed


@pytest.fixture
def mirror(
    request: pytest.FixtureRequest, history: History, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mirror]:
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")
    store = open_store(store_address)
    history.fault("none")
    yield Mirror(history, store, getattr(request, "param", "sitemap"))
    history.fault("none")
    store.close()


def _follow(mirror: Mirror, steps: range, fault: str) -> None:
    mirror.history.fault(fault)
    for step in steps:
        if step in GUARDED and step != steps[0]:
            mirror.follow_with_approval(step)
        else:
            mirror.follow(step)


@pytest.mark.parametrize("steps", [range(13), range(40, 50)], ids=["the first years", "the migration"])
@pytest.mark.parametrize("fault", ["none", "errors", "lying_lastmod"])
def test_pages_that_the_site_removed_are_deleted_and_no_others(mirror: Mirror, steps: range, fault: str) -> None:
    _follow(mirror, steps, fault)

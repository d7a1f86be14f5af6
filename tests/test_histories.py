"""Ten years of a real site, replayed: after each sync the database holds what the site holds."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from recrawl.declare import Sitemap, Source
from recrawl.run.engine import Ending
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source
from recrawl.store.database import Store, open_store
from tests.support.history import CYCLES, WAYS, History, Mirror, served

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

FAULTS = ["none", "errors", "lying_lastmod", "no_validators"]
CUT = ["sitemap_half", "sitemap_empty"]


@pytest.fixture
def mirror(
    history: History, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mirror]:
    shutil.copyfile(sqlite_template, tmp_path / "mirror.db")
    with _mirrored(history, str(tmp_path / "mirror.db"), "sitemap", monkeypatch) as mirror:
        yield mirror


@contextmanager
def _mirrored(history: History, address: str, way: str, patch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    patch.setenv("RECRAWL_CLOCK", "virtual")
    store = open_store(address)
    history.fault("none")
    yield Mirror(history, store, way)
    history.fault("none")
    store.close()


def _follow(mirror: Mirror, steps: range, fault: str) -> None:
    mirror.history.fault(fault)
    for step in steps:
        if step in GUARDED and step != steps[0]:
            mirror.follow_with_approval(step)
        else:
            mirror.follow(step)


def _follow_through_faults(mirror: Mirror, steps: Iterable[int], fault: str) -> None:
    """Each step comes together with the fault; when that is lifted, one cycle finds all that is there."""
    for step in steps:
        mirror.history.fault(fault)
        mirror.move(step)
        for _ in range(CYCLES):
            mirror.sync()
            wrong = (mirror.pages("suspected", "deleted") & mirror.truth.keys()) - mirror.back
            assert not wrong, f"step {step}: {sorted(wrong)[:3]} are suspected for a fault of the sitemap"
        mirror.history.fault("none")
        mirror.sync()
        mirror.compare_active(step)
        for _ in range(CYCLES):
            if mirror.sync().ending is Ending.APPROVAL:
                mirror.approve()
        mirror.compare(step)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("steps", [range(13), range(40, 50)], ids=["the first years", "the migration"])
@pytest.mark.parametrize("fault", ["none", "errors", "lying_lastmod"])
def test_pages_that_the_site_removed_are_deleted_and_no_others(mirror: Mirror, steps: range, fault: str) -> None:
    _follow(mirror, steps, fault)


@pytest.mark.parametrize("fault", CUT)
def test_a_sitemap_that_lost_its_pages_makes_no_page_suspect(mirror: Mirror, fault: str) -> None:
    mirror.follow(1)
    _follow_through_faults(mirror, (2, 4, 6), fault)


@pytest.mark.parametrize("way", ["listing", "api", "feed+sitemap"])
def test_other_ways_of_finding_pages_miss_the_same(
    history: History, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    shutil.copyfile(sqlite_template, tmp_path / "mirror.db")
    with _mirrored(history, str(tmp_path / "mirror.db"), way, monkeypatch) as mirror:
        _follow(mirror, range(1, 3), "none")


@pytest.mark.prove
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS + CUT)
def test_all_steps_by_every_way_and_through_every_fault(
    history: History, store_address: str, monkeypatch: pytest.MonkeyPatch, way: str, fault: str
) -> None:
    with _mirrored(history, store_address, way, monkeypatch) as mirror:
        if fault in CUT:
            mirror.follow(0)
            _follow_through_faults(mirror, range(1, history.steps), fault)
        else:
            _follow(mirror, range(history.steps), fault)

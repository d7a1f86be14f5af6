"""Every shared HTTP scenario, played by a real server in whole runs on a clock that jumps.

A pass is a run that ends with its first look at the page. What a pass came to is read out of the database.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recrawl.declare import Record, Source, Urls
from recrawl.extract.fetched import Fetched
from recrawl.run import wire
from recrawl.run.engine import Engine
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source
from recrawl.store.database import Store, open_store
from tests.support.scenes import PAGE, Scene
from tests.support.stores import one, rows


def _scenarios() -> list[dict[str, Any]]:
    folder = os.environ.get("RECRAWL_CASES")
    return json.loads((Path(folder) / "http" / "scenarios.json").read_bytes())["scenarios"] if folder else []


class Whole(Record, table="texts", key="url"):
    url: str
    text: str


def whole(page: Fetched) -> Iterable[Whole]:
    """The body as text, as it is."""
    yield Whole(url=page.url, text=page.text)


@pytest.fixture
def store(store_address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")
    opened = open_store(store_address)
    yield opened
    opened.close()


def declared(scene: Scene, pages: Iterable[str]) -> Declared:
    find = Urls([scene.url + path for path in pages])
    return Declared(Source("scene", find=find, read=whole, forced_looks=0.0), "test")


def one_look(source: Declared, store: Store) -> Progress:
    """A run that is stopped once it has looked at its page."""
    seen = Progress("scene")

    def prepare(engine: Engine, progress: Progress) -> None:
        nonlocal seen
        seen = progress
        progress.on_change = lambda p: engine.stop() if p.looked_at + p.counts["postponed"] else None

    asyncio.run(sync_source(source, store, delay=0.0, prepare=prepare))
    return seen


def later(span: timedelta) -> None:
    asyncio.run(wire._VIRTUAL.sleep(span.total_seconds()))


# What a pass may have come to where a scenario says this.
_LINES = {
    "new": {"new"},
    "changed": {"changed"},
    "restored": {"changed"},
    "unchanged": {"unchanged_304", "unchanged_hash"},
    "missing": {"gone", "quarantined"},
    "suspect-gone": {"gone", "quarantined"},
    "gone": {"gone", "quarantined"},
    "unchanged-deleted": {"gone"},
    "moved": {"moved"},
    "error": {"broken", "failed"},
    "blocked": {"refused", "quarantined", "failed"},
    "suspect": {"refused", "quarantined"},
    "suspect-stale": {"quarantined", "regressions"},
    "retry-later": {"throttled"},
    "retry-unconditional": {"new", "changed", "unchanged_hash"},
}


def came_to(progress: Progress, store: Store) -> str:
    (line,) = [name for name in [*_ENDS, "postponed"] if progress.counts[name]]
    if line != "postponed":
        return line
    waits = one(store, "SELECT error_class FROM tasks WHERE page IS NOT NULL ORDER BY id DESC LIMIT 1")
    return "throttled" if waits == "throttled" else "broken"


_ENDS = sorted(set().union(*_LINES.values()) - {"broken", "throttled"})


def the_page(store: Store) -> dict[str, Any]:
    (page,) = rows(store, "SELECT * FROM pages WHERE url LIKE :end", end=f"%{PAGE}")
    return dict(page)


def check(step: dict[str, Any], scene: Scene, store: Store) -> None:
    """The headers sent, the versions stored, and that a page that once had data keeps them."""
    expected = step["expect"]
    if "request_headers" in expected:
        assert scene.sent[0] == expected["request_headers"]
    if expected["outcome"] == "retry-unconditional":
        assert scene.sent[0]
        assert scene.sent[1] == {}
    kinds = [row["kind"] for row in rows(store, "SELECT kind FROM versions ORDER BY seq")]
    if "versions" in expected:
        assert len([kind for kind in kinds if kind not in ("deleted", "restored")]) == expected["versions"]
    if "created" in kinds and not the_page(store)["deleted_at"]:
        assert one(store, "SELECT count(*) FROM texts WHERE _deleted_at IS NULL") == 1


PLAIN = [s for s in _scenarios() if not any(step["expect"]["outcome"] == "deleted" for step in s["steps"])]
DELETING = [s for s in _scenarios() if s not in PLAIN]


def test_the_scenarios_are_all_there(cases: Path) -> None:
    assert len(PLAIN) + len(DELETING) == len(json.loads((cases / "http" / "scenarios.json").read_bytes())["scenarios"])


@pytest.mark.parametrize("scenario", PLAIN, ids=lambda scenario: scenario["id"])
def test_a_scenario_is_recorded_as_it_says(scenario: dict[str, Any], store: Store) -> None:
    with Scene(scenario, wire._VIRTUAL.now) as scene:
        source = declared(scene, [PAGE])
        for number, step in enumerate(scenario["steps"]):
            scene.begin(number)
            line = came_to(one_look(source, store), store)
            assert line in _LINES[step["expect"]["outcome"]], (number, step["expect"])
            check(step, scene, store)
            later(timedelta(hours=1))

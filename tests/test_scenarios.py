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
from tests.support.scenes import GOOD, PAGE, Scene
from tests.support.scripted import Reply, ScriptedSite
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
    page = the_page(store)
    kinds = [row["kind"] for row in rows(store, "SELECT kind FROM versions WHERE page = :page", page=page["id"])]
    if "versions" in expected:
        assert len([kind for kind in kinds if kind not in ("deleted", "restored")]) == expected["versions"]
    if "created" in kinds and not page["deleted_at"]:
        live = "SELECT count(*) FROM texts WHERE _deleted_at IS NULL AND url = :url"
        assert one(store, live, url=page["url"]) == 1


def _loses(scenario: dict[str, Any]) -> bool:
    """Whether its page is ever not found: then other pages of the host must be there to say that this means something,
    and runs must come to their end, which alone judges absence."""
    return any(step["respond"]["status"] in (404, 410) for step in scenario["steps"])


SCENARIOS = _scenarios()
PLAIN, LOSING = ([s for s in SCENARIOS if _loses(s) is losing] for losing in (False, True))


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


# Scenarios with 404 and 410. Where they differ from the rules in when a page counts as deleted, the rules win: a look
# is evidence, and looks hours apart confirm it.

_GAP = timedelta(hours=7)
_CYCLES = 5


@pytest.mark.parametrize("scenario", LOSING, ids=lambda scenario: scenario["id"])
def test_a_page_that_is_not_found_is_recorded_as_the_scenario_says(scenario: dict[str, Any], store: Store) -> None:
    with Scene(scenario, wire._VIRTUAL.now) as scene:
        source = declared(scene, [PAGE, *GOOD])
        for number, step in enumerate(scenario["steps"]):
            scene.begin(number)
            for _ in range(_CYCLES if step["expect"]["outcome"] == "deleted" else 1):
                asyncio.run(sync_source(source, store, delay=0.0))
                later(_GAP)
                if the_page(store)["status"] == "deleted":
                    break
            check_standing(step["expect"], store)
            check(step, scene, store)


def check_standing(expected: dict[str, Any], store: Store) -> None:
    page = the_page(store)
    kinds = [row["kind"] for row in rows(store, "SELECT kind FROM versions WHERE page = :page", page=page["id"])]
    match expected["outcome"]:
        case "new":
            assert (page["status"], kinds) == ("active", ["created"])
        case "missing" | "suspect-gone" | "gone":
            assert page["status"] in ("active", "suspected")
            assert page["gone_at"] is not None
            assert "deleted" not in kinds
        case "deleted" | "unchanged-deleted":
            assert page["status"] == "deleted"
            assert kinds.count("deleted") == 1
        case "restored":
            assert (page["status"], kinds[-1]) == ("active", "restored")
        case "unchanged":
            assert (page["status"], page["gone_at"]) == ("active", None)
        case other:
            raise AssertionError(f"no such outcome is known of a page that is not found: {other}")


# Cache tests


def _validators(request: dict[str, Any], now: str) -> dict[str, str]:
    """The validators among the headers of a cache test's answer; a number stands for a time."""
    headers = {name: value for name, value, *_ in request.get("response_headers", [])}
    found = {name: headers[name] for name in ("ETag", "Last-Modified") if name in headers}
    return {name: value if isinstance(value, str) else now for name, value in found.items()}


def test_validators_go_back_as_every_cache_test_gave_them_and_a_304_renews_them(cases: Path, store: Store) -> None:
    """A store of pages is no cache: it asks again where a cache would still answer, so `cached` is no matter here."""
    suites = json.loads((cases / "http" / "cache_tests.json").read_bytes())["suites"]
    chosen = [t for s in suites if s["id"] in ("conditional-lm", "conditional-inm", "update304") for t in s["tests"]]
    given, renewed = "Wed, 01 Jan 2020 00:00:00 GMT", "Thu, 02 Jan 2020 00:00:00 GMT"
    first = {f"/{t['id']}": _validators(t["requests"][0], given) for t in chosen}
    then = {f"/{t['id']}": _validators(t["requests"][1], renewed) for t in chosen if len(t["requests"]) > 1}
    with ScriptedSite() as site:
        for path, validators in first.items():
            text = {"Content-Type": "text/plain"}
            site[path] = [
                Reply(path, headers=text | validators),
                Reply(status=304, headers=then.get(path, {})) if validators else Reply(path, headers=text),
                Reply(status=304) if validators else Reply(path, headers=text),
            ]
        find = Urls([site.url + path for path in first])
        source = Declared(Source("caches", find=find, read=whole, forced_looks=0.0), "test")
        expected: tuple[dict[str, dict[str, str]], ...] = (
            {},
            first,
            {path: first[path] | then.get(path, {}) for path in first},
        )
        for sent in expected:
            site.forget()
            asyncio.run(sync_source(source, store, delay=0.0))
            names = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
            for asked in site.asked:
                if asked.path in first:
                    got = {name: asked.headers[header] for header, name in names.items() if header in asked.headers}
                    assert got == sent.get(asked.path, {}), asked.path
            assert len(site.paths()) == len(first)
    assert one(store, "SELECT count(*) FROM versions") == len(first)

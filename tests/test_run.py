"""The long-running scheduler: sources gone through when they are due, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.decide.health import Ailment, Passes, ailments
from recrawl.declare import Record, Sitemap, Source, css
from recrawl.operate.health import unhealthy
from recrawl.operate.jobs import JOBS
from recrawl.run import wire
from recrawl.run.engine import Engine, Result
from recrawl.run.progress import Progress
from recrawl.run.schedule import Job, Scheduler, Served
from recrawl.run.wire import Declared
from recrawl.store import cycle, migrate, sources
from recrawl.store.database import Store, open_store
from recrawl.store.reap import reap
from tests.support.plainsite import PlainSite
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import NOW, READER, SOURCE, SPEC, a_page, a_walk, one, rows, sight

HOUR = 3600.0


class Thing(Record, table="things", key="sku"):
    sku: str = css("b::text")


class Other(Record, table="things", key="sku"):
    sku: int = css("b::text")


@pytest.fixture
def site(site: ScriptedSite) -> ScriptedSite:
    site.sitemap(["/a"])
    site["/a"] = Reply("<b>1</b>")
    return site


class Ear:
    """Hears how it goes, and stops the scheduler once it has heard enough."""

    def __init__(self, enough: int) -> None:
        self.heard: list[tuple[str, str, datetime]] = []
        self.enough = enough
        self.scheduler: Scheduler | None = None

    def began(self, served: Served, job: Job, engine: Engine, progress: Progress) -> None:
        self._note("began", served)

    def ended(self, served: Served, job: Job, result: Result, following: datetime) -> None:
        self._note(result.ending.value, served)

    def failed(self, served: Served, job: Job, error: Exception, again: datetime) -> None:
        self._note("failed", served)

    def _note(self, what: str, served: Served) -> None:
        self.heard.append((what, served.name, wire._VIRTUAL.now()))
        if len(self.heard) >= self.enough and self.scheduler is not None:
            self.scheduler.stop()

    def times(self, what: str, name: str) -> list[datetime]:
        return [at for heard, source, at in self.heard if (heard, source) == (what, name)]


def look_after(store: Store, *declared: Source, enough: int, every: float = HOUR) -> Ear:
    """Run the scheduler until so many things have been heard."""
    ear = Ear(enough)
    served = [Served(Declared(source, "test"), store, every) for source in declared]
    ear.scheduler = Scheduler(served, JOBS, wire._VIRTUAL, ear)
    asyncio.run(ear.scheduler.run())
    return ear


def a_source(site: ScriptedSite, name: str = "shop", **more: Any) -> Source:
    given: dict[str, Any] = {"find": Sitemap(f"{site.url}/sitemap.xml"), "read": Thing}
    return Source(name, **(given | more))


def test_each_source_is_gone_through_when_its_own_interval_is_over(site: ScriptedSite, empty: Store) -> None:
    ear = look_after(empty, a_source(site), a_source(site, "often", every="20m"), enough=24)
    for name, between in (("shop", timedelta(hours=1)), ("often", timedelta(minutes=20))):
        times = ear.times("began", name)
        assert len(times) >= 3
        for before, after in pairwise(times):
            assert timedelta(0) <= after - before - between < timedelta(minutes=2)
    assert {what for what, _, _ in ear.heard} <= {"began", "finished", "interrupted"}
    assert one(empty, "SELECT every FROM sources WHERE name = 'often'") == 1200


def test_a_source_is_compared_wholly_and_audited_when_a_full_scan_is_due(site: ScriptedSite, empty: Store) -> None:
    begun = wire._VIRTUAL.now()
    ear = look_after(empty, a_source(site, full_scan="3h"), enough=20)
    kinds = {row["kind"]: row["first"] for row in rows(empty, _CHECKS)}
    assert kinds.keys() == {"reconciled", "audit"}
    assert all(datetime.fromisoformat(str(first)) >= begun + timedelta(hours=3) for first in kinds.values())
    assert not ear.times("failed", "shop")


_CHECKS = "SELECT kind, min(at) AS first FROM events WHERE kind IN ('reconciled', 'audit') GROUP BY kind"


def test_one_that_begins_anew_does_only_what_is_due(site: ScriptedSite, empty: Store) -> None:
    look_after(empty, a_source(site), enough=2)
    passes = one(empty, "SELECT count(*) FROM cycles")
    before = wire._VIRTUAL.now()
    look_after(empty, a_source(site), enough=2)
    assert one(empty, "SELECT count(*) FROM cycles") == passes + 1
    assert wire._VIRTUAL.now() - before > timedelta(minutes=50)


def test_a_source_that_cannot_be_served_stops_no_other_and_is_tried_again(site: ScriptedSite, empty: Store) -> None:
    look_after(empty, a_source(site), enough=2)
    ear = look_after(empty, a_source(site), a_source(site, "wrong", read=Other), enough=24)
    assert len(ear.times("failed", "wrong")) >= 3
    assert len(ear.times("finished", "shop")) >= 2


def test_what_had_to_wait_is_gone_on_with_when_the_wait_is_over(site: ScriptedSite, empty: Store) -> None:
    site["/a"] = [Reply("busy", 503, {"Retry-After": "600"}), Reply("<b>1</b>")]
    ear = look_after(empty, a_source(site), enough=4, every=24 * HOUR)
    assert [what for what, _, _ in ear.heard] == ["began", "waiting", "began", "finished"]
    (began, again) = ear.times("began", "shop")
    assert timedelta(minutes=9) < again - began < timedelta(minutes=15)


# As a process


def declare(folder: Path, base: str, name: str = "plain") -> Path:
    path = folder / "declared.py"
    path.write_text(
        "from recrawl import Record, Sitemap, Source, css\n\n"
        "class Part(Record, table='parts', key='code'):\n    code: str = css('b.code::text')\n\n"
        f"plain = Source({name!r}, find=Sitemap('{base}/sitemap.xml'), read=Part, forced_looks=0.0)\n"
    )
    return path


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `recrawl run` in a folder of this test's own; what still runs at its end is killed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RECRAWL_")}
    running: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "recrawl", "run", *arguments]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def told(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """The next line of that kind that a process prints."""
    assert process.stdout is not None
    for line in process.stdout:
        found: dict[str, Any] = json.loads(line)
        if found["event"] == event:
            return found
        assert found["event"] != "failed", found
    raise AssertionError(f"it ended without {event!r}")


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str]:
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_an_orderly_way(tmp_path: Path, start: Start, number: int) -> None:
    with PlainSite(pages=20) as site:
        process = start(str(declare(tmp_path, site.url)), "--json")
        ended = told(process, "ended")
        assert ended["source"] == "plain"
        assert ended["counts"]["looked_at"] == 21, "one of the 20 has moved"
        code, errors = end(process, number)
    assert (code, errors) == (130, "")
    store = open_store(str(tmp_path / "recrawl.db"))
    assert one(store, "SELECT count(*) FROM runs WHERE state = 'running'") == 0
    store.close()


def test_without_a_terminal_it_tells_in_plain_lines(tmp_path: Path, start: Start) -> None:
    with PlainSite(pages=5) as site:
        process = start(str(declare(tmp_path, site.url)))
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        assert end(process)[0] == 130
    assert "plain: sync began" in lines[0]
    assert "5 looked at" in lines[1]
    assert "next 20" in lines[1]


def test_two_at_once_share_the_work_and_ask_for_no_page_twice(tmp_path: Path, start: Start) -> None:
    with PlainSite(pages=300) as site:
        declared = str(declare(tmp_path, site.url))
        subprocess.run([sys.executable, "-m", "recrawl", "db", "upgrade"], cwd=tmp_path, check=True, timeout=60)
        pair = [start(declared, "--json") for _ in range(2)]
        looked = sum(told(process, "ended")["counts"]["looked_at"] for process in pair)
        for process in pair:
            assert end(process)[0] == 130
        asked = Counter(path for path in site.requests if path.startswith("/p/"))
    assert set(asked.values()) == {1}
    assert len(asked) == 300
    assert looked >= 300


def test_one_that_is_killed_is_gone_on_from_by_the_next(tmp_path: Path, start: Start) -> None:
    with PlainSite(pages=300) as site:
        declared = str(declare(tmp_path, site.url))
        process = start(declared, "--json")
        site.on_response = lambda served: process.kill() if served == 100 else None
        process.communicate(timeout=60)
        site.on_response = lambda _: None
        again = start(declared, "--json")
        assert told(again, "ended")["ending"] == "failures"  # some pages of that site hold no key
        end(again)
        asked = Counter(path for path in site.requests if path.startswith("/p/"))
    assert len(asked) == 300
    store = open_store(str(tmp_path / "recrawl.db"))
    assert one(store, "SELECT count(*) FROM tasks WHERE state IN ('pending', 'running', 'failed')") == 0
    store.close()


def test_wrong_arguments_are_refused_before_anything_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (["--every", "often"], ["--every", "0s"], []):
        result = CliRunner().invoke(app, ["run", *arguments, *(["https://a.example"] if arguments else [])])
        assert result.exit_code == 2, result.output
        assert not (tmp_path / "recrawl.db").exists()


# Health


def test_a_source_is_overdue_when_its_pass_is_late_by_more_than_two_intervals() -> None:
    well = Passes(first=NOW, last=NOW, complete=NOW)
    assert list(ailments(well, HOUR, NOW + timedelta(hours=3))) == []
    late = list(ailments(well, HOUR, NOW + timedelta(hours=3, seconds=1)))
    assert late[0] == (Ailment.OVERDUE, NOW + timedelta(hours=1))


def test_a_source_without_a_complete_pass_for_three_intervals_is_told_apart_from_one_that_is_overdue() -> None:
    now = NOW + timedelta(hours=4)
    working = Passes(first=NOW, last=now, complete=NOW)
    assert [kind for kind, _ in ailments(working, HOUR, now)] == [Ailment.INCOMPLETE]
    never = Passes(first=NOW, last=now, under_way=True)
    assert list(ailments(never, HOUR, now)) == [(Ailment.INCOMPLETE, NOW)]


def test_what_was_never_gone_through_or_never_promised_or_paused_is_not_unhealthy(store: Store) -> None:
    long_after = NOW + timedelta(days=30)
    sources.register(store, SOURCE, SPEC, READER, HOUR)
    assert unhealthy(store, long_after) == []
    sight(store, a_page("a"))
    assert {one.kind for one in unhealthy(store, long_after)} == {Ailment.OVERDUE, Ailment.INCOMPLETE}
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE sources SET paused = true")
    assert unhealthy(store, long_after) == []
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE sources SET paused = false, every = NULL")
    assert unhealthy(store, long_after) == []


def test_status_check_prints_what_is_unhealthy_and_exits_with_1(
    site: ScriptedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "recrawl.db")
    store = open_store(address)
    migrate.ready(store)
    look_after(store, a_source(site), enough=2)
    store.close()

    def check(*more: str) -> Any:
        return CliRunner().invoke(app, ["status", "--check", "--store", address, *more])

    assert check().exit_code == 0, check().output
    wire._VIRTUAL.ahead += timedelta(hours=4)
    result = check()
    assert result.exit_code == 1
    assert "shop: overdue: its next pass has been due since" in result.stdout
    assert "recrawl run" in result.stdout
    answer = json.loads(check("--json").stdout)
    assert not answer["healthy"]
    assert {one["kind"] for one in answer["unhealthy"]} == {"overdue", "incomplete"}
    status = CliRunner().invoke(app, ["status", "--store", address]).stdout
    assert "next pass" in status


# A cycle left open for a week


def test_a_cycle_left_open_for_a_week_is_closed_as_incomplete_and_another_one_begins(store: Store) -> None:
    left = a_walk(store)
    week = NOW + timedelta(days=7)
    reap(store, week)
    begun = cycle.begin(store, SOURCE, [cycle.Stream("sitemap", "shop.example", exhaustive=True)], week)
    assert not begun.joined
    old, new = rows(store, "SELECT id, state, complete FROM cycles ORDER BY id")
    assert (old["id"], old["state"], bool(old["complete"])) == (left.task.cycle, "closed", False)
    assert new["state"] == "open"
    assert one(store, "SELECT state FROM tasks WHERE cycle = :cycle", cycle=left.task.cycle) == "expired"

"""SIGKILL anywhere, start again: the rows of a run that was never killed.

The points are drawn anew each time: beginnings and commits of transactions, and answers of the site. `make prove` takes
them all.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import text

from recrawl.store.database import open_store
from tests.support.dump import dump
from tests.support.killable import Killable
from tests.support.plain_source import sync_once
from tests.support.plainsite import PlainSite

_DRAWN = 20
_RANDOM = random.Random(os.environ.get("RECRAWL_SEED"))
Fresh = Callable[[], str]


@pytest.fixture(params=["sqlite", "postgres"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fresh]:
    """Makes migrated databases, each of its own."""
    if request.param == "sqlite":
        template = request.getfixturevalue("sqlite_template")
        numbers = iter(range(10_000))

        def copy() -> str:
            path = tmp_path / f"crash{next(numbers)}.db"
            shutil.copyfile(template, path)
            return str(path)

        yield copy
        return
    import psycopg

    server = request.getfixturevalue("postgres_server")
    made: list[str] = []
    with psycopg.connect(server.format("postgres"), autocommit=True) as connection:

        def create() -> str:
            name = f"crash_{os.getpid()}_{_RANDOM.getrandbits(40):x}"
            connection.execute(f"CREATE DATABASE {name} TEMPLATE migrated".encode())
            made.append(name)
            return str(server.format(name))

        yield create
        for name in made:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def site() -> Iterator[PlainSite]:
    with PlainSite() as running:
        yield running


def _sync(address: str, base: str) -> str:
    return Killable(sync_once, address, base).answer()


def _content(address: str, base: str) -> dict[str, list[str]]:
    store = open_store(address)
    try:
        return dump(store, base)
    finally:
        store.close()


def _killed(address: str, site: PlainSite, point: str) -> None:
    """Run a sync until it is killed at `point`: `begin:N`, `commit:N`, or `response:N`."""
    kind, _, number = point.partition(":")
    if kind != "response":
        Killable(sync_once, address, site.url, point).wait()
        return
    last, started = site.served + int(number), Event()

    def kill(served: int) -> None:
        if served == last:
            started.wait()
            process.kill()

    site.on_response = kill
    process = Killable(sync_once, address, site.url)
    started.set()
    process.wait()
    site.on_response = lambda _: None


@cache
def _points(transactions: int, responses: int) -> list[str]:
    return [
        *(f"begin:{number}" for number in range(1, transactions + 1)),
        *(f"commit:{number}" for number in range(1, transactions + 1)),
        *(f"response:{number}" for number in range(1, responses + 1)),
    ]


class Uninterrupted:
    """What syncs that nobody killed leave behind, and the points at which the first could have been killed.

    A sync that is killed after it has closed its cycle has done its work; the one that follows it begins another cycle.
    So what is to be compared with is as many syncs as there were cycles.
    """

    def __init__(self, fresh: Fresh, site: PlainSite) -> None:
        self._site = site
        self._address = fresh()
        transactions = int(_sync(self._address, site.url))
        self.points = _points(transactions, site.served)
        self._after = [_content(self._address, site.url)]

    def compare(self, address: str, point: str) -> None:
        got = _content(address, self._site.url)
        cycles = _cycles(address)
        while len(self._after) < cycles:
            _sync(self._address, self._site.url)
            self._after.append(_content(self._address, self._site.url))
        for table, rows in self._after[cycles - 1].items():
            missing, extra = set(rows) - set(got[table]), set(got[table]) - set(rows)
            told = f"killed at {point}, {table} lacks {sorted(missing)[:3]} and has besides {sorted(extra)[:3]}"
            assert not missing | extra, told


def _cycles(address: str) -> int:
    store = open_store(address)
    try:
        with store.read() as connection:
            return int(connection.execute(text("SELECT count(*) FROM cycles")).scalar_one())
    finally:
        store.close()


@pytest.mark.timeout(300)
def test_a_sync_that_is_killed_and_started_again_leaves_what_an_uninterrupted_one_leaves(
    fresh: Fresh, site: PlainSite
) -> None:
    wanted = Uninterrupted(fresh, site)
    for point in _RANDOM.sample(wanted.points, _DRAWN):
        address = fresh()
        _killed(address, site, point)
        _sync(address, site.url)
        wanted.compare(address, point)


def test_a_sync_that_is_killed_many_times_in_a_row_still_comes_to_the_same(fresh: Fresh, site: PlainSite) -> None:
    wanted = Uninterrupted(fresh, site)
    address = fresh()
    points = _RANDOM.sample(wanted.points, 5)
    for point in points:
        _killed(address, site, point)
    _sync(address, site.url)
    wanted.compare(address, ", ".join(points))


@pytest.mark.timeout(200)
def test_two_syncs_at_once_share_the_work_and_make_no_request_twice(fresh: Fresh, site: PlainSite) -> None:
    wanted = Uninterrupted(fresh, site)
    asked = sorted(site.requests)
    site.requests.clear()
    address = fresh()
    pair = [Killable(sync_once, address, site.url) for _ in range(2)]
    for process in pair:
        process.answer()
    wanted.compare(address, "nothing, two at once")
    assert sorted(path for path in site.requests if path.startswith("/p/")) == [
        path for path in asked if path.startswith("/p/")
    ]


@pytest.mark.prove
@pytest.mark.timeout(7200)
def test_a_sync_can_be_killed_at_every_transaction_and_every_answer(fresh: Fresh, site: PlainSite) -> None:
    wanted = Uninterrupted(fresh, site)
    assert len(wanted.points) >= 200
    for point in wanted.points:
        address = fresh()
        _killed(address, site, point)
        _sync(address, site.url)
        wanted.compare(address, point)

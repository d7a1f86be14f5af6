"""No hot statement reads a whole table, or all tasks of a source: cost grows with the work done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from recrawl.decide.profile import Profile
from recrawl.decide.trust import ENOUGH, Subject
from recrawl.declare.policies import Deletion
from recrawl.store import close, cursor, plan, profiles, queries, reap, trust
from recrawl.store.database import Store, open_store
from recrawl.store.runs import open_work
from tests.support.stores import (
    LEASE,
    NOW,
    READER,
    SOURCE,
    STREAM,
    a_broken_outcome,
    a_page,
    an_unchanged_outcome,
    fresh_store,
    put,
    sight,
    take,
    visited,
)

_LARGE = {"pages", "tasks", "versions", "members", "batch_tasks", "bodies", "yields", "aliases", "events", "things"}
_WHOLE = re.compile(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")
_OF_A_SOURCE = re.compile(
    r"(tasks|t) USING (?:COVERING )?INDEX sqlite_autoindex_tasks_1 \(source=\?\)"
    r"|p USING INDEX ix_pages_due \(source=\? AND due_at>\?\)$"  # all that are due at any time
)
# Indexes of few rows at any time: tasks that run, or whose worker died; what is missed and not deleted yet.
_SMALL = {"ix_tasks_crashed", "ix_tasks_leases", "ix_members_dropped", "ix_pages_watched"}
_ALIASES = {
    "p": "pages",
    "t": "tasks",
    "v": "versions",
    "m": "members",
    "bt": "batch_tasks",
    "y": "yields",
    "b": "bodies",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = fresh_store(tmp_path / "plans.db")
    yield opened
    opened.close()


@contextmanager
def plans_of(store: Store, wrong: list[str]) -> Iterator[None]:
    """Note each statement whose plan reads a large table whole."""
    explaining = open_store(store.url)

    @event.listens_for(store.engine, "before_cursor_execute")
    def explain(_c: Any, _k: Any, statement: str, parameters: Any, _x: Any, many: bool) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")):
            one = parameters[0] if many else parameters
            with explaining.read() as connection:
                rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", one).all()
            for row in rows:
                if (found := _WHOLE.match(row[3])) and found[2] not in _SMALL:
                    if _ALIASES.get(found[1], found[1]) in _LARGE:
                        wrong.append(f"{row[3]}: {' '.join(statement.split())[:300]}")
                elif _OF_A_SOURCE.search(row[3]):
                    wrong.append(f"{row[3]}: {' '.join(statement.split())[:300]}")

    yield
    event.remove(store.engine, "before_cursor_execute", explain)
    explaining.close()


def test_no_verb_reads_a_large_table_whole(store: Store) -> None:
    pages = [a_page(str(number), "monday") for number in range(20)]
    visited(store, *((page, "one") for page in pages))
    wrong: list[str] = []
    with plans_of(store, wrong):
        sight(store, *(a_page(str(number), "tuesday") for number in range(10)), a_page("new", "monday"))
        plan.plan(store, SOURCE, until=NOW, now=NOW, expires_at=NOW + timedelta(days=1))
        plan.plan_rereads(store, SOURCE, READER, now=NOW, expires_at=NOW + timedelta(days=1))
        held = take(store, 5)
        put(store, *((task, a_broken_outcome(task)) for task in held[:2]))
        put(store, *((task, an_unchanged_outcome(task)) for task in held[2:]))
        take(store, 1)
        reap.reap(store, NOW + 2 * LEASE)
        take(store, 1, now=NOW + 2 * LEASE)
        cursor.advance(store, SOURCE, STREAM, NOW)
        close.close(store, SOURCE, 1, Deletion(), NOW)
        open_work(store, SOURCE, NOW)
    assert wrong == []


def test_judging_reads_no_large_table_whole(store: Store) -> None:
    visited(store, *((a_page(str(number), "monday"), "one") for number in range(20)))
    wrong: list[str] = []
    with plans_of(store, wrong):
        profiles.add(store, SOURCE, Profile(pages=1), NOW, rebuilt=True, told={"looks": 20, "moved": 19})
        profiles.profile(store, SOURCE)
        profiles.look_again(store, [1, 2, 3], NOW)
        trust.streams_of(store, SOURCE, [1, 2, 3])
        trust.note(store, SOURCE, {(Subject.HINTS, STREAM): [False] * ENOUGH}, now=NOW, soon=NOW)
        trust.trust_of(store, SOURCE)
        queries.some_pages(store, SOURCE, 5)
    assert wrong == []

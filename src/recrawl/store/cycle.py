"""The verb `begin`: open one pass over all streams of a source. Its end, `close`, is in close.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, select, text, update

from recrawl.model.work import TaskKind, TaskState
from recrawl.store.database import Store
from recrawl.store.keys import task_key
from recrawl.store.tables import cursors, cycles, tasks

STALE_AFTER = timedelta(hours=1)
"""An open cycle older than this, whose discovery nobody is at, is not gone on with: what it saw may be history."""


# Written out, so that both databases find the small indexes of open tasks.
_OPEN = text("tasks.state IN ('pending', 'running', 'failed')")
_RUNNING = text("tasks.state = 'running'")


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of a source as the store needs it. `host` is where its first document stands."""

    name: str
    host: str
    exhaustive: bool


@dataclass(frozen=True, slots=True)
class Cycle:
    id: int
    started_at: datetime
    joined: bool = False  # it was open already: another run, or one that was killed, began it


def begin(store: Store, source: str, streams: Sequence[Stream], now: datetime) -> Cycle:
    """Open a cycle with one discover task per stream, or join the one that is open."""

    def work(connection: Connection) -> Cycle:
        _abandon_stale(connection, source, now)
        opened = connection.execute(
            store.insert(cycles)
            .values(source=source, started_at=now, state="open", complete=False)
            .on_conflict_do_nothing()
            .returning(cycles.c.id)
        ).scalar_one_or_none()
        if opened is None:
            row = connection.execute(
                select(cycles.c.id, cycles.c.started_at).where(cycles.c.source == source, cycles.c.state == "open")
            ).one()
            cycle = Cycle(row.id, row.started_at, joined=True)
        else:
            cycle = Cycle(opened, now)
        for stream in streams:
            _enter(store, connection, source, stream, cycle.id, now)
        return cycle

    return store.write(work)


def _abandon_stale(connection: Connection, source: str, now: datetime) -> None:
    """Close a cycle that was left open long ago, as incomplete."""
    working = select(tasks.c.id).where(_RUNNING, tasks.c.kind == TaskKind.DISCOVER, tasks.c.cycle == cycles.c.id)
    stale = connection.execute(
        update(cycles)
        .where(cycles.c.source == source, cycles.c.state == "open", cycles.c.started_at < now - STALE_AFTER)
        .where(~working.exists())
        .values(state="closed", finished_at=now, complete=False)
        .returning(cycles.c.id)
    ).scalar_one_or_none()
    if stale is not None:
        connection.execute(
            update(tasks)
            .where(tasks.c.source == source, tasks.c.kind == TaskKind.DISCOVER, tasks.c.cycle == stale)
            .where(_OPEN, tasks.c.state != TaskState.RUNNING)
            .values(state=TaskState.EXPIRED, ended_at=now)
        )


def _enter(store: Store, connection: Connection, source: str, stream: Stream, cycle: int, now: datetime) -> None:
    connection.execute(
        store.insert(cursors)
        .values(source=source, stream=stream.name, exhaustive=stream.exhaustive)
        .on_conflict_do_update(
            index_elements=[cursors.c.source, cursors.c.stream], set_={"exhaustive": stream.exhaustive}
        )
    )
    connection.execute(
        store.insert(tasks)
        .values(
            source=source,
            key=task_key(stream.name, cycle),
            kind=TaskKind.DISCOVER,
            stream=stream.name,
            cycle=cycle,
            state=TaskState.PENDING,
            stage="fetch",
            priority=100,
            due_at=now,
            host=stream.host,
        )
        .on_conflict_do_nothing()
    )

"""The verb `advance`, and the reading of cursors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select, text, update

from recrawl.model.record import Json
from recrawl.store.database import Store
from recrawl.store.leases import fence
from recrawl.store.tables import cursors, cycles
from recrawl.store.types import Json as JsonType


@dataclass(frozen=True, slots=True)
class Cursor:
    """`seen`: how far discovery has looked. `position`: up to where every task has ended; it lags, it never leads."""

    seen: Json
    position: Json
    ended_cycle: int | None


def cursor(store: Store, source: str, stream: str) -> Cursor:
    with store.read() as connection:
        row = connection.execute(select(cursors).where(cursors.c.source == source, cursors.c.stream == stream)).one()
        return Cursor(row.seen, row.position, row.ended_cycle)


def ended_at(store: Store, source: str, stream: str) -> datetime | None:
    """When the last cycle began in which a stream was read to its end; None: it never was."""
    with store.read() as connection:
        return connection.execute(
            select(cycles.c.started_at)
            .join(cursors, cursors.c.ended_cycle == cycles.c.id)
            .where(cursors.c.source == source, cursors.c.stream == stream)
        ).scalar_one_or_none()


def end_stream(store: Store, source: str, stream: str, *, cycle: int, exhaustive: bool, task: int, token: str) -> None:
    """Note that discovery has reached the end of a stream without error in this cycle, and what that end means."""

    def work(connection: Connection) -> None:
        fence(connection, task, token)
        connection.execute(
            update(cursors)
            .where(cursors.c.source == source, cursors.c.stream == stream)
            .values(ended_cycle=cycle, exhaustive=exhaustive)
        )

    store.write(work)


# The first open batch whose tasks have not all ended bounds what may be passed.
_PREFIX = text(
    """
    UPDATE batches SET state = 'ended'
    WHERE source = :source AND stream = :stream AND state = 'open' AND ordinal < coalesce((
      SELECT min(b.ordinal) FROM batches b
      WHERE b.source = :source AND b.stream = :stream AND b.state = 'open' AND EXISTS (
        SELECT 1 FROM batch_tasks bt JOIN tasks t ON t.id = bt.task
        WHERE bt.batch = b.id AND t.state IN ('pending', 'running', 'failed'))), 9223372036854775807)
    """
)
_LAST = text(
    """
    SELECT "end" FROM batches WHERE source = :source AND stream = :stream AND state = 'ended'
    ORDER BY ordinal DESC LIMIT 1
    """
).columns(end=JsonType)


def advance(store: Store, source: str, stream: str, now: datetime) -> int:
    """Move `position` over the unbroken prefix of batches whose every task has ended; the number of batches passed."""

    def work(connection: Connection) -> int:
        passed = connection.execute(_PREFIX, {"source": source, "stream": stream}).rowcount
        if passed:
            end = connection.execute(_LAST, {"source": source, "stream": stream}).scalar_one()
            connection.execute(
                update(cursors)
                .where(cursors.c.source == source, cursors.c.stream == stream)
                .values(position=end, committed_at=now)
            )
        return passed

    return store.write(work)


_PASSED = text(
    """
    DELETE FROM batches WHERE id IN (
      SELECT b.id FROM batches b
      WHERE b.source = :source AND b.state = 'ended' AND b.ordinal < (
        SELECT max(n.ordinal) FROM batches n WHERE n.source = b.source AND n.stream = b.stream AND n.state = 'ended')
      AND NOT EXISTS (SELECT 1 FROM batch_tasks bt WHERE bt.batch = b.id)
      LIMIT 20000)
    """
)


def forget(store: Store, source: str) -> int:
    """Let batches go that `position` has passed, once no task of them is remembered; how many there were. The last one
    of each stream stays, since the next is numbered after it."""
    return store.write(lambda connection: connection.execute(_PASSED, {"source": source}).rowcount)

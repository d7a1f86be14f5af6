"""Runs: every invocation of an engine over a source ends in a terminal state, with counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, insert, text, update

from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import runs
from recrawl.store.types import Instant, instant


def start_run(store: Store, source: str, owner: str, now: datetime) -> int:
    def work(connection: Connection) -> int:
        statement = insert(runs).values(source=source, owner=owner, started_at=now, state="running")
        return int(connection.execute(statement.returning(runs.c.id)).scalar_one())

    return store.write(work)


def end_run(store: Store, run: int, *, state: str, complete: bool, counts: Mapping[str, int], now: datetime) -> None:
    """`state`: finished, failures, waiting, interrupted or failed."""

    def work(connection: Connection) -> None:
        connection.execute(
            update(runs)
            .where(runs.c.id == run)
            .values(state=state, complete=complete, counts=dict(counts), finished_at=now)
        )

    store.write(work)


def bury_runs(store: Store, gone: Sequence[str], now: datetime) -> int:
    """End the runs of workers that are known to be dead; how many there were."""

    def work(connection: Connection) -> int:
        return connection.execute(
            text(
                "UPDATE runs SET state = 'killed', finished_at = :now WHERE state = 'running' "
                f"AND owner IN (SELECT owner FROM {rowset(store, {'owner': 'text'})})"
            ).bindparams(instant("now", now)),
            {"rows": packed({"owner": owner} for owner in gone)},
        ).rowcount

    return store.write(work)


def running_owners(store: Store) -> list[str]:
    """The workers whose runs have not ended."""
    with store.read() as connection:
        rows = connection.execute(text("SELECT DISTINCT owner FROM runs WHERE state = 'running'"))
        return [row.owner for row in rows]


def open_work(store: Store, source: str, now: datetime, *, floor: int = -(2**31)) -> tuple[int, datetime | None]:
    """How many tasks of a source have not ended, and when the first that waits is due or its host is free again; those
    that are less urgent than `floor` are left aside, and so are those of pushed records, which make no requests.

    The instant is None where a task is claimable now, or running.
    """
    statement = text(
        """
        SELECT count(*) AS tasks,
          min(CASE WHEN t.state = 'failed' THEN t.due_at END) AS due,
          sum(CASE WHEN t.state = 'running' OR (t.state = 'pending' AND coalesce(h.backoff_until, 0) <= :seconds)
              THEN 1 ELSE 0 END) AS ready,
          min(CASE WHEN t.state = 'pending' THEN h.backoff_until END) AS free
        FROM tasks t LEFT JOIN hosts h ON h.host = t.host
        WHERE t.source = :source AND t.state IN ('pending', 'running', 'failed') AND t.priority >= :floor
          AND t.host <> ''
        """
    ).columns(due=Instant())
    with store.read() as connection:
        values = {"source": source, "seconds": now.timestamp(), "floor": floor}
        row = connection.execute(statement, values).one()
    if not row.tasks or row.ready:
        return row.tasks, None
    free = datetime.fromtimestamp(row.free, tz=now.tzinfo) if row.free is not None else None
    waits = [wait for wait in (row.due, free) if wait is not None]
    return row.tasks, min(waits) if waits else None

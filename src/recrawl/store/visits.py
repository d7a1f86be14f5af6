"""Open visits of pages that were sighted: the one there is, or a new one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select, text

from recrawl.model.sighting import Sighting
from recrawl.model.work import NO_HOST
from recrawl.store.database import Store
from recrawl.store.keys import task_key
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import pages
from recrawl.store.types import instant


@dataclass(slots=True)
class Sighted:
    """A sighted page and what its sighting asks for."""

    id: int
    host: str
    sighting: Sighting
    busy: bool = False  # a task of it is open
    forced: bool = False

    @property
    def body_hash(self) -> str | None:
        return self.sighting.in_hand.hash if self.sighting.in_hand else None


_URGENT = 10
_OPEN = """
SELECT t.id, t.page FROM {rows} CROSS JOIN tasks t
WHERE t.page = r.page AND t.page IS NOT NULL AND t.state IN ('pending', 'running', 'failed')
"""
_ADD = """
INSERT INTO tasks (source, key, kind, page, forced, body_hash, observed, state, stage, priority, due_at, expires_at,
  host)
SELECT :source, r.key, 'visit', r.page, r.forced, r.body, CASE WHEN r.body IS NULL THEN NULL ELSE :observed END,
  'pending', CASE WHEN r.body IS NULL THEN 'fetch' ELSE 'judge' END, r.priority, :now, :expires_at, r.host
FROM {rows} WHERE true
ON CONFLICT DO NOTHING RETURNING id, page
"""


def open_visits(
    store: Store,
    connection: Connection,
    source: str,
    wanted: list[Sighted],
    observed: int,
    now: datetime,
    expires_at: datetime,
) -> list[int]:
    """One open visit for each wanted page: the one there is, or a new one."""
    if not wanted:
        return []
    wanted = sorted(wanted, key=lambda page: page.id)
    lock_pages(store, connection, [page.id for page in wanted])
    linked = open_tasks(store, connection, wanted)
    _raise_priority(store, connection, linked.values())
    _renew_bodies(connection, wanted, linked, observed)
    missing = [page for page in wanted if page.id not in linked]
    if missing:
        kinds = {"key": "text", "page": "int", "forced": "bool", "body": "text", "priority": "int", "host": "text"}
        statement = text(_ADD.format(rows=rowset(store, kinds))).bindparams(
            instant("now", now), instant("expires_at", expires_at)
        )
        generations = _generations(store, connection, missing)
        added = connection.execute(
            statement,
            {
                "source": source,
                "observed": observed,
                "rows": packed(
                    {
                        "key": task_key(page.id, generations[page.id]),
                        "page": page.id,
                        "forced": page.forced,
                        "body": page.body_hash,
                        "priority": 0 if page.forced else _URGENT,
                        "host": NO_HOST if page.body_hash else page.host,
                    }
                    for page in missing
                ),
            },
        )
        fresh = {row.page: row.id for row in added}
        busy(store, connection, list(fresh))
        linked |= fresh
    return sorted(linked.values())


def _generations(store: Store, connection: Connection, locked: list[Sighted]) -> dict[int, int]:
    """The present generation of pages that are locked: a visit that ended before the lock has begun another."""
    statement = text(f"SELECT p.id, p.generation FROM {rowset(store, {'page': 'int'})} JOIN pages p ON p.id = r.page")
    rows = connection.execute(statement, {"rows": packed({"page": page.id} for page in locked)})
    return {row.id: row.generation for row in rows}


def open_tasks(store: Store, connection: Connection, sighted: list[Sighted]) -> dict[int, int]:
    """The open task of each of these pages that has one."""
    if not sighted:
        return {}
    statement = text(_OPEN.format(rows=rowset(store, {"page": "int"})))
    rows = connection.execute(statement, {"rows": packed({"page": page.id} for page in sighted)})
    return {row.page: row.id for row in rows}


def _raise_priority(store: Store, connection: Connection, ids: Iterable[int]) -> None:
    """A hint that moved is as urgent where a task was open already."""
    rows = packed({"id": task} for task in sorted(ids))
    if rows != "[]":
        connection.execute(
            text(
                f"UPDATE tasks SET priority = {_URGENT} WHERE priority < {_URGENT} "
                f"AND id IN (SELECT id FROM {rowset(store, {'id': 'int'})})"
            ),
            {"rows": rows},
        )


_RENEW = text(
    "UPDATE tasks SET body_hash = :body, observed = :observed, stage = 'judge' "
    "WHERE id = :b_id AND state IN ('pending', 'failed')"
)


def _renew_bodies(connection: Connection, wanted: list[Sighted], linked: dict[int, int], observed: int) -> None:
    """A task that nobody has begun takes the newer body; one that is running is followed by another."""
    rows = [
        {"b_id": linked[page.id], "body": page.body_hash, "observed": observed}
        for page in wanted
        if page.id in linked and page.body_hash is not None
    ]
    if rows:
        connection.execute(_RENEW, rows)


def lock_pages(store: Store, connection: Connection, ids: list[int]) -> None:
    """Lock pages in the order of their ids, the first step of the one order of locks. SQLite has one writer anyway."""
    if store.is_postgres and ids:
        connection.execute(select(pages.c.id).where(pages.c.id.in_(ids)).order_by(pages.c.id).with_for_update())


def busy(store: Store, connection: Connection, ids: list[int]) -> None:
    """While a task is open, its page is not due: `plan` need not look at it."""
    if ids:
        connection.execute(
            text(f"UPDATE pages SET due_at = NULL WHERE id IN (SELECT page FROM {rowset(store, {'page': 'int'})})"),
            {"rows": packed({"page": page} for page in sorted(ids))},
        )

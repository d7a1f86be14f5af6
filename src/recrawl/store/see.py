"""The verb `see`: sightings, members, tasks and the stream's `seen` point, in one transaction.

What a sighting means for a page is decided by its hint: a hint that moved asks for a visit, one that stayed spares it,
and where there is none the schedule decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select, text, update

from recrawl.model.sighting import Batch, Seen, Sighting
from recrawl.model.work import PageState
from recrawl.store import bodies
from recrawl.store.database import Store, draw
from recrawl.store.keys import identity_hash, task_key
from recrawl.store.leases import LeaseLost, fence
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import batch_tasks, batches, cursors, pages
from recrawl.store.types import instant


@dataclass(slots=True)
class _Known:
    """A sighted page and what its sighting asks for."""

    id: int
    generation: int
    host: str
    sighting: Sighting
    busy: bool = False  # a task of it is open
    forced: bool = False

    @property
    def body_hash(self) -> str | None:
        return self.sighting.in_hand.hash if self.sighting.in_hand else None


def see(
    store: Store,
    batch: Batch,
    *,
    task: int,
    token: str,
    now: datetime,
    until: datetime,
    forced: Callable[[], bool],
    expires_at: datetime,
) -> Seen:
    """Take in one batch, fenced by its discover task, whose lease is renewed to `until`.

    `forced` is asked once for each page whose hint stayed: True looks at it all the same, without validators.
    Raises LeaseLost when another worker has the stream.
    """
    sightings = list({sighting.page_id: sighting for sighting in batch.sightings}.values())

    def work(connection: Connection) -> Seen:
        fence(connection, task, token, until=until)
        _move_seen(connection, batch, now)
        observed = draw(store, connection)
        known, unknown = _split(store, connection, batch.source, sightings)
        returned = _returned(store, connection, batch, known)
        new = _insert_pages(store, connection, batch.source, unknown, observed, now)
        hinted, looked, same, unhinted = _sort_out(known, returned, forced)
        _raise_hints(store, connection, hinted, observed)
        wanted = new + hinted + looked
        _keep_bodies(store, connection, wanted)
        ids = _tasks_for(store, connection, batch.source, wanted, observed, now, expires_at)
        asked = {page.id for page in wanted}
        ids += _open_tasks(
            store, connection, [page for page, _ in known if page.busy and page.id not in asked]
        ).values()
        members_of = [*new, *(page for page, _ in known)]
        if batch.document is not None:
            _enrol(store, connection, batch.document, batch.reading, (page.id for page in members_of))
        _record(store, connection, batch, observed, len(members_of), ids)
        return Seen(len(new), len(hinted), len(looked), same, unhinted)

    return store.write(work)


def _move_seen(connection: Connection, batch: Batch, now: datetime) -> None:
    """Compare-and-set: two workers that think they lead one stream cannot both go on."""
    row = connection.execute(
        select(cursors.c.seen)
        .where(cursors.c.source == batch.source, cursors.c.stream == batch.stream)
        .with_for_update()
    ).one()
    if row.seen != batch.before:
        raise LeaseLost(f"stream {batch.stream} of {batch.source} has gone on from another point")
    connection.execute(
        update(cursors)
        .where(cursors.c.source == batch.source, cursors.c.stream == batch.stream)
        .values(seen=batch.after, committed_at=now)
    )


_BY_PAGE = """
SELECT r.h, p.id, p.generation, p.host, p.hint, p.status, p.due_at IS NULL AS busy
FROM {rows} CROSS JOIN pages p WHERE p.page_hash = r.h
"""
_BY_ALIAS = """
SELECT r.h, p.id, p.generation, p.host, p.hint, p.status, p.due_at IS NULL AS busy, p.url = a.url AS own
FROM {rows} CROSS JOIN aliases a JOIN pages p ON p.id = a.page WHERE a.url_hash = r.h
"""


def _split(
    store: Store, connection: Connection, source: str, sightings: Iterable[Sighting]
) -> tuple[list[tuple[_Known, Any]], list[Sighting]]:
    """Known pages (by identity, else by alias) with their rows, and sightings of unknown ones."""
    by_hash = {identity_hash(source, sighting.page_id): sighting for sighting in sightings}
    known: dict[int, tuple[_Known, Any]] = {}
    statement = text(_BY_PAGE.format(rows=rowset(store, {"h": "text"})))
    for row in connection.execute(statement, {"rows": packed({"h": hashed} for hashed in by_hash)}):
        known[row.id] = (_Known(row.id, row.generation, row.host, by_hash.pop(row.h), row.busy), row)
    if by_hash:
        by_url = {identity_hash(source, sighting.url): hashed for hashed, sighting in by_hash.items()}
        statement = text(_BY_ALIAS.format(rows=rowset(store, {"h": "text"})))
        for row in connection.execute(statement, {"rows": packed({"h": hashed} for hashed in by_url)}):
            sighting = by_hash.pop(by_url[row.h])
            page = _Known(row.id, row.generation, row.host, sighting, row.busy)
            known.setdefault(row.id, (page, row if row.own else None))
    return list(known.values()), list(by_hash.values())


def _insert_pages(
    store: Store, connection: Connection, source: str, unknown: list[Sighting], observed: int, now: datetime
) -> list[_Known]:
    if not unknown:
        return []
    by_hash = {identity_hash(source, sighting.page_id): sighting for sighting in unknown}
    rows = [
        {
            "source": source,
            "page_id": sighting.page_id,
            "page_hash": hashed,
            "url": sighting.url,
            "fetch_url": sighting.fetch_url,
            "host": sighting.host,
            "status": PageState.NEW,
            "hint": sighting.hint,
            "hint_observed": observed,
            "taken_at": sighting.in_hand.at if sighting.in_hand else None,
            "first_seen_at": now,
            "generation": 1,
        }
        for hashed, sighting in by_hash.items()
    ]
    connection.execute(store.insert(pages).on_conflict_do_nothing(), rows)
    statement = text(f"SELECT r.h, p.id FROM {rowset(store, {'h': 'text'})} CROSS JOIN pages p WHERE p.page_hash = r.h")
    found = connection.execute(statement, {"rows": packed({"h": hashed} for hashed in by_hash)})
    ids = {row.h: row.id for row in found}
    return [_Known(ids[hashed], 1, sighting.host, sighting) for hashed, sighting in by_hash.items()]


_ENROLLED = """
SELECT m.page FROM {rows} CROSS JOIN members m
WHERE m.document = :document AND m.page = r.page AND m.dropped IS NULL
"""
_DOUBTED = (PageState.SUSPECTED, PageState.DELETED)


def _returned(store: Store, connection: Connection, batch: Batch, known: list[tuple[_Known, Any]]) -> set[int]:
    """Pages that are suspected or deleted, and that their document did not list before: they may be back."""
    doubted = {page.id for page, row in known if row is not None and row.status in _DOUBTED}
    if doubted and batch.document is not None:
        statement = text(_ENROLLED.format(rows=rowset(store, {"page": "int"})))
        rows = packed({"page": page} for page in sorted(doubted))
        doubted -= set(connection.execute(statement, {"document": batch.document, "rows": rows}).scalars())
    return doubted


def _sort_out(
    known: list[tuple[_Known, Any]], returned: set[int], forced: Callable[[], bool]
) -> tuple[list[_Known], list[_Known], int, int]:
    """Known pages by what their sighting asks for: a visit (the hint moved), a look all the same, or nothing."""
    hinted: list[_Known] = []
    looked: list[_Known] = []
    same = unhinted = 0
    for page, row in known:
        hint = page.sighting.hint
        if row is not None and hint is not None and hint != row.hint:
            hinted.append(page)
        elif page.id in returned:
            looked.append(page)
        elif row is None or hint is None:
            # Under another address the source may well say another time of the same page: that is no hint.
            unhinted += 1
        elif page.body_hash is not None:
            # To look at the same bytes again is of use only where the page was given up meanwhile.
            if _given_up(page, row.status):
                looked.append(page)
            else:
                same += 1
        elif not page.busy and row.status == PageState.ACTIVE and forced():
            page.forced = True
            looked.append(page)
        else:
            same += 1
    return hinted, looked, same, unhinted


def _given_up(page: _Known, status: str) -> bool:
    return not page.busy and status in (PageState.SUSPECTED, PageState.DELETED, PageState.MOVED)


def _raise_hints(store: Store, connection: Connection, hinted: list[_Known], observed: int) -> None:
    rows = [
        {
            "b_id": page.id,
            "hint": page.sighting.hint,
            "fetch_url": page.sighting.fetch_url,
            "observed": observed,
            "taken_at": page.sighting.in_hand.at if page.sighting.in_hand else None,
        }
        for page in sorted(hinted, key=lambda page: page.id)
    ]
    if rows:
        connection.execute(_RAISE_ONE, rows)


_RAISE_ONE = text(
    "UPDATE pages SET hint = :hint, fetch_url = :fetch_url, hint_observed = :observed, taken_at = :taken_at "
    "WHERE id = :b_id"
).bindparams(instant("taken_at", None))


def _keep_bodies(store: Store, connection: Connection, wanted: list[_Known]) -> None:
    in_hand = [page.sighting.in_hand for page in wanted if page.sighting.in_hand]
    bodies.write(store, connection, [one.body for one in in_hand])


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


def _tasks_for(
    store: Store,
    connection: Connection,
    source: str,
    wanted: list[_Known],
    observed: int,
    now: datetime,
    expires_at: datetime,
) -> list[int]:
    """One open visit for each wanted page: the one there is, or a new one."""
    if not wanted:
        return []
    wanted = sorted(wanted, key=lambda page: page.id)
    lock_pages(store, connection, [page.id for page in wanted])
    linked = _open_tasks(store, connection, wanted)
    _raise_priority(store, connection, linked.values())
    _renew_bodies(connection, wanted, linked, observed)
    missing = [page for page in wanted if page.id not in linked]
    if missing:
        kinds = {"key": "text", "page": "int", "forced": "bool", "body": "text", "priority": "int", "host": "text"}
        statement = text(_ADD.format(rows=rowset(store, kinds))).bindparams(
            instant("now", now), instant("expires_at", expires_at)
        )
        added = connection.execute(
            statement,
            {
                "source": source,
                "observed": observed,
                "rows": packed(
                    {
                        "key": task_key(page.id, page.generation),
                        "page": page.id,
                        "forced": page.forced,
                        "body": page.body_hash,
                        "priority": 0 if page.forced else _URGENT,
                        "host": page.host,
                    }
                    for page in missing
                ),
            },
        )
        fresh = {row.page: row.id for row in added}
        busy(store, connection, list(fresh))
        linked |= fresh
    return sorted(linked.values())


def _open_tasks(store: Store, connection: Connection, sighted: list[_Known]) -> dict[int, int]:
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


def _renew_bodies(connection: Connection, wanted: list[_Known], linked: dict[int, int], observed: int) -> None:
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


_ENROL = """
INSERT INTO members (document, page, reading) SELECT :document, r.page, :reading FROM {rows} WHERE true
ON CONFLICT (document, page) DO UPDATE SET reading = excluded.reading, dropped = NULL
"""


def _enrol(store: Store, connection: Connection, document: int, reading: int, ids: Iterable[int]) -> None:
    rows = packed({"page": page} for page in sorted(set(ids)))
    if rows != "[]":
        connection.execute(
            text(_ENROL.format(rows=rowset(store, {"page": "int"}))),
            {"document": document, "reading": reading, "rows": rows},
        )


def _record(store: Store, connection: Connection, batch: Batch, observed: int, sighted: int, linked: list[int]) -> None:
    ordinal = connection.execute(
        select(func.coalesce(func.max(batches.c.ordinal), 0) + 1).where(
            batches.c.source == batch.source, batches.c.stream == batch.stream
        )
    ).scalar_one()
    row = connection.execute(
        insert(batches)
        .values(
            source=batch.source,
            stream=batch.stream,
            cycle=batch.cycle,
            ordinal=ordinal,
            observed=observed,
            start=batch.before,
            end=batch.after,
            state="open",
            sighted=sighted,
        )
        .returning(batches.c.id)
    ).scalar_one()
    if linked:
        connection.execute(insert(batch_tasks), [{"batch": row, "task": task} for task in linked])

"""The verb `see`: sightings, members, tasks and the stream's `seen` point, in one transaction.

What a sighting means for a page is decided by its hint: a hint that moved asks for a visit, one that stayed spares it,
and where there is none the schedule decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select, text, update

from recrawl.model.sighting import Batch, Seen, Sighting
from recrawl.model.work import PageState
from recrawl.store import bodies
from recrawl.store.database import Store, draw
from recrawl.store.keys import identity_hash
from recrawl.store.leases import LeaseLost, fence
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import batch_tasks, batches, cursors, pages
from recrawl.store.types import instant
from recrawl.store.visits import Sighted, open_tasks, open_visits


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
        asking = _returned(store, connection, batch, known)
        asking |= _readdressed(store, connection, batch.source, known, observed)
        new = _insert_pages(store, connection, batch.source, unknown, observed, now)
        hinted, looked, same, unhinted = _sort_out(known, asking, forced)
        _raise_hints(store, connection, hinted + [page for page in looked if page.body_hash], observed)
        wanted = new + hinted + looked
        _keep_bodies(store, connection, wanted)
        ids = open_visits(store, connection, batch.source, wanted, observed, now, expires_at)
        asked = {page.id for page in wanted}
        ids += open_tasks(store, connection, [page for page, _ in known if page.busy and page.id not in asked]).values()
        sighted = (*(page.id for page in new), *(page.id for page, _ in known))
        if batch.document is not None:
            _enrol(store, connection, batch.document, batch.reading, sighted)
        _record(store, connection, batch, observed, len(sighted), ids)
        return Seen(len(new), len(hinted), len(looked), same, unhinted, sighted)

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
SELECT r.h, p.id, p.host, p.hint, p.status, p.lower_key, p.due_at IS NULL AS busy, p.fetch_url
FROM {rows} CROSS JOIN pages p WHERE p.page_hash = r.h
"""
_BY_ALIAS = """
SELECT r.h, p.id, p.host, p.hint, p.status, p.lower_key, p.due_at IS NULL AS busy, p.fetch_url,
  p.url = a.url AS own
FROM {rows} CROSS JOIN aliases a JOIN pages p ON p.id = a.page WHERE a.url_hash = r.h
"""


def _split(
    store: Store, connection: Connection, source: str, sightings: Iterable[Sighting]
) -> tuple[list[tuple[Sighted, Any]], list[Sighting]]:
    """Known pages (by identity, else by alias) with their rows, and sightings of unknown ones."""
    by_hash = {identity_hash(source, sighting.page_id): sighting for sighting in sightings}
    known: dict[int, tuple[Sighted, Any]] = {}
    statement = text(_BY_PAGE.format(rows=rowset(store, {"h": "text"})))
    for row in connection.execute(statement, {"rows": packed({"h": hashed} for hashed in by_hash)}):
        known[row.id] = (Sighted(row.id, row.host, by_hash.pop(row.h), row.busy), row)
    if by_hash:
        by_url = {identity_hash(source, sighting.url): hashed for hashed, sighting in by_hash.items()}
        statement = text(_BY_ALIAS.format(rows=rowset(store, {"h": "text"})))
        for row in connection.execute(statement, {"rows": packed({"h": hashed} for hashed in by_url)}):
            sighting = by_hash.pop(by_url[row.h])
            page = Sighted(row.id, row.host, sighting, row.busy)
            known.setdefault(row.id, (page, row if row.own else None))
    return list(known.values()), list(by_hash.values())


def _insert_pages(
    store: Store, connection: Connection, source: str, unknown: list[Sighting], observed: int, now: datetime
) -> list[Sighted]:
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
    return [Sighted(ids[hashed], sighting.host, sighting) for hashed, sighting in by_hash.items()]


_ENROLLED = """
SELECT m.page FROM {rows} CROSS JOIN members m
WHERE m.document = :document AND m.page = r.page AND m.dropped IS NULL
"""
_DOUBTED = (PageState.SUSPECTED, PageState.DELETED)


def _returned(store: Store, connection: Connection, batch: Batch, known: list[tuple[Sighted, Any]]) -> set[int]:
    """Pages that are suspected or deleted, and that their document did not list before: they may be back."""
    doubted = {page.id for page, row in known if row is not None and row.status in _DOUBTED}
    if doubted and batch.document is not None:
        statement = text(_ENROLLED.format(rows=rowset(store, {"page": "int"})))
        rows = packed({"page": page} for page in sorted(doubted))
        doubted -= set(connection.execute(statement, {"document": batch.document, "rows": rows}).scalars())
    return doubted


_READDRESS = """
INSERT INTO aliases (url_hash, source, url, page) SELECT r.h, :source, r.url, r.page FROM {rows} WHERE true
ON CONFLICT DO NOTHING RETURNING page
"""
_REFETCH = text(
    "UPDATE pages SET fetch_url = :url, hint_observed = CASE WHEN :unmet THEN :observed ELSE hint_observed END "
    "WHERE id = :page"
)


def _readdressed(
    store: Store, connection: Connection, source: str, known: list[tuple[Sighted, Any]], observed: int
) -> set[int]:
    """Pages that are known by an id of their own, and are listed under an address that was never met before: with no
    hint to tell, that alone says that they changed. Wherever they are listed now, they are fetched from then on."""
    listed = {
        page.id: page.sighting
        for page, row in known
        if row is not None
        and page.sighting.hint is None
        and page.sighting.page_id != page.sighting.url
        and page.sighting.fetch_url != row.fetch_url
    }
    if not listed:
        return set()
    statement = text(_READDRESS.format(rows=rowset(store, {"h": "text", "url": "text", "page": "int"})))
    addresses = (
        {"h": identity_hash(source, sighting.url), "url": sighting.url, "page": page}
        for page, sighting in sorted(listed.items())
    )
    unmet = set(connection.execute(statement, {"source": source, "rows": packed(addresses)}).scalars())
    connection.execute(
        _REFETCH,
        [
            {"page": page, "url": sighting.fetch_url, "unmet": page in unmet, "observed": observed}
            for page, sighting in sorted(listed.items())
        ],
    )
    return unmet


def _sort_out(
    known: list[tuple[Sighted, Any]], asking: set[int], forced: Callable[[], bool]
) -> tuple[list[Sighted], list[Sighted], int, int]:
    """Known pages by what their sighting asks for: a visit (the hint moved), a look all the same, or nothing."""
    hinted: list[Sighted] = []
    looked: list[Sighted] = []
    same = unhinted = 0
    for page, row in known:
        hint = page.sighting.hint
        if row is not None and hint is not None and hint != row.hint:
            hinted.append(page)
        elif page.id in asking or _asks_again(page, row):
            looked.append(page)
        elif row is None or hint is None:
            # Under another address the source may well say another time of the same page: that is no hint.
            unhinted += 1
        elif not page.busy and page.body_hash is None and row.status == PageState.ACTIVE and forced():
            page.forced = True
            looked.append(page)
        else:
            same += 1
    return hinted, looked, same, unhinted


def _asks_again(page: Sighted, row: Any) -> bool:
    """Whether the same body in hand decides something: the page had been taken for gone, or it went back to an older
    state and may mean it. Nothing but its sighting can tell."""
    if row is None or page.body_hash is None or page.busy:
        return False
    return row.status in (*_DOUBTED, PageState.MOVED) or row.lower_key is not None


def _raise_hints(store: Store, connection: Connection, hinted: list[Sighted], observed: int) -> None:
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


def _keep_bodies(store: Store, connection: Connection, wanted: list[Sighted]) -> None:
    in_hand = [page.sighting.in_hand for page in wanted if page.sighting.in_hand]
    bodies.write(store, connection, [one.body for one in in_hand])


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

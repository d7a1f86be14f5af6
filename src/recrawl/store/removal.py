"""Acting on what the end of a cycle decided: suspicion, its end, and deletion. The caller holds the pages' locks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, case, insert, null, text, update

from recrawl.decide.deletion import Standing, next_confirmation, reason
from recrawl.decide.lifecycle import PageEvent, page_after
from recrawl.model.record import Json
from recrawl.store.absence import in_chunks
from recrawl.store.database import Store, draw
from recrawl.store.rowset import packed, rowset
from recrawl.store.settle import records
from recrawl.store.settle.yields import clear
from recrawl.store.tables import events, pages
from recrawl.store.types import instant


def assign(store: Store, connection: Connection, ids: Iterable[int], values: str, **times: datetime | None) -> None:
    """Set columns of many pages to the same: `values` is SQL, `times` are its instants."""
    for some in in_chunks(ids):
        statement = text(f"UPDATE pages SET {values} WHERE id IN (SELECT id FROM {rowset(store, {'id': 'int'})})")
        bound = statement.bindparams(*(instant(name, at) for name, at in times.items()))
        connection.execute(bound, {"rows": packed({"id": page} for page in some)})


def note(
    connection: Connection, source: str, kind: str, told: Iterable[tuple[int, dict[str, Json]]], now: datetime
) -> None:
    """An event for each of these pages."""
    rows = [{"source": source, "page": page, "kind": kind, "data": data, "at": now} for page, data in told]
    if rows:
        connection.execute(insert(events), rows)


# While a task of a page is open it has no due time, and the task is the look that is wanted.
_SUSPECT = (
    update(pages)
    .where(pages.c.id == bindparam("b_id"))
    .values(
        status=bindparam("v_status"),
        failures=0,
        confirms=0,
        confirm_at=None,
        held=False,
        due_at=case((pages.c.due_at.is_(None), null()), else_=bindparam("v_due_at", type_=pages.c.due_at.type)),
    )
)


def suspect(connection: Connection, source: str, found: Sequence[Standing], gap: timedelta, now: datetime) -> None:
    """Begin a suspicion: the page is looked at again as soon as a look can confirm anything."""
    if found:
        connection.execute(_SUSPECT, [_suspicion(page, gap, now) for page in found])
        told: list[tuple[int, dict[str, Json]]] = [
            (page.id, {"misses": page.misses, "gone": page.gone_at is not None}) for page in found
        ]
        note(connection, source, "suspected", told, now)


def _suspicion(page: Standing, gap: timedelta, now: datetime) -> dict[str, Any]:
    return {
        "b_id": page.id,
        "v_status": page_after(page.status, PageEvent.SUSPECT),
        "v_due_at": next_confirmation(now, page.gone_at, gap),
    }


def acquit(store: Store, connection: Connection, source: str, found: Sequence[Standing], now: datetime) -> None:
    """End a suspicion: the page is listed again, and no look said otherwise."""
    for page in found:
        page_after(page.status, PageEvent.ACQUIT)
    assign(
        store,
        connection,
        [page.id for page in found],
        "status = 'active', failures = 0, confirms = 0, confirm_at = NULL",
    )
    note(connection, source, "acquitted", ((page.id, {"by": "listing"}) for page in found), now)


# What a version says last is what the tombstone says: history shows what was there, and until when.
_LAST_WORDS = """
INSERT INTO versions (page, version, kind, content_hash, raw_hash, reader_hash, final_url, content_type,
                      source_updated_at, fetched_at, order_key, observed, data)
SELECT p.id, p.version + 1, 'deleted', v.content_hash, v.raw_hash, v.reader_hash, v.final_url, v.content_type,
       v.source_updated_at, :now, v.order_key, :observed, v.data
FROM {rows} CROSS JOIN pages p JOIN versions v ON v.page = p.id AND v.version = p.version
WHERE p.id = r.id ORDER BY p.id
"""
# It forgets what its content was, so that coming back is news.
_DELETE = """
UPDATE pages SET status = 'deleted', version = CASE WHEN version > 0 THEN version + 1 ELSE 0 END,
  deleted_at = :now, delete_reason = :reason, etag = NULL, last_modified = NULL, raw_hash = NULL, content_hash = NULL,
  failures = 0, held = false, approved = false, last_changed_at = :now,
  due_at = CASE WHEN due_at IS NULL THEN NULL ELSE :due_at END
WHERE id IN (SELECT id FROM {rows})
"""


def delete(
    store: Store, connection: Connection, source: str, found: Sequence[Standing], due_at: datetime, now: datetime
) -> list[str]:
    """End pages: a last version, records that no other page yields marked, one event each. Gives their URLs."""
    reasons: dict[str, list[int]] = {}
    for page in found:
        page_after(page.status, PageEvent.DELETE)
        reasons.setdefault(reason(page), []).append(page.id)
    urls: list[str] = []
    for some in in_chunks(page.id for page in found):
        urls += _end(store, connection, some, now)
    for why, ids in reasons.items():
        _mark(store, connection, ids, why, due_at, now)
    told: list[tuple[int, dict[str, Json]]] = [(page.id, {"reason": reason(page)}) for page in found]
    note(connection, source, "deleted", told, now)
    return urls


def _end(store: Store, connection: Connection, ids: list[int], now: datetime) -> list[str]:
    given = rowset(store, {"id": "int"})
    rows = packed({"id": page} for page in ids)
    statement = text(_LAST_WORDS.format(rows=given)).bindparams(instant("now", now))
    connection.execute(statement, {"rows": rows, "observed": draw(store, connection)})
    touched = clear(store, connection, ids)
    records.show(store, connection, (), touched, now)
    found = text(f"SELECT p.url FROM {given} CROSS JOIN pages p WHERE p.id = r.id ORDER BY p.id")
    return list(connection.execute(found, {"rows": rows}).scalars())


def _mark(store: Store, connection: Connection, ids: list[int], why: str, due_at: datetime, now: datetime) -> None:
    for some in in_chunks(ids):
        statement = text(_DELETE.format(rows=rowset(store, {"id": "int"})))
        bound = statement.bindparams(instant("now", now), instant("due_at", due_at), reason=why)
        connection.execute(bound, {"rows": packed({"id": page} for page in some)})

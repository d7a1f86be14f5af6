"""The feed of versions, in an order in which none appears behind one that was read already.

Numbers of a sequence are drawn before the transaction that uses them commits, so on PostgreSQL a version can appear
behind greater ones. There the feed goes by (transaction, number) and ends below the oldest transaction that is still
open: what that one writes comes later, in its place. SQLite has one writer at a time, so its numbers are in order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, TextClause, text

from recrawl.errors import Misuse
from recrawl.model.record import Json
from recrawl.store.database import Store
from recrawl.store.types import Instant
from recrawl.store.types import Json as JsonType


@dataclass(frozen=True, slots=True)
class Change:
    """One version of a page. `records` holds `{table, key, data}` of each record; `position` is the place after it."""

    position: str
    source: str
    page_id: str
    url: str
    kind: str
    version: int
    fetched_at: datetime
    source_updated_at: datetime | None
    content_hash: str | None
    raw_hash: str | None
    records: list[dict[str, Json]]


@dataclass(frozen=True, slots=True)
class Changes:
    """A part of the feed. `position` is where the next part begins; `more` tells whether there is one already."""

    rows: list[Change]
    position: str
    more: bool


_COLUMNS = """
v.seq, p.source, p.page_id, p.url, v.kind, v.version, v.fetched_at, v.source_updated_at, v.content_hash, v.raw_hash,
CASE WHEN CAST(:source AS text) IS NULL OR p.source = :source THEN v.data END AS data
"""
_SQLITE = f"""
SELECT 0 AS xid, {_COLUMNS} FROM versions v JOIN pages p ON p.id = v.page
WHERE v.seq > :seq ORDER BY v.seq LIMIT :most
"""
_POSTGRES = f"""
SELECT CAST(CAST(v.xid AS text) AS bigint) AS xid, {_COLUMNS}
FROM (
  SELECT * FROM versions WHERE xid IS NOT NULL AND (xid, seq) > (CAST(CAST(:xid AS text) AS xid8), :seq)
  AND xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY xid, seq LIMIT :most
) v JOIN pages p ON p.id = v.page ORDER BY v.xid, v.seq
"""
_LAST_SQLITE = text("SELECT 0 AS xid, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'versions'), 0) AS seq")
_LAST_POSTGRES = text("SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint) AS xid, 0 AS seq")


def changes(store: Store, after: str | None = None, limit: int = 1000, source: str | None = None) -> Changes:
    """Versions that follow the position `after`, or all from the first that is kept, in the order of their commits.

    `limit` bounds the versions that are looked at; those of other sources than `source` are left out of the rows, so
    that a part may have fewer rows, or none, and still more to come. Raises Misuse for a position that is none.
    """
    xid, seq = _read(store, after)
    with store.read() as connection:
        if after is not None:
            _check(store, connection, after, xid, seq)
        values = {"seq": seq, "source": source, "most": limit} | ({"xid": str(xid)} if store.is_postgres else {})
        found = connection.execute(_statement(store), values).all()
    if found:
        xid, seq = found[-1].xid, found[-1].seq
    rows = [_change(store, row) for row in found if row.data is not None]
    return Changes(rows, _written(store, xid, seq), more=len(found) == limit)


def _statement(store: Store) -> Any:
    statement: TextClause = text(_POSTGRES if store.is_postgres else _SQLITE)
    return statement.columns(fetched_at=Instant(), source_updated_at=Instant(), data=JsonType)


def _change(store: Store, row: Any) -> Change:
    return Change(
        position=_written(store, row.xid, row.seq),
        source=row.source,
        page_id=row.page_id,
        url=row.url,
        kind=row.kind,
        version=row.version,
        fetched_at=row.fetched_at,
        source_updated_at=row.source_updated_at,
        content_hash=row.content_hash,
        raw_hash=row.raw_hash,
        records=row.data,
    )


def _written(store: Store, xid: int, seq: int) -> str:
    return f"{xid:x}-{seq:x}" if store.is_postgres else f"{seq:x}"


_FORMS = {True: re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{1,15})"), False: re.compile(r"()([0-9a-f]{1,15})")}


def _read(store: Store, position: str | None) -> tuple[int, int]:
    if position is None:
        return 0, 0
    found = _FORMS[store.is_postgres].fullmatch(position)
    if found is None:
        raise _no_position(position)
    return int(found[1] or "0", 16), int(found[2], 16)


def _check(store: Store, connection: Connection, position: str, xid: int, seq: int) -> None:
    """A position ahead of all that was ever written is one of another database: it would wait for ever."""
    last = connection.execute(_LAST_POSTGRES if store.is_postgres else _LAST_SQLITE).one()
    if xid > last.xid or (not store.is_postgres and seq > last.seq):
        raise _no_position(position)


def _no_position(position: str) -> Misuse:
    action = "Take the one that `recrawl changes --json` printed for this database, or leave it out to begin anew."
    return Misuse(f"{position!r} is no position of this database", place="after", action=action)

"""The verb `prune`: what is kept no longer, in small transactions.

Never the current version of a page, nor the body that a page was last read from, nor one that any page, kept version
or task still needs. A deleted page keeps its last versions, so that what it held is never lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, TextClause, text

from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.types import instant

_SPAN = 5000
_CHUNK = 500
_VACUUMED = 2000


@dataclass(frozen=True, slots=True)
class Pruned:
    """Rows that went, or in a dry run would go, and the bytes of their payload."""

    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(self.rows + other.rows, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table that is walked by its numbers: which rows of it go, and how many bytes each of them has."""

    name: str
    number: str
    old: str
    size: str


_NO_LAST_OF_DELETED = "NOT (p.status = 'deleted' AND v.version >= p.version - 1)"
_OF_VERSIONS = f"SELECT v.seq FROM versions v JOIN pages p ON p.id = v.page WHERE {_NO_LAST_OF_DELETED}"
_VERSIONS_BY_AGE = _Table(
    "versions",
    "seq",
    f"{_OF_VERSIONS} AND v.version < p.version AND v.fetched_at < :before AND v.seq > :after AND v.seq <= :last",
    "octet_length(CAST(data AS text))",
)
_VERSIONS_BY_NUMBER = _Table(
    "versions",
    "seq",
    f"{_OF_VERSIONS} AND v.version <= p.version - :keep AND v.seq > :after AND v.seq <= :last",
    "octet_length(CAST(data AS text))",
)
_EVENTS = _Table(
    "events",
    "seq",
    # From the last check of each kind the next one is counted.
    "SELECT seq FROM events e WHERE at < :before AND seq > :after AND seq <= :last AND (kind NOT IN "
    "('reconciled', 'audit') OR EXISTS (SELECT 1 FROM events n WHERE n.source = e.source AND n.kind = e.kind "
    "AND n.seq > e.seq))",
    "coalesce(octet_length(CAST(data AS text)), 0)",
)
_LETTERS = _Table(
    "dead_letters",
    "id",
    "SELECT id FROM dead_letters WHERE resolved_at < :before AND id > :after AND id <= :last",
    "coalesce(octet_length(raw), 0)",
)


def prune_versions(
    store: Store, *, before: datetime | None = None, keep: int | None = None, dry_run: bool = False
) -> Iterator[Pruned]:
    """Versions fetched before an instant, or all but the newest `keep` of each page; one part after the other."""
    if before is not None:
        yield from _walk(store, _VERSIONS_BY_AGE, [instant("before", before)], {}, dry_run)
    if keep is not None:
        yield from _walk(store, _VERSIONS_BY_NUMBER, [], {"keep": max(1, keep)}, dry_run)


def prune_events(store: Store, *, before: datetime, dry_run: bool = False) -> Iterator[Pruned]:
    """Events, and dead letters that were resolved, before an instant; one part after the other."""
    for table in (_EVENTS, _LETTERS):
        yield from _walk(store, table, [instant("before", before)], {}, dry_run)


# By its key, which all chunks of a push share: one answer tells of all of them. Where a task is remembered, so is what
# it was made for, or the same push would make it again.
_RECEIPTS = """
FROM pushes AS p WHERE p.source = :source AND p.key > :after AND p.key <= :last AND NOT EXISTS (
  SELECT 1 FROM pushes o WHERE o.source = p.source AND o.key = p.key AND (
    o.ended_at IS NULL OR o.ended_at >= :before OR o.data IS NOT NULL
    OR EXISTS (SELECT 1 FROM tasks t WHERE t.id = o.task)))
"""
_KEYS = text(
    "SELECT key FROM pushes WHERE source = :source AND key > :after GROUP BY key ORDER BY key LIMIT 1 OFFSET :span"
)
_LAST_KEY = text("SELECT source, max(key) AS key FROM pushes GROUP BY source")


def prune_receipts(store: Store, *, before: datetime, dry_run: bool = False) -> Iterator[Pruned]:
    """Receipts of pushes all of whose records were settled before an instant; one part after the other. What is pushed
    under such a key again is taken for new. One push of each source stays, that new ones are compared with."""
    whole = f"SELECT 0 {_RECEIPTS}" if dry_run else f"DELETE {_RECEIPTS} RETURNING 0"
    statement = text(whole).bindparams(instant("before", before))
    with store.read() as connection:
        ends = connection.execute(_LAST_KEY).all()
    for source, end in ends:
        after = ""
        while after != end:
            with store.read() as connection:
                of = {"source": source, "after": after, "span": _SPAN}
                last = connection.execute(_KEYS, of).scalar_one_or_none() or end
            yield _counted(store, statement, {"source": source, "after": after, "last": last}, dry_run)
            after = last


def _walk(
    store: Store, table: _Table, instants: Sequence[Any], values: dict[str, int], dry_run: bool
) -> Iterator[Pruned]:
    with store.read() as connection:
        last = connection.execute(text(f"SELECT coalesce(max({table.number}), 0) FROM {table.name}")).scalar_one()
    head = "SELECT {size} AS size FROM {name} WHERE {number} IN ({old})"
    if not dry_run:
        head = "DELETE FROM {name} WHERE {number} IN ({old}) RETURNING {size} AS size"
    parts = {"name": table.name, "number": table.number, "old": table.old, "size": table.size}
    statement = text(head.format(**parts)).bindparams(*instants)
    for after in range(0, last, _SPAN):
        yield _counted(store, statement, values | {"after": after, "last": min(after + _SPAN, last)}, dry_run)


def _counted(store: Store, statement: TextClause, values: dict[str, Any], dry_run: bool) -> Pruned:
    def work(connection: Connection) -> Pruned:
        sizes = list(connection.execute(statement, values).scalars())
        return Pruned(len(sizes), sum(sizes))

    if not dry_run:
        return store.write(work)
    with store.read() as connection:
        return work(connection)


# Set operations, since no index leads from a hash to what refers to it: one pass over each table, whatever there is.
_UNUSED = """
SELECT hash FROM bodies
EXCEPT SELECT raw_hash FROM pages WHERE status <> 'deleted' OR deleted_at >= :before
EXCEPT SELECT v.raw_hash FROM versions v JOIN pages p ON p.id = v.page
  WHERE v.fetched_at >= :before OR (v.version = p.version AND p.status <> 'deleted')
EXCEPT SELECT hint FROM pages WHERE taken_at IS NOT NULL AND status <> 'deleted'
EXCEPT SELECT body_hash FROM tasks WHERE body_hash IS NOT NULL
"""
_DROP = """
DELETE FROM bodies WHERE hash IN (SELECT hash FROM {rows})
AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.body_hash = bodies.hash) RETURNING octet_length(data) AS size
"""
_SIZES = "SELECT octet_length(data) AS size FROM bodies WHERE hash IN (SELECT hash FROM {rows})"


def prune_bodies(store: Store, *, before: datetime, dry_run: bool = False) -> Iterator[Pruned]:
    """Bodies that only older versions were read from, or nothing any more, and those of pages deleted before then."""
    with store.read() as connection:
        unused = list(connection.execute(text(_UNUSED).bindparams(instant("before", before))).scalars())
    statement = text((_SIZES if dry_run else _DROP).format(rows=rowset(store, {"hash": "text"})))
    for start in range(0, len(unused), _CHUNK):
        rows = packed({"hash": hashed} for hashed in unused[start : start + _CHUNK])

        def work(connection: Connection, rows: str = rows) -> Pruned:
            if store.is_postgres and not dry_run:
                # Who finds a body there already writes none: it must not go between his finding and his commit.
                connection.execute(text("LOCK TABLE bodies IN SHARE ROW EXCLUSIVE MODE"))
            sizes = list(connection.execute(statement, {"rows": rows}).scalars())
            return Pruned(len(sizes), sum(sizes))

        if dry_run:
            with store.read() as connection:
                yield work(connection)
        else:
            yield store.write(work)


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of a SQLite file that went back to the disk, and those that are free inside of it."""

    returned: int
    free: int


def give_back(store: Store) -> Space | None:
    """Return free space of a SQLite file to the disk, some pages at a time; PostgreSQL's autovacuum does so itself.

    A file that was made by an earlier release keeps its free space, and uses it again.
    """
    if store.is_postgres:
        return None
    before = _pragma(store, "page_count")
    size = _pragma(store, "page_size")
    while _pragma(store, "auto_vacuum") and (free := _pragma(store, "freelist_count")):
        store.write(_vacuum)
        if _pragma(store, "freelist_count") >= free:
            break
    return Space((before - _pragma(store, "page_count")) * size, _pragma(store, "freelist_count") * size)


def _vacuum(connection: Connection) -> None:
    driver: Any = connection.connection.dbapi_connection
    driver.execute(f"PRAGMA incremental_vacuum({_VACUUMED})").fetchall()  # it works for as long as one reads


def _pragma(store: Store, name: str) -> int:
    with store.read() as connection:
        return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())

"""Yields: which page stands behind which record."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

from recrawl.model.settlement import Verdict
from recrawl.store.database import Store, upsert
from recrawl.store.many import execute_many
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import yields

_KEYS = ("page", "table", "key")
_CHANGED = (*_KEYS, "version", "order_key", "observed")
_NAMES = (*_CHANGED, "source")

Ref = tuple[str, str, str]
"""A record: (source, table, key)."""


def write(store: Store, connection: Connection, verdicts: Iterable[Verdict]) -> set[Ref]:
    """Replace what each page with a new version yields; the records that this touches."""
    new = [verdict for verdict in verdicts if verdict.version is not None and verdict.rows is not None]
    if not new:
        return set()
    touched = clear(store, connection, [verdict.page.id for verdict in new if verdict.page.version > 1])
    rows = []
    for verdict in new:
        page = verdict.page
        for row in verdict.rows or ():
            touched.add((page.source, row.table, row.key))
            rows.append((page.id, row.table, row.key, page.version, page.order_key, page.observed, page.source))
    rows.sort(key=lambda row: row[:3])
    execute_many(connection, upsert(store.insert, yields, _KEYS, _CHANGED), _NAMES, rows)
    return touched


def clear(store: Store, connection: Connection, ids: list[int]) -> set[Ref]:
    """Take away all that these pages yield; the records that this touches."""
    if not ids:
        return set()
    gone = connection.execute(
        text(
            f"DELETE FROM yields WHERE page IN (SELECT page FROM {rowset(store, {'page': 'int'})}) "
            'RETURNING source, "table", key'
        ),
        {"rows": packed({"page": page} for page in sorted(ids))},
    )
    return {(row.source, row.table, row.key) for row in gone}

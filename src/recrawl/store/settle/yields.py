"""Yields: which page stands behind which record."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

from recrawl.model.settlement import Verdict
from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import yields

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
            rows.append(
                {
                    "page": page.id,
                    "table": row.table,
                    "key": row.key,
                    "source": page.source,
                    "version": page.version,
                    "order_key": page.order_key,
                    "observed": page.observed,
                }
            )
    if rows:
        insert = store.insert(yields)
        changes = {name: insert.excluded[name] for name in ("version", "order_key", "observed")}
        rows.sort(key=lambda row: (row["page"], row["table"], row["key"]))
        connection.execute(insert.on_conflict_do_update(index_elements=["page", "table", "key"], set_=changes), rows)
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

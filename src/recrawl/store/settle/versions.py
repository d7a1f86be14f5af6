"""Versions: append-only. The data stand as they were written, whatever becomes of the record's table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from sqlalchemy import Connection, insert

from recrawl.model.record import Json, RecordRow
from recrawl.model.settlement import NewVersion, Verdict
from recrawl.store.tables import versions

_NAMES = [spec.name for spec in fields(NewVersion)]


def data_of(rows: Iterable[RecordRow]) -> list[Json]:
    """The stored form of a version's records."""
    return [{"table": row.table, "key": row.key, "data": row.data} for row in rows]


def write(connection: Connection, verdicts: Iterable[Verdict], run: int | None) -> None:
    rows = [
        {name: getattr(verdict.version, name) for name in _NAMES}
        | {"page": verdict.page.id, "data": data_of(verdict.rows or ()), "run": run}
        for verdict in sorted(verdicts, key=lambda verdict: verdict.page.id)
        if verdict.version is not None
    ]
    if rows:
        connection.execute(insert(versions), rows)

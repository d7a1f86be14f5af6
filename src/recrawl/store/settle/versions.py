"""Versions: append-only. The data stand as they were written, whatever becomes of the record's table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from operator import attrgetter

from sqlalchemy import Connection, insert

from recrawl.model.record import Json, RecordRow
from recrawl.model.settlement import NewVersion, Verdict
from recrawl.store.many import execute_many
from recrawl.store.tables import versions

_FACTS = [spec.name for spec in fields(NewVersion)]
_NAMES = ("page", "data", "run", *_FACTS)
_INSERT = insert(versions)
_facts = attrgetter(*_FACTS)


def data_of(rows: Iterable[RecordRow]) -> list[Json]:
    """The stored form of a version's records."""
    return [{"table": row.table, "key": row.key, "data": row.data} for row in rows]


def write(connection: Connection, verdicts: Iterable[Verdict], run: int | None) -> None:
    rows = [
        (verdict.page.id, data_of(verdict.rows or ()), run, *_facts(verdict.version))
        for verdict in sorted(verdicts, key=lambda verdict: verdict.page.id)
        if verdict.version is not None
    ]
    execute_many(connection, _INSERT, _NAMES, rows)

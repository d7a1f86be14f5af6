"""Records: the row shown is that of the yield with the greatest (order_key, observed, page)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, text, update

from recrawl.declare.specs import ColumnType
from recrawl.model.record import Json
from recrawl.model.settlement import Verdict
from recrawl.store import recordtables
from recrawl.store.database import Store, upsert
from recrawl.store.many import execute_many
from recrawl.store.recordtables import RecordTable
from recrawl.store.rowset import packed, rowset
from recrawl.store.settle.yields import Ref
from recrawl.store.types import Json as JsonType


@dataclass(frozen=True, slots=True)
class _Winner:
    page: int
    version: int
    page_id: str


def show(store: Store, connection: Connection, verdicts: Iterable[Verdict], touched: set[Ref], now: datetime) -> None:
    """Bring the rows of touched records up to date, and refresh volatile fields of unchanged ones."""
    verdicts = list(verdicts)
    in_hand = {
        (verdict.page.id, verdict.page.version, row.table, row.key): row
        for verdict in verdicts
        if verdict.rows is not None
        for row in verdict.rows
    }
    refreshed = [(verdict, row) for verdict in verdicts for row in verdict.refresh if row.volatile]
    refs = touched | {(verdict.page.source, row.table, row.key) for verdict, row in refreshed}
    if not refs:
        return
    winners = _winners(store, connection, refs)
    fresh = {(verdict.page.id, verdict.page.version, row.table, row.key): row for verdict, row in refreshed}
    tables = {table: _known(store, connection, table) for _, table, _ in sorted(refs)}
    rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    vanished: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for source, table, key in sorted(refs):
        winner = winners.get((source, table, key))
        if winner is None:
            vanished[table].append((source, key))
            continue
        place = (winner.page, winner.version, table, key)
        if (source, table, key) not in touched and place not in fresh:
            continue
        row = in_hand.get(place) or fresh.get(place)
        data = row.data if row else _stored(connection, winner, table, key)
        known = tables[table]
        if known is not None and data is not None:
            rows[table].append(_row(known, source, winner, data, now))
    for table, values in rows.items():
        if known := tables[table]:
            _upsert(store, connection, known, values)
    for table, keys in vanished.items():
        if known := tables[table]:
            _mark_deleted(connection, known, keys, now)


def _known(store: Store, connection: Connection, table: str) -> RecordTable | None:
    """The table as it is declared; that of an earlier declaration as it stands."""
    return store.record_tables.get(table) or recordtables.present(connection, table)


_WINNERS = """
SELECT y.source, y."table", y.key, y.page, y.version, y.order_key, y.observed, p.page_id
FROM {rows} CROSS JOIN yields y JOIN pages p ON p.id = y.page
WHERE y.source = r.source AND y."table" = r.t AND y.key = r.key
"""


def _winners(store: Store, connection: Connection, refs: set[Ref]) -> dict[Ref, _Winner]:
    statement = text(_WINNERS.format(rows=rowset(store, {"source": "text", "t": "text", "key": "text"})))
    rows = connection.execute(
        statement, {"rows": packed({"source": source, "t": table, "key": key} for source, table, key in sorted(refs))}
    )
    best: dict[Ref, tuple[tuple[int, int, int], _Winner]] = {}
    for row in rows:
        ref = (row.source, row.table, row.key)
        place = (row.order_key or 0, row.observed, row.page)
        if ref not in best or place > best[ref][0]:
            best[ref] = (place, _Winner(row.page, row.version, row.page_id))
    return {ref: winner for ref, (_, winner) in best.items()}


def _stored(connection: Connection, winner: _Winner, table: str, key: str) -> Mapping[str, Json] | None:
    """The payload of a record that another page shows, from that page's version."""
    statement = text("SELECT data FROM versions WHERE page = :page AND version = :version").columns(data=JsonType)
    data = connection.execute(statement, {"page": winner.page, "version": winner.version}).scalar_one_or_none()
    for item in data or ():
        if item["table"] == table and item["key"] == key:
            found: Mapping[str, Json] = item["data"]
            return found
    return None


_SYSTEM = ("_source", "_page_id", "_version", "_updated_at", "_deleted_at")


def _row(known: RecordTable, source: str, winner: _Winner, data: Mapping[str, Json], now: datetime) -> tuple[Any, ...]:
    values: list[Any] = [source, winner.page_id, winner.version, now, None]
    for name, kind in known.types.items():
        value: Any = data.get(name)
        if value is not None and kind is ColumnType.INSTANT:
            value = datetime.fromisoformat(value).astimezone(UTC)
        values.append(value)
    return tuple(values)


def _upsert(store: Store, connection: Connection, known: RecordTable, rows: list[tuple[Any, ...]]) -> None:
    names = (*_SYSTEM, *known.types)
    execute_many(connection, upsert(store.insert, known.table, ("_source", *known.spec.key), names), names, rows)


def _mark_deleted(connection: Connection, known: RecordTable, keys: list[tuple[str, str]], now: datetime) -> None:
    table = known.table
    statement = update(table).where(table.c._source == bindparam("b__source"), table.c._deleted_at.is_(None))
    for name in known.spec.key:
        statement = statement.where(table.c[name] == bindparam(f"b_{name}"))
    connection.execute(
        statement.values(_deleted_at=now),
        [
            {"b__source": source} | {f"b_{name}": value for name, value in known.key_values(key).items()}
            for source, key in keys
        ],
    )

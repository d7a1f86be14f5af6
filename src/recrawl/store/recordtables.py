"""Tables of declared records: made and widened as declarations evolve, never narrowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Float,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    inspect,
    text,
)
from sqlalchemy.types import TypeEngine

from recrawl.declare.specs import ColumnType, RecordSpec, columns
from recrawl.errors import Misuse
from recrawl.store import tables
from recrawl.store.database import Store
from recrawl.store.types import Instant, Json

# NUMERIC keeps comparisons numeric on SQLite; the exact digits stand in the version's data.
_TYPES: dict[ColumnType, TypeEngine[Any]] = {
    ColumnType.TEXT: Text(),
    ColumnType.INTEGER: BigInteger(),
    ColumnType.REAL: Double(),
    ColumnType.NUMERIC: Numeric(asdecimal=False),
    ColumnType.BOOLEAN: Boolean(),
    ColumnType.INSTANT: Instant(),
    ColumnType.JSON: Json,
}
_RESERVED = {"_source", "_page_id", "_version", "_updated_at", "_deleted_at"}


@dataclass(frozen=True, slots=True)
class RecordTable:
    spec: RecordSpec
    table: Table
    types: dict[str, ColumnType]

    def key_values(self, key: str) -> dict[str, Any]:
        """The key columns of the record whose key has this text."""
        names = self.spec.key
        values = [key] if len(names) == 1 else orjson.loads(key)
        return {
            name: int(value) if self.types[name] is ColumnType.INTEGER else value
            for name, value in zip(names, values, strict=True)
        }


def ensure(store: Store, specs: Sequence[RecordSpec]) -> None:
    """Make or widen the tables of these record types.

    Raises Misuse where a table of that name is recrawl's own, or a column of another type stands in the way.
    """
    known = store.record_tables
    missing = [spec for spec in specs if spec.table not in known or known[spec.table].spec != spec]
    if not missing:
        return
    made = [_describe(spec) for spec in missing]

    def work(connection: Connection) -> None:
        if store.is_postgres:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('recrawl record tables'))"))
        for record in made:
            _create_or_widen(connection, record)

    store.write(work)
    known.update({record.spec.table: record for record in made})


def present(connection: Connection, name: str) -> RecordTable | None:
    """A record table as it stands in the database; None if there is none of that name."""
    there = inspect(connection)
    if not there.has_table(name):
        return None
    found = {column["name"]: column["type"] for column in there.get_columns(name)}
    if not found.keys() >= _RESERVED:
        return None
    keys = tuple(key for key in there.get_pk_constraint(name)["constrained_columns"] if key != "_source")
    types = {column: _kind(column, found) for column in found if column not in _RESERVED}
    return RecordTable(RecordSpec(name, name, keys, ()), _table(name, types, keys), types)


def _kind(name: str, found: dict[str, TypeEngine[Any]]) -> ColumnType:
    """What a column holds. SQLite keeps an instant as text: it is one where its precision and text stand beside it."""
    match found[name]:
        case JSON():
            return ColumnType.JSON
        case Boolean():
            return ColumnType.BOOLEAN
        case Integer():
            return ColumnType.INTEGER
        case Float():
            return ColumnType.REAL
        case Numeric():
            return ColumnType.NUMERIC
    return ColumnType.INSTANT if {f"{name}_precision", f"{name}_text"} <= found.keys() else ColumnType.TEXT


def _table(name: str, types: dict[str, ColumnType], keys: Sequence[str]) -> Table:
    return Table(
        name,
        MetaData(),
        Column("_source", String(64), primary_key=True),
        *(Column(column, _TYPES[kind], primary_key=column in keys) for column, kind in types.items()),
        Column("_page_id", Text, nullable=False),
        Column("_version", Integer, nullable=False),
        Column("_updated_at", Instant, nullable=False),
        Column("_deleted_at", Instant),
    )


def _describe(spec: RecordSpec) -> RecordTable:
    if spec.table in tables.metadata.tables or spec.table.endswith("_history"):
        raise Misuse(
            f"the table name {spec.table!r} is taken by recrawl itself",
            place=f"record {spec.name}, table",
            action="Choose another name for table=.",
        )
    types = {name: kind for one in spec.fields for name, kind in columns(one)}
    if taken := sorted(_RESERVED & types.keys()):
        raise Misuse(
            f"the column name {taken[0]!r} is taken by recrawl itself",
            place=f"record {spec.name}",
            action="Rename the field.",
        )
    return RecordTable(spec, _table(spec.table, types, spec.key), types)


def _create_or_widen(connection: Connection, record: RecordTable) -> None:
    spec, table = record.spec, record.table
    there = inspect(connection)
    if not there.has_table(spec.table):
        table.create(connection)
    else:
        present = {column["name"]: column["type"] for column in there.get_columns(spec.table)}
        if "_source" not in present:
            raise Misuse(
                f"the database has a table {spec.table!r} that recrawl did not make",
                place=f"record {spec.name}, table",
                action="Choose another name for table=, or move that table away.",
            )
        keys = [key for key in there.get_pk_constraint(spec.table)["constrained_columns"] if key != "_source"]
        if set(keys) != set(spec.key):
            raise Misuse(
                f"the key of {spec.table} is {', '.join(keys)} in the database, and {', '.join(spec.key)} now",
                place=f"record {spec.name}, key",
                action="Give the record another table=, or the old key back.",
            )
        for name in record.types:
            _fit(connection, record, name, present)
    if spec.history:
        _create_history(connection, record)


def _fit(connection: Connection, record: RecordTable, name: str, present: dict[str, TypeEngine[Any]]) -> None:
    column = record.table.c[name]
    wanted = column.type.compile(connection.dialect)
    quoted = connection.dialect.identifier_preparer.quote
    if name not in present:
        connection.execute(text(f"ALTER TABLE {quoted(record.spec.table)} ADD COLUMN {quoted(name)} {wanted}"))
        return
    found = present[name].compile(connection.dialect)
    if found.split("(")[0].upper() != wanted.split("(")[0].upper():
        raise Misuse(
            f"{record.spec.name}.{name} is {wanted} now, but {found} in the table {record.spec.table}",
            place=f"record {record.spec.name}, field {name}",
            action="Give the field another name, or the record another table=.",
        )


def _create_history(connection: Connection, record: RecordTable) -> None:
    """One row per version of a record, from when to when it held."""
    spec = record.spec
    quoted = connection.dialect.identifier_preparer.quote
    view = quoted(f"{spec.table}_history")
    named = spec.table.replace("'", "''")
    if connection.dialect.name == "postgresql":
        items = "CROSS JOIN LATERAL jsonb_array_elements(v.data) AS d(item)"
        part = "d.item"
        cast = {
            ColumnType.INTEGER: "bigint",
            ColumnType.REAL: "double precision",
            ColumnType.NUMERIC: "numeric",
            ColumnType.BOOLEAN: "boolean",
            ColumnType.INSTANT: "timestamptz",
            ColumnType.JSON: "jsonb",
        }

        def value(name: str, kind: ColumnType) -> str:
            picked = f"({part} -> 'data' ->> '{name}')"
            return f"{picked}::{cast[kind]}" if kind in cast else picked
    else:
        items = "CROSS JOIN json_each(v.data) AS d"
        part = "d.value"

        def value(name: str, kind: ColumnType) -> str:
            picked = f"(d.value ->> '$.data.{name}')"
            return f"CAST({picked} AS NUMERIC)" if kind is ColumnType.NUMERIC else picked

    picked = ",\n  ".join(f"{value(name, kind)} AS {quoted(name)}" for name, kind in record.types.items())
    key = f"{part} ->> 'key'"
    connection.execute(text(f"DROP VIEW IF EXISTS {view}"))
    connection.execute(
        text(
            f"""
            CREATE VIEW {view} AS
            SELECT p.source AS _source, p.page_id AS _page_id, v.version AS _version, v.kind AS _kind,
              v.fetched_at AS valid_from,
              lead(v.fetched_at) OVER (
                PARTITION BY p.source, {key} ORDER BY v.order_key, v.observed, v.seq) AS valid_to,
              v.source_updated_at AS source_time,
              {picked}
            FROM versions v JOIN pages p ON p.id = v.page {items}
            WHERE {part} ->> 'table' = '{named}'
            """.replace(":", "\\:")
        )
    )

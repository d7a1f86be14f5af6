"""Reading a source's current rows in the order of their keys, so that another source's URLs can be made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, inspect, select, tuple_

from recrawl.declare.checks import suggestion
from recrawl.errors import Misuse
from recrawl.store.database import Store
from recrawl.store.queries import record_table, record_tables
from recrawl.store.tables import sources


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of `source` in one record table."""

    source: str
    table: Table
    key: tuple[str, ...]


def rows_of(store: Store, source: str, table: str | None, columns: Sequence[str], *, place: str) -> Rows:
    """Find the rows that are asked for; `columns` are those that will be read or compared.

    Raises Misuse where there is no such source, table or column, or where one of several tables must be named.
    """
    with store.read() as connection:
        known = list(connection.execute(select(sources.c.name).order_by(sources.c.name)).scalars())
        if source not in known:
            action = f"Sync that source into this database first, or correct the name. {suggestion(source, known)}"
            raise Misuse(f"there is no source {source!r} in this database", place=place, action=action)
        name = _table_of(connection, source, table, place)
        found = record_table(connection, name)
        key = tuple(one for one in inspect(connection).get_pk_constraint(name)["constrained_columns"])
        for column in columns:
            if column not in found.c:
                there = [one.name for one in found.c if not one.name.startswith("_")]
                raise Misuse(f"{name} has no column {column!r}", place=place, action=suggestion(column, there))
        return Rows(source, found, tuple(one for one in key if one != "_source"))


def _table_of(connection: Connection, source: str, table: str | None, place: str) -> str:
    tables = record_tables(connection)
    if table is not None:
        if table not in tables:
            raise Misuse(f"there is no table {table!r}", place=place, action=suggestion(table, tables))
        return table
    own = [name for name in tables if _has_rows(connection, name, source)]
    if not own:
        action = "Sync it first, or name the table: table=..."
        raise Misuse(f"the source {source!r} has no rows yet", place=place, action=action)
    if len(own) > 1:
        action = f"Name one of them: table={own[0]!r}."
        raise Misuse(f"the source {source!r} has rows in {', '.join(own)}", place=place, action=action)
    return own[0]


def _has_rows(connection: Connection, name: str, source: str) -> bool:
    table = record_table(connection, name)
    return (
        connection.execute(select(1).select_from(table).where(table.c["_source"] == source).limit(1)).first()
        is not None
    )


@dataclass(frozen=True, slots=True)
class Row:
    key: tuple[Any, ...]
    values: Mapping[str, Any]


def next_rows(
    store: Store,
    rows: Rows,
    columns: Sequence[str],
    where: Mapping[str, Any],
    *,
    after: tuple[Any, ...] | None,
    most: int,
) -> list[Row]:
    """The next rows behind the key `after`, at most `most`; rows that are marked deleted are none."""
    table = rows.table
    key = [table.c[name] for name in rows.key]
    query = (
        select(*key, *(table.c[name].label(f"value_{name}") for name in columns))
        .where(table.c["_source"] == rows.source, table.c["_deleted_at"].is_(None))
        .where(*(table.c[name].is_(None) if value is None else table.c[name] == value for name, value in where.items()))
        .order_by(*key)
        .limit(most)
    )
    if after is not None:
        query = query.where(tuple_(*key) > tuple_(*after) if len(key) > 1 else key[0] > after[0])
    with store.read() as connection:
        found = connection.execute(query).all()
    return [Row(tuple(row[: len(key)]), dict(zip(columns, row[len(key) :], strict=True))) for row in found]

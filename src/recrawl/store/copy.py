"""A whole database into another one, of the other kind or of the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Table, func, insert, inspect, select, text, update

from recrawl.errors import Misuse, Permanent
from recrawl.store import migrate, queries, recordtables
from recrawl.store.database import Store
from recrawl.store.recordtables import RecordTable
from recrawl.store.tables import counters, metadata

_CHUNK = 500

Told = Callable[[str, int], None]
"""Hears of a table and how many of its rows are over."""


def copy(source: Store, target: Store, told: Told = lambda _table, _rows: None) -> dict[str, int]:
    """Copy everything, as it stands at one instant, into an empty database; the rows of each table.

    All of it is one transaction of the target: an interrupted copy leaves nothing. Numbers stay as they are and go on
    where they stopped, but positions in the change feed do not: those are the target's own. Raises Misuse for a target
    that is not empty, and Permanent where the counts do not agree.
    """
    migrate.ready(source)
    _refuse_used(target)
    migrate.ready(target)

    def work(write: Connection) -> dict[str, int]:
        with _standing_still(source) as read:
            counts = {}
            for table in [*metadata.sorted_tables, *_record_tables(read, write)]:
                if table is not counters:
                    counts[table.name] = _copy_table(read, write, table, told)
            _go_on_counting(source, target, read, write)
            return counts

    return target.write(work)


def _refuse_used(target: Store) -> None:
    """A target may have the schema, but no row of data and no table of records."""
    if migrate.present(target) is None:
        return
    with target.read() as connection:
        used = queries.record_tables(connection)
        for table in metadata.sorted_tables:
            if (
                table is not counters
                and inspect(connection).has_table(table.name)
                and connection.execute(select(table).limit(1)).first()
            ):
                used.append(table.name)
    if used:
        action = "Name a new file, or an empty database: nothing is ever overwritten."
        raise Misuse(f"the target is not empty: it has {', '.join(used[:3])}", place=target.place, action=action)


@contextmanager
def _standing_still(source: Store) -> Iterator[Connection]:
    """Reads of many statements that all see one instant."""
    if not source.is_postgres:
        with source.read() as connection:
            yield connection
        return
    with source.engine.connect() as plain:
        connection = plain.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


def _record_tables(read: Connection, write: Connection) -> Iterator[Table]:
    """The tables of records, made in the target, with the views of their histories."""
    views = set(inspect(read).get_view_names())
    for name in queries.record_tables(read):
        found = recordtables.present(read, name)
        assert found is not None
        spec = replace(found.spec, history=f"{name}_history" in views)
        recordtables.make(write, RecordTable(spec, found.table, found.types))
        yield found.table


def _copy_table(read: Connection, write: Connection, table: Table, told: Told) -> int:
    # The target's own transactions order its change feed.
    columns = [column for column in table.c if column.name != "xid"]
    count = 0
    query = select(*columns).order_by(*table.primary_key)
    with read.execution_options(yield_per=_CHUNK).execute(query) as rows:
        for part in rows.mappings().partitions():
            write.execute(insert(table), [dict(row) for row in part])
            count += len(part)
            told(table.name, count)
    there = write.execute(select(func.count()).select_from(table)).scalar_one()
    if there != count:
        problem = f"{table.name}: {count:,} rows were read, {there:,} arrived"
        raise Permanent(problem, action="Nothing was kept. Nobody else may write to the target; try again.")
    return count


def _go_on_counting(source: Store, target: Store, read: Connection, write: Connection) -> None:
    """No number is ever given twice: not those of rows that are gone, either."""
    if source.is_postgres:
        observed = read.execute(text("SELECT last_value FROM observed")).scalar_one()
    else:
        observed = read.execute(select(counters.c.value).where(counters.c.name == "observed")).scalar_one()
    if target.is_postgres:
        write.execute(text("SELECT setval('observed', :value)"), {"value": max(observed, 1)})
    else:
        write.execute(update(counters).where(counters.c.name == "observed").values(value=observed))
    for table in metadata.sorted_tables:
        column = table.autoincrement_column
        if column is not None and column.autoincrement is True and (last := _last(source, read, table, column.name)):
            _set_last(target, write, table, column.name, last)


def _last(store: Store, connection: Connection, table: Table, column: str) -> int:
    if store.is_postgres:
        sequence = connection.execute(_SERIAL, {"table": table.name, "column": column}).scalar_one()
        row = connection.execute(text(f"SELECT last_value, is_called FROM {sequence}")).one()
        return int(row.last_value) if row.is_called else 0
    statement = text("SELECT seq FROM sqlite_sequence WHERE name = :table")
    return int(connection.execute(statement, {"table": table.name}).scalar() or 0)


_SERIAL = text("SELECT pg_get_serial_sequence(:table, :column)")


def _set_last(store: Store, connection: Connection, table: Table, column: str, last: int) -> None:
    values: dict[str, Any] = {"table": table.name, "last": last}
    if store.is_postgres:
        statement = text("SELECT setval(pg_get_serial_sequence(:table, :column), :last)")
        connection.execute(statement, values | {"column": column})
        return
    connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :table"), {"table": table.name})
    connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :last)"), values)

"""One statement for many rows, with what SQLAlchemy does for each row done once for all of them.

Its own way of executing a list builds and walks a dictionary of parameters for every row, which for wide tables takes
longer than the database itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.engine import Dialect

_Convert = Callable[[Any], Any] | None


@lru_cache(maxsize=256)
def _prepared(
    dialect: Dialect, statement: Any, names: tuple[str, ...]
) -> tuple[str, tuple[int, ...] | None, tuple[tuple[int, _Convert], ...]]:
    """The SQL; the order of its positions where it has such; and what converts the values of a column."""
    compiled = statement.compile(dialect=dialect, column_keys=names, for_executemany=True)
    places = {name: place for place, name in enumerate(names)}
    kinds = {name: compiled.binds[name].type.dialect_impl(dialect) for name in names}
    converts = tuple(
        (places[name], convert) for name, kind in kinds.items() if (convert := kind.bind_processor(dialect)) is not None
    )
    order = tuple(places[name] for name in compiled.positiontup) if compiled.positional else None
    return str(compiled), order, converts


def execute_many(connection: Connection, statement: Any, names: tuple[str, ...], rows: Iterable[Sequence[Any]]) -> None:
    """Run a statement of the whole process once for each row; the values of a row are in the order of `names`, which
    are all the parameters that it has. Errors are those of `Connection.execute`."""
    columns = list(zip(*rows, strict=True))
    if not columns:
        return
    sql, order, converts = _prepared(connection.dialect, statement, names)
    for place, convert in converts:
        assert convert is not None
        columns[place] = tuple(map(convert, columns[place]))
    if order is not None:
        connection.exec_driver_sql(sql, list(zip(*(columns[place] for place in order), strict=True)))
    else:
        connection.exec_driver_sql(sql, [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])

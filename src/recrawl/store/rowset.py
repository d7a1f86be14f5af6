"""A set of rows as one JSON parameter: one code base for both databases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import orjson

from recrawl.store.database import Store

_POSTGRES = {"int": "bigint", "text": "text", "instant": "timestamptz", "bool": "boolean", "json": "jsonb"}


@lru_cache(maxsize=256)
def _fragment(is_postgres: bool, columns: tuple[tuple[str, str], ...], parameter: str) -> str:
    if is_postgres:
        typed = ", ".join(f'"{name}" {_POSTGRES[kind]}' for name, kind in columns)
        return f"jsonb_to_recordset(CAST(:{parameter} AS jsonb)) AS r({typed})"
    # CROSS JOIN keeps SQLite from making the JSON the inner loop.
    picked = ", ".join(f"value ->> '$.{name}' AS \"{name}\"" for name, _ in columns)
    return f"(SELECT {picked} FROM json_each(:{parameter})) AS r"


def rowset(store: Store, columns: Mapping[str, str], parameter: str = "rows") -> str:
    """SQL for a FROM clause: the rows of a JSON array parameter as a table `r` with these columns and kinds."""
    return _fragment(store.is_postgres, tuple(columns.items()), parameter)


def packed(rows: Iterable[Mapping[str, object]]) -> str:
    """The parameter for `rowset`."""
    return orjson.dumps(list(rows)).decode()

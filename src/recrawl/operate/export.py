"""Rows of a table into a file: CSV, JSON lines or Parquet, in chunks, so that memory does not grow with the table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO

import orjson
from sqlalchemy.types import JSON, Boolean, Float, Integer, Numeric, Text, TypeEngine

from recrawl.errors import Misuse
from recrawl.operate.exportable import exportable
from recrawl.operate.formats import Format
from recrawl.operate.warc import export_warc
from recrawl.store.changes import changes
from recrawl.store.database import Store
from recrawl.store.types import Instant, Json

BODIES = "bodies"
CHANGES = "changes"
_CHUNK = 1000

Types = Mapping[str, TypeEngine[Any]]
Chunks = Iterable[Sequence[Sequence[Any]]]


def export(
    store: Store,
    table: str,
    out: BinaryIO,
    *,
    form: Format = Format.CSV,
    source: str | None = None,
    deleted: bool = False,
    excel: bool = False,
    since: datetime | None = None,
    after: str | None = None,
) -> int:
    """Write the rows of a record table or its history, or of one of `OWN_TABLES`, to `out`; how many there were.

    `since` leaves out what did not change after that instant. `after` is a position in the feed of versions, for
    `changes` only, which are told in the order of their commits.

    Rows marked deleted are left out unless `deleted`. `excel` puts a byte order mark before a CSV, without which Excel
    takes it for another encoding. Stored bodies (`bodies`) go into a web archive only. Raises Misuse for an unknown
    table, and for a format whose library is not installed.
    """
    if form is Format.WARC or table == BODIES:
        if (form, table) != (Format.WARC, BODIES):
            problem = "bodies go into a web archive, and nothing else does"
            raise Misuse(problem, place="--format", action=f"Write: recrawl export {BODIES} --format warc --out FILE")
        return export_warc(store, out, source=source)
    writer = {Format.CSV: _csv, Format.JSONL: _jsonl, Format.PARQUET: _parquet}[form]
    if excel:
        out.write(b"\xef\xbb\xbf")
    if table == CHANGES:
        return writer(out, _CHANGE_TYPES, _changes(store, after, source, since))
    if after is not None:
        action = f"Write: recrawl export {CHANGES} --after POS; other tables take --since."
        raise Misuse("positions are those of the feed of versions", place="--after", action=action)
    with store.read() as connection:
        query, changed = exportable(connection, table, source, deleted=deleted)
        if since is not None:
            query = query.where(changed >= since)
        types = {str(column.name): column.type for column in query.selected_columns}
        rows = connection.execution_options(yield_per=_CHUNK).execute(query)
        return writer(out, types, rows.partitions())


_CHANGE_TYPES: Types = {
    "position": Text(),
    "source": Text(),
    "page_id": Text(),
    "url": Text(),
    "kind": Text(),
    "version": Integer(),
    "fetched_at": Instant(),
    "source_updated_at": Instant(),
    "content_hash": Text(),
    "raw_hash": Text(),
    "records": Json,
}


def _changes(store: Store, after: str | None, source: str | None, since: datetime | None) -> Chunks:
    more = True
    while more:
        part = changes(store, after, _CHUNK, source)
        yield [
            [getattr(row, name) for name in _CHANGE_TYPES] for row in part.rows if not since or row.fetched_at >= since
        ]
        after, more = part.position, part.more


def _csv(out: BinaryIO, types: Types, chunks: Chunks) -> int:
    text = io.TextIOWrapper(out, encoding="utf-8", errors="surrogatepass", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\r\n")  # RFC 4180
    nested = [isinstance(kind, JSON) for kind in types.values()]
    writer.writerow(types)
    count = 0
    for chunk in chunks:
        count += len(chunk)
        writer.writerows([_cell(value, deep) for value, deep in zip(row, nested, strict=True)] for row in chunk)
    text.detach()
    return count


def _cell(value: Any, nested: bool) -> Any:
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    return orjson.dumps(value).decode() if nested else value


def _jsonl(out: BinaryIO, types: Types, chunks: Chunks) -> int:
    count = 0
    for chunk in chunks:
        count += len(chunk)
        lines = (orjson.dumps(dict(zip(types, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE) for row in chunk)
        out.write(b"".join(lines))
    return count


def _parquet(out: BinaryIO, types: Types, chunks: Chunks) -> int:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        action = "Install it: pip install 'recrawl[export]', or take --format csv or jsonl."
        raise Misuse("Parquet needs pyarrow, which is not installed", place="--format", action=action) from None

    def kind(stored: TypeEngine[Any]) -> Any:
        match stored:
            case Instant():
                return arrow.timestamp("us", tz="UTC")
            case Boolean():
                return arrow.bool_()
            case Integer():
                return arrow.int64()
            case Float() | Numeric():
                return arrow.float64()
        return arrow.string()

    schema = arrow.schema([(name, kind(stored)) for name, stored in types.items()])
    nested = [isinstance(stored, JSON) for stored in types.values()]
    real = [isinstance(stored, Numeric) for stored in types.values()]
    count = 0
    with parquet.ParquetWriter(out, schema) as writer:
        for chunk in chunks:
            count += len(chunk)
            columns = []
            for values, field, deep, number in zip(zip(*chunk, strict=True), schema, nested, real, strict=True):
                cells = [_whole(value, deep, number) for value in values]
                columns.append(arrow.array(cells, type=field.type))
            writer.write_batch(arrow.record_batch(columns, schema=schema))
    return count


def _whole(value: Any, nested: bool, real: bool) -> Any:
    """A value as Arrow's type wants it: SQLite makes whole numbers of NUMERIC values that have no fraction."""
    if value is None:
        return None
    if nested:
        return orjson.dumps(value).decode()
    return float(value) if real else value

"""Rows of a table into a file: CSV, JSON lines or Parquet, in chunks, so that memory does not grow with the table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO

import orjson
from sqlalchemy import Connection, Select, select
from sqlalchemy.types import JSON, Boolean, Float, Integer, Numeric, TypeEngine

from recrawl.declare.checks import suggestion
from recrawl.errors import Misuse
from recrawl.operate.formats import Format
from recrawl.operate.warc import export_warc
from recrawl.store import queries
from recrawl.store.database import Store
from recrawl.store.tables import dead_letters, events, pages, versions
from recrawl.store.types import Instant

BODIES = "bodies"
OWN_TABLES = ("pages", "versions", "events", "dead_letters")
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
) -> int:
    """Write the rows of a record table, or of one of `OWN_TABLES`, to `out`; how many there were.

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
    with store.read() as connection:
        query = _own(table, source, deleted) if table in OWN_TABLES else _records(connection, table, source, deleted)
        types = {str(column.name): column.type for column in query.selected_columns}
        rows = connection.execution_options(yield_per=_CHUNK).execute(query)
        if excel:
            out.write(b"\xef\xbb\xbf")
        return writer(out, types, rows.partitions())


def _records(connection: Connection, name: str, source: str | None, deleted: bool) -> Select[Any]:
    known = queries.record_tables(connection)
    if name not in known:
        raise Misuse(f"there is no table {name!r} to export", action=suggestion(name, [*known, *OWN_TABLES]))
    table = queries.record_table(connection, name)
    query = select(table)
    if source is not None:
        query = query.where(table.c["_source"] == source)
    return query if deleted else query.where(table.c["_deleted_at"].is_(None))


def _own(name: str, source: str | None, deleted: bool) -> Select[Any]:
    """Inner numbers become what they stand for. The raw form of a dead letter is no column for a table."""
    if name == "pages":
        target = pages.alias("target")
        columns = [column for column in pages.c if column.name not in ("page_hash", "moved_to")]
        query = select(*columns, target.c.url.label("moved_to")).outerjoin(target, target.c.id == pages.c.moved_to)
        query, of = query.order_by(pages.c.id), pages.c.source
        if not deleted:
            query = query.where(pages.c.status != "deleted")
    else:
        table = {"versions": versions, "events": events, "dead_letters": dead_letters}[name]
        hidden = ("page", "raw", "raw_codec", "xid", "source")
        columns = [column for column in table.c if column.name not in hidden]
        of = table.c.source if "source" in table.c else pages.c.source
        query = (
            select(of, pages.c.page_id, pages.c.url, *columns)
            .select_from(table.outerjoin(pages, pages.c.id == table.c.page))
            .order_by(next(iter(table.primary_key)))
        )
    return query if source is None else query.where(of == source)


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

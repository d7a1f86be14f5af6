"""What can be exported, as queries whose columns know their types."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Integer, MetaData, Select, Table, Text, inspect, select

from recrawl.declare.checks import suggestion
from recrawl.errors import Misuse
from recrawl.store import queries
from recrawl.store.tables import dead_letters, events, pages, versions
from recrawl.store.types import Instant

OWN_TABLES = ("pages", "versions", "events", "dead_letters", "page_view", "version_view", "changes")
_HISTORY = "_history"

Found = tuple[Select[Any], ColumnElement[Any]]
"""A query, and the column that tells when a row of it last changed."""


def exportable(connection: Connection, name: str, source: str | None, *, deleted: bool = False) -> Found:
    """The rows of a table or view by its name. Raises Misuse for an unknown one."""
    if name == "pages":
        return _pages(source, deleted)
    if name in ("versions", "events", "dead_letters"):
        return _of_pages(name, source)
    if name in ("page_view", "version_view"):
        return _view(name, source, deleted)
    known = queries.record_tables(connection)
    views = inspect(connection).get_view_names()
    histories = [f"{table}{_HISTORY}" for table in known if f"{table}{_HISTORY}" in views]
    if name in histories:
        return _history(connection, name, source)
    if name not in known:
        action = suggestion(name, [*known, *histories, *OWN_TABLES])
        raise Misuse(f"there is no table {name!r} to export", action=action)
    table = queries.record_table(connection, name)
    query = _only(select(table), table.c["_source"], source)
    return query if deleted else query.where(table.c["_deleted_at"].is_(None)), table.c["_updated_at"]


def _only(query: Select[Any], of: ColumnElement[Any], source: str | None) -> Select[Any]:
    return query if source is None else query.where(of == source)


def _pages(source: str | None, deleted: bool) -> Found:
    """Inner numbers become what they stand for."""
    target = pages.alias("target")
    columns = [column for column in pages.c if column.name not in ("page_hash", "moved_to")]
    query: Select[Any] = select(*columns, target.c.url.label("moved_to"))
    query = query.outerjoin(target, target.c.id == pages.c.moved_to)
    query = _only(query.order_by(pages.c.id), pages.c.source, source)
    return query if deleted else query.where(pages.c.status != "deleted"), pages.c.last_changed_at


def _of_pages(name: str, source: str | None) -> Found:
    """What belongs to pages. The raw form of a dead letter is no column for a table."""
    table = {"versions": versions, "events": events, "dead_letters": dead_letters}[name]
    changed = {"versions": versions.c.fetched_at, "events": events.c.at, "dead_letters": dead_letters.c.created_at}
    hidden = ("page", "raw", "raw_codec", "xid", "source")
    columns = [column for column in table.c if column.name not in hidden]
    of = table.c.source if "source" in table.c else pages.c.source
    query = (
        select(of, pages.c.page_id, pages.c.url, *columns)
        .select_from(table.outerjoin(pages, pages.c.id == table.c.page))
        .order_by(next(iter(table.primary_key)))
    )
    return _only(query, of, source), changed[name]


_PAGE_VIEW = (
    "source page_id url status version first_seen_at last_fetched_at last_changed_at failures due_at source_updated_at "
    "content_type etag last_modified raw_hash content_hash gone_at deleted_at delete_reason"
)
_VERSION_VIEW = (
    "seq source page_id url version kind fetched_at source_updated_at final_url content_type content_hash raw_hash run "
    "data"
)


def _view(name: str, source: str | None, deleted: bool) -> Found:
    def typed(column: str) -> Column[Any]:
        kind = versions.c[column].type if name == "version_view" and column in versions.c else pages.c[column].type
        return Column(column, kind)

    names = (_PAGE_VIEW if name == "page_view" else _VERSION_VIEW).split()
    more = [Column("moved_to", Text)] if name == "page_view" else []
    view = Table(name, MetaData(), *map(typed, names), *more)
    query = _only(select(view), view.c.source, source)
    if name == "version_view":
        return query.order_by(view.c.seq), view.c.fetched_at
    return query if deleted else query.where(view.c.status != "deleted"), view.c.last_changed_at


def _history(connection: Connection, name: str, source: str | None) -> Found:
    table = queries.record_table(connection, name.removesuffix(_HISTORY))
    view = Table(
        name,
        MetaData(),
        Column("_source", Text),
        Column("_page_id", Text),
        Column("_version", Integer),
        Column("_kind", Text),
        Column("valid_from", Instant),
        Column("valid_to", Instant),
        Column("source_time", Instant),
        *(Column(column.name, column.type) for column in table.c if not column.name.startswith("_")),
    )
    return _only(select(view).order_by(view.c.valid_from), view.c["_source"], source), view.c.valid_from

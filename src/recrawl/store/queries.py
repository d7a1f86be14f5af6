"""Reading what the database knows, for people: states of sources, pages and their versions. Nothing is written here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import zstandard
from sqlalchemy import JSON, Column, Connection, MetaData, Numeric, Table, func, inspect, or_, select

from recrawl.model.record import Json
from recrawl.model.work import OPEN_STATES
from recrawl.store import tables
from recrawl.store.absence import IS_WATCHED
from recrawl.store.database import Store
from recrawl.store.keys import identity_hash
from recrawl.store.tables import aliases, dead_letters, events, pages, runs, sources, tasks, versions
from recrawl.store.trust import Trust, trust_of
from recrawl.store.types import Instant
from recrawl.store.types import Json as JsonType

_MOST_EVENTS = 5


@dataclass(frozen=True, slots=True)
class Letters:
    """Unresolved dead letters of one signature, with the newest of them as an example."""

    signature: str
    count: int
    reason: str
    url: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Happened:
    """Events of one kind, with the time of the last."""

    kind: str
    count: int
    last: datetime


@dataclass(frozen=True, slots=True)
class Run:
    id: int
    started_at: datetime
    finished_at: datetime | None
    state: str
    complete: bool
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source as it stands. `records` has, per table, how many rows are live and how many are marked deleted."""

    source: str
    paused: bool
    pages: Mapping[str, int]
    records: Mapping[str, tuple[int, int]]
    run: Run | None
    tasks: Mapping[str, int]
    next_due: datetime | None
    held: int = 0  # pages that wait for approval before they may be suspected or deleted
    failing_since: datetime | None = None  # while too many of its pages or records become dead letters
    dead_letters: list[Letters] = field(default_factory=list)
    events: list[Happened] = field(default_factory=list)
    trust: list[Trust] = field(default_factory=list)


def source_names(store: Store) -> list[str]:
    with store.read() as connection:
        return list(connection.execute(select(sources.c.name).order_by(sources.c.name)).scalars())


def status(store: Store, source: str) -> SourceStatus:
    with store.read() as connection:
        return SourceStatus(
            source=source,
            paused=bool(connection.execute(select(sources.c.paused).where(sources.c.name == source)).scalar()),
            pages=_counted(connection, pages, "status", pages.c.source == source),
            records=_records(connection, source),
            run=_last_run(connection, source),
            tasks=_counted(connection, tasks, "state", (tasks.c.source == source) & tasks.c.state.in_(OPEN_STATES)),
            next_due=connection.execute(select(func.min(pages.c.due_at)).where(pages.c.source == source)).scalar(),
            held=_held(connection, source),
            failing_since=connection.execute(select(sources.c.failing_since).where(sources.c.name == source)).scalar(),
            dead_letters=_letters(connection, source),
            events=_events(connection, source),
            trust=trust_of(store, source),
        )


def open_tasks(store: Store, source: str) -> int:
    """How many tasks of a source have not ended."""
    statement = select(func.count()).where(tasks.c.source == source, tasks.c.state.in_(OPEN_STATES))
    with store.read() as connection:
        return int(connection.execute(statement).scalar_one())


def _counted(connection: Connection, table: Table, column: str, where: Any) -> dict[str, int]:
    by = table.c[column]
    rows = connection.execute(select(by, func.count()).where(where).group_by(by).order_by(by))
    return {row[0]: row[1] for row in rows}


def _held(connection: Connection, source: str) -> int:
    where = (pages.c.source == source, IS_WATCHED, pages.c.held)
    return int(connection.execute(select(func.count()).select_from(pages).where(*where)).scalar_one())


def _records(connection: Connection, source: str) -> dict[str, tuple[int, int]]:
    found = {}
    for name in record_tables(connection):
        table = record_table(connection, name)
        everything, deleted = connection.execute(
            select(func.count(), func.count(table.c["_deleted_at"])).where(table.c["_source"] == source)
        ).one()
        if everything:
            found[name] = (everything - deleted, deleted)
    return found


def _last_run(connection: Connection, source: str) -> Run | None:
    row = connection.execute(select(runs).where(runs.c.source == source).order_by(runs.c.id.desc()).limit(1)).first()
    if row is None:
        return None
    return Run(row.id, row.started_at, row.finished_at, row.state, row.complete, row.counts or {})


def _letters(connection: Connection, source: str) -> list[Letters]:
    groups = (
        select(dead_letters.c.signature, func.count().label("count"), func.max(dead_letters.c.id).label("newest"))
        .where(dead_letters.c.source == source, dead_letters.c.resolved_at.is_(None))
        .group_by(dead_letters.c.signature)
        .subquery()
    )
    rows = connection.execute(
        select(groups.c.signature, groups.c.count, dead_letters.c.reason, pages.c.url, dead_letters.c.created_at)
        .join(dead_letters, dead_letters.c.id == groups.c.newest)
        .outerjoin(pages, pages.c.id == dead_letters.c.page)
        .order_by(groups.c.count.desc(), groups.c.signature)
    )
    return [Letters(*row) for row in rows]


def _events(connection: Connection, source: str) -> list[Happened]:
    rows = connection.execute(
        select(events.c.kind, func.count(), func.max(events.c.at, type_=Instant()))
        .where(events.c.source == source)
        .group_by(events.c.kind)
        .order_by(func.max(events.c.seq).desc())
        .limit(_MOST_EVENTS)
    )
    return [Happened(*row) for row in rows]


def record_tables(connection: Connection) -> list[str]:
    """The tables of declared records, by name."""
    there = inspect(connection)
    others = set(there.get_table_names()) - set(tables.metadata.tables)
    return sorted(name for name in others if {"_source", "_page_id"} <= {c["name"] for c in there.get_columns(name)})


def record_table(connection: Connection, name: str) -> Table:
    """A record table as it stands in the database, with the types that its columns were given.

    SQLite keeps an instant as text, so instants are told by name: our own two, and those that a Moment's
    `_precision` stands beside.
    """
    found = inspect(connection).get_columns(name)
    names = {column["name"] for column in found}

    def kind(column: str, stored: Any) -> Any:
        if column in ("_updated_at", "_deleted_at") or {f"{column}_precision", f"{column}_text"} <= names:
            return Instant()
        if isinstance(stored, JSON):
            return JsonType
        return Numeric(asdecimal=False) if isinstance(stored, Numeric) else stored

    return Table(name, MetaData(), *(Column(column["name"], kind(column["name"], column["type"])) for column in found))


def some_pages(store: Store, source: str, count: int) -> list[tuple[str, str]]:
    """Up to that many pages that read well, as (canonical URL, URL on the wire)."""
    statement = select(pages.c.url, pages.c.fetch_url).where(pages.c.source == source, pages.c.status == "active")
    with store.read() as connection:
        return [(row.url, row.fetch_url) for row in connection.execute(statement.limit(count))]


@dataclass(frozen=True, slots=True)
class PageRow:
    """A page's row, its aliases, and where it moved to."""

    id: int
    source: str
    facts: Mapping[str, Any]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionRow:
    version: int
    kind: str
    fetched_at: datetime
    source_updated_at: datetime | None
    content_hash: str | None
    raw_hash: str | None
    final_url: str | None


def find_pages(store: Store, names: list[str], source: str | None) -> list[PageRow]:
    """The pages that one of `names` (URLs, page ids) stands for: by identity, else by alias, else by URL."""
    among = [source] if source else source_names(store)
    hashes = [identity_hash(one, name) for one in among for name in names]
    by_alias = select(aliases.c.page).where(aliases.c.url_hash.in_(hashes))
    # No index holds URLs: they are looked through only where no identity fits.
    by_url = pages.c.source.in_(among) & or_(pages.c.url.in_(names), pages.c.fetch_url.in_(names))
    target = pages.alias("target")
    query = select(pages, target.c.url.label("moved_to_url")).outerjoin(target, target.c.id == pages.c.moved_to)
    with store.read() as connection:
        for where in (pages.c.page_hash.in_(hashes), pages.c.id.in_(by_alias), by_url):
            found = connection.execute(query.where(where).order_by(pages.c.source, pages.c.id)).mappings().all()
            if found:
                return [PageRow(row["id"], row["source"], dict(row), _aliases(connection, row["id"])) for row in found]
    return []


def _aliases(connection: Connection, page: int) -> tuple[str, ...]:
    return tuple(
        connection.execute(select(aliases.c.url).where(aliases.c.page == page).order_by(aliases.c.url)).scalars()
    )


def versions_of(store: Store, page: int) -> list[VersionRow]:
    """A page's versions, the oldest first, without their data."""
    v = versions.c
    columns = (v.version, v.kind, v.fetched_at, v.source_updated_at, v.content_hash, v.raw_hash, v.final_url)
    with store.read() as connection:
        rows = connection.execute(select(*columns).where(v.page == page).order_by(v.version))
        return [VersionRow(*row) for row in rows]


def events_of(store: Store, page: int) -> list[tuple[datetime, str, Json]]:
    """What happened to a page beside its versions, the newest first, at most a few."""
    with store.read() as connection:
        rows = connection.execute(
            select(events.c.at, events.c.kind, events.c.data)
            .where(events.c.page == page)
            .order_by(events.c.seq.desc())
            .limit(_MOST_EVENTS)
        )
        return [(row.at, row.kind, row.data) for row in rows]


def letters_of(store: Store, page: int) -> list[Letters]:
    """The unresolved dead letters of a page, the newest first."""
    letter = dead_letters.c
    with store.read() as connection:
        rows = connection.execute(
            select(letter.signature, letter.reason, letter.created_at)
            .where(letter.page == page, letter.resolved_at.is_(None))
            .order_by(letter.id.desc())
        )
        return [Letters(row.signature, 1, row.reason, None, row.created_at) for row in rows]


def dead_body(store: Store, page: int) -> bytes | None:
    """What came in place of a page, as its newest unresolved dead letter keeps it."""
    letter = dead_letters.c
    with store.read() as connection:
        row = connection.execute(
            select(letter.raw, letter.raw_codec)
            .where(letter.page == page, letter.resolved_at.is_(None), letter.raw.is_not(None))
            .order_by(letter.id.desc())
            .limit(1)
        ).first()
    if row is None:
        return None
    return zstandard.ZstdDecompressor().decompress(row.raw) if row.raw_codec == "zstd" else bytes(row.raw)


def damage(store: Store) -> list[str]:
    """What SQLite's own check finds wrong with the file; PostgreSQL looks after itself."""
    if store.is_postgres:
        return []
    with store.read() as connection:
        found = list(connection.exec_driver_sql("PRAGMA quick_check(10)").scalars())
    return [] if found == ["ok"] else found

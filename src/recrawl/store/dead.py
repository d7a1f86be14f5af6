"""Dead letters, as a person works through them: grouped, read one by one, put aside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import zstandard
from sqlalchemy import ColumnElement, RowMapping, func, select, update

from recrawl.model.record import Json
from recrawl.store.database import Store
from recrawl.store.tables import dead_letters, pages
from recrawl.store.types import Instant

_CHUNK = 200
_letter = dead_letters.c


@dataclass(frozen=True, slots=True)
class Group:
    """Unresolved letters of one source and one signature; `newest` is the id of the last of them."""

    source: str
    signature: str
    stage: str
    count: int
    first_at: datetime
    last_at: datetime
    newest: int
    reason: str
    url: str | None


@dataclass(frozen=True, slots=True)
class Letter:
    """One input that could not become data. `raw` is what came, byte for byte, as far as it was kept."""

    id: int
    source: str
    task_key: str
    page: int | None
    url: str | None
    stage: str
    signature: str
    reason: str
    raw: bytes | None
    errors: list[dict[str, Json]]
    order_key: int | None
    observed: int
    created_at: datetime
    fetched_at: datetime | None
    resolved_at: datetime | None
    resolution: str | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which unresolved letters are meant: of a source, of a signature, or some by their ids."""

    source: str | None = None
    signature: str | None = None
    ids: tuple[int, ...] = ()

    def where(self) -> list[ColumnElement[bool]]:
        found: list[ColumnElement[bool]] = [_letter.resolved_at.is_(None)]
        if self.source is not None:
            found.append(_letter.source == self.source)
        if self.signature is not None:
            found.append(_letter.signature == self.signature)
        if self.ids:
            found.append(_letter.id.in_(self.ids))
        return found


def groups(store: Store, source: str | None = None) -> list[Group]:
    """Unresolved letters by source and signature, the most numerous first."""
    grouped = (
        select(
            _letter.source,
            _letter.signature,
            func.count().label("count"),
            func.min(_letter.created_at, type_=Instant()).label("first_at"),
            func.max(_letter.created_at, type_=Instant()).label("last_at"),
            func.max(_letter.id).label("newest"),
        )
        .where(*Selection(source).where())
        .group_by(_letter.source, _letter.signature)
        .subquery()
    )
    of = grouped.c
    query = (
        select(
            of.source,
            of.signature,
            _letter.stage,
            of.count,
            of.first_at,
            of.last_at,
            of.newest,
            _letter.reason,
            pages.c.url,
        )
        .join(dead_letters, _letter.id == of.newest)
        .outerjoin(pages, pages.c.id == _letter.page)
        .order_by(of.count.desc(), of.source, of.signature)
    )
    with store.read() as connection:
        return [Group(*row) for row in connection.execute(query)]


def letter(store: Store, number: int) -> Letter | None:
    """One letter, resolved or not."""
    with store.read() as connection:
        row = connection.execute(_whole().where(_letter.id == number)).mappings().one_or_none()
        return _read(row) if row else None


def letters(store: Store, selection: Selection, *, after: int = 0, most: int | None = None) -> Iterator[Letter]:
    """The letters of a selection by their ids, in chunks of one read each; those that come meanwhile are left out."""
    left = most
    with store.read() as connection:
        last = connection.execute(select(func.max(_letter.id)).where(*selection.where())).scalar() or 0
    while after < last and left != 0:
        chunk = _CHUNK if left is None else min(left, _CHUNK)
        query = _whole().where(*selection.where(), _letter.id > after, _letter.id <= last)
        with store.read() as connection:
            rows = connection.execute(query.order_by(_letter.id).limit(chunk)).mappings().all()
        if not rows:
            return
        yield from map(_read, rows)
        after = rows[-1]["id"]
        left = None if left is None else left - len(rows)


def count(store: Store, selection: Selection) -> int:
    with store.read() as connection:
        return connection.execute(select(func.count()).select_from(dead_letters).where(*selection.where())).scalar_one()


def drop(store: Store, selection: Selection, now: datetime) -> int:
    """Put letters aside for good; how many. What came stays readable until it is pruned."""
    values = {"resolved_at": now, "resolution": "dropped"}
    return store.write(
        lambda connection: connection.execute(update(dead_letters).where(*selection.where()).values(values)).rowcount
    )


def _whole() -> Any:
    return select(dead_letters, pages.c.url).outerjoin(pages, pages.c.id == _letter.page)


def _read(row: RowMapping) -> Letter:
    raw = row["raw"]
    if raw is not None and row["raw_codec"] == "zstd":
        raw = zstandard.ZstdDecompressor().decompress(raw)
    names = ("id", "source", "task_key", "page", "url", "stage", "signature", "reason")
    rest = ("order_key", "observed", "created_at", "fetched_at", "resolved_at", "resolution")
    return Letter(
        **{name: row[name] for name in (*names, *rest)},
        raw=None if raw is None else bytes(raw),
        errors=row["errors"] or [],
    )

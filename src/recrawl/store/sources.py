"""Declared sources: what the database knows of their rules."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, or_, select

from recrawl.store.database import Store
from recrawl.store.tables import sources


@dataclass(frozen=True, slots=True)
class SourceRow:
    name: str
    spec_hash: str
    reader_hash: str
    paused: bool
    paused_reason: str | None
    every: float | None  # seconds between two passes, where they are due by themselves


def register(store: Store, name: str, spec_hash: str, reader_hash: str, every: float | None = None) -> None:
    """Make the declaration of a source known; workers that hold another one stop claiming its tasks. `every` is how
    many seconds its passes are apart; None leaves that as it is."""
    given: dict[str, str | float] = {"spec_hash": spec_hash, "reader_hash": reader_hash}
    if every is not None:
        given["every"] = every

    def work(connection: Connection) -> None:
        row = store.insert(sources).values(name=name, **given)
        connection.execute(
            row.on_conflict_do_update(
                index_elements=[sources.c.name],
                set_=given,
                where=or_(*(sources.c[column].is_distinct_from(value) for column, value in given.items())),
            )
        )

    store.write(work)


def standing(store: Store, name: str) -> SourceRow:
    """A registered source as the database knows it."""
    with store.read() as connection:
        return SourceRow(**connection.execute(select(sources).where(sources.c.name == name)).mappings().one())


def all_sources(store: Store) -> list[SourceRow]:
    with store.read() as connection:
        rows = connection.execute(select(sources).order_by(sources.c.name)).mappings()
        return [SourceRow(**row) for row in rows]

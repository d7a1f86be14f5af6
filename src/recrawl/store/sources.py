"""Declared sources: what the database knows of their rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, insert, or_, select, update

from recrawl.model.record import Json
from recrawl.store.database import Store
from recrawl.store.tables import events, sources


@dataclass(frozen=True, slots=True)
class SourceRow:
    name: str
    spec_hash: str
    reader_hash: str
    paused: bool
    paused_reason: str | None
    every: float | None  # seconds between two passes, where they are due by themselves
    failing_since: datetime | None = None


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


def pause(store: Store, name: str, reason: str | None) -> None:
    """Keep all workers from taking up work of a source; what they hold is brought to its end."""
    _switch(store, name, paused=True, paused_reason=reason)


def resume(store: Store, name: str) -> None:
    """Let work go on. An alarm ends with it, so that it can be raised anew."""
    _switch(store, name, paused=False, paused_reason=None, failing_since=None)


def sound_alarm(store: Store, name: str, told: dict[str, Json], *, pause: bool, now: datetime) -> None:
    """Tell once, whoever notices, that too much of a source fails; with `pause`, stop all work at it."""
    values: dict[str, object] = {"failing_since": now}
    if pause:
        values |= {"paused": True, "paused_reason": f"{told['share']:.0%} of the latest became dead letters"}
    _turn(store, name, sources.c.failing_since.is_(None), values, "failing", told, now)


def end_alarm(store: Store, name: str, told: dict[str, Json], *, now: datetime) -> None:
    """Tell once that a source no longer fails."""
    _turn(store, name, sources.c.failing_since.is_not(None), {"failing_since": None}, "recovered", told, now)


def _turn(
    store: Store,
    name: str,
    where: ColumnElement[bool],
    values: dict[str, object],
    kind: str,
    told: dict[str, Json],
    now: datetime,
) -> None:
    def work(connection: Connection) -> None:
        if connection.execute(update(sources).where(sources.c.name == name, where).values(values)).rowcount:
            connection.execute(insert(events).values(source=name, kind=kind, data=told, at=now))

    store.write(work)


def _switch(store: Store, name: str, **values: object) -> None:
    store.write(lambda connection: connection.execute(update(sources).where(sources.c.name == name).values(values)))

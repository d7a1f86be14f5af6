"""Events and dead letters that no page's settling brings."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, func, insert, select, update

from recrawl.model.record import Json
from recrawl.store.database import Store
from recrawl.store.keys import task_key
from recrawl.store.tables import dead_letters, events


def note(store: Store, source: str, kind: str, data: dict[str, Json], now: datetime) -> None:
    def work(connection: Connection) -> None:
        connection.execute(insert(events).values(source=source, kind=kind, data=data, at=now))

    store.write(work)


def last_noted(store: Store, source: str, kind: str) -> datetime | None:
    """When an event of a kind happened last; reads the events of the source since then."""
    of_kind = select(events.c.at).where(events.c.source == source, events.c.kind == kind)
    with store.read() as connection:
        return connection.execute(of_kind.order_by(events.c.seq.desc()).limit(1)).scalar()


NEW_FIELD = "new_field"
"""The event that tells of a pushed field which no record declares."""


def told_fields(store: Store, source: str) -> list[str]:
    """The fields of a source that were told of already; reads all its events."""
    with store.read() as connection:
        wanted = select(events.c.data).where(events.c.source == source, events.c.kind == NEW_FIELD)
        return [data["field"] for data in connection.execute(wanted).scalars()]


def bury_document(
    store: Store, source: str, task_key: str, kind: str, reason: str, raw: bytes, observed: int, now: datetime
) -> None:
    """Keep a document that could not be read, once per source and reason."""
    signature = f"discover:{kind}"

    def work(connection: Connection) -> None:
        known = connection.execute(
            select(dead_letters.c.id).where(
                dead_letters.c.source == source,
                dead_letters.c.signature == signature,
                dead_letters.c.reason == reason,
                dead_letters.c.resolved_at.is_(None),
            )
        ).first()
        if known is None:
            connection.execute(
                insert(dead_letters).values(
                    source=source,
                    task_key=task_key,
                    stage="fetch",
                    signature=signature,
                    reason=reason,
                    raw=raw[:1_000_000] or None,
                    raw_codec="plain" if raw else None,
                    errors=[],
                    observed=observed,
                    created_at=now,
                )
            )

    store.write(work)


def resolve_documents(store: Store, source: str, stream: str, now: datetime) -> None:
    """A stream was read to its end without trouble: the documents of it that were buried earlier are superseded."""
    begin = task_key(stream)[:-1] + ","

    def work(connection: Connection) -> None:
        connection.execute(
            update(dead_letters)
            .where(dead_letters.c.source == source, dead_letters.c.resolved_at.is_(None))
            .where(dead_letters.c.signature.between("discover:", "discover;"), dead_letters.c.page.is_(None))
            .where(func.substr(dead_letters.c.task_key, 1, len(begin)) == begin)
            .values(resolved_at=now, resolution="superseded")
        )

    store.write(work)

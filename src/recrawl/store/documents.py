"""Documents of a stream and the reading of them: what `see` writes members for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select, text, update

from recrawl.model.fetched import Validators
from recrawl.store.database import Store
from recrawl.store.keys import identity_hash
from recrawl.store.leases import fence
from recrawl.store.tables import documents, members


@dataclass(frozen=True, slots=True)
class Document:
    """What the store knows of a document. `reading` counts how often it was read anew."""

    id: int
    url: str
    kind: str | None
    hash: str | None
    validators: Validators
    cycle: int | None
    reading: int
    complete: bool
    spec: str | None  # the declaration by whose rules it was read


def document(store: Store, source: str, stream: str, url: str) -> Document:
    """The document at `url`, made known if it was not."""
    hashed = identity_hash(source, f"{stream}\0{url}")

    def work(connection: Connection) -> Document:
        connection.execute(
            store.insert(documents)
            .values(source=source, stream=stream, url=url, url_hash=hashed)
            .on_conflict_do_nothing()
        )
        row = connection.execute(select(documents).where(documents.c.url_hash == hashed)).one()
        return _document(row)

    return store.write(work)


def _document(row: Any) -> Document:
    known = row.validators or {}
    return Document(
        id=row.id,
        url=row.url,
        kind=row.kind,
        hash=row.hash,
        validators=Validators(known.get("etag"), known.get("last_modified")),
        cycle=row.cycle,
        reading=row.reading,
        complete=row.complete,
        spec=known.get("spec"),
    )


def _kept(validators: Validators, spec: str | None) -> dict[str, str | None]:
    return {"etag": validators.etag, "last_modified": validators.last_modified, "spec": spec}


def children(store: Store, parent: int, reading: int) -> list[str]:
    """The documents that an index lists in its reading number `reading`, in the order in which they were listed."""
    with store.read() as connection:
        rows = connection.execute(
            select(documents.c.url)
            .where(documents.c.parent == parent, documents.c.parent_reading == reading)
            .order_by(documents.c.id)
        )
        return [row.url for row in rows]


def begin_reading(store: Store, task: int, token: str, known: Document) -> int:
    """Start reading a document anew; the number of the reading."""

    def work(connection: Connection) -> int:
        fence(connection, task, token)
        return int(
            connection.execute(
                update(documents)
                .where(documents.c.id == known.id)
                .values(reading=documents.c.reading + 1, complete=False, cycle=func.coalesce(documents.c.cycle, 0))
                .returning(documents.c.reading)
            ).scalar_one()
        )

    return store.write(work)


def adopt(
    store: Store, task: int, token: str, source: str, stream: str, parent: int, reading: int, urls: Sequence[str]
) -> None:
    """Note that an index lists these documents in its reading number `reading`."""

    def work(connection: Connection) -> None:
        fence(connection, task, token)
        for url in urls:
            row = store.insert(documents).values(
                source=source,
                stream=stream,
                url=url,
                url_hash=identity_hash(source, f"{stream}\0{url}"),
                parent=parent,
                parent_reading=reading,
            )
            connection.execute(
                row.on_conflict_do_update(
                    index_elements=[documents.c.url_hash], set_={"parent": parent, "parent_reading": reading}
                )
            )

    store.write(work)


def end_reading(
    store: Store,
    task: int,
    token: str,
    known: Document,
    *,
    cycle: int,
    kind: str,
    body_hash: str,
    validators: Validators,
    spec: str,
    complete: bool,
) -> None:
    """A document was read to its end. Only a complete reading drops the members that it no longer lists; of an
    incomplete one nothing is remembered that could spare the next request."""

    def work(connection: Connection) -> None:
        fence(connection, task, token)
        kept = _kept(validators, spec) if complete else None
        reading = connection.execute(
            update(documents)
            .where(documents.c.id == known.id)
            .values(kind=kind, hash=body_hash if complete else None, validators=kept, cycle=cycle, complete=complete)
            .returning(documents.c.reading)
        ).scalar_one()
        if complete:
            connection.execute(
                update(members)
                .where(members.c.document == known.id, members.c.reading < reading, members.c.dropped.is_(None))
                .values(dropped=reading)
            )

    store.write(work)


def still_the_same(store: Store, task: int, token: str, known: Document, *, cycle: int, validators: Validators) -> None:
    """A document is unchanged: its members stay seen, and new validators are kept."""

    def work(connection: Connection) -> None:
        fence(connection, task, token)
        connection.execute(
            update(documents)
            .where(documents.c.id == known.id)
            .values(
                cycle=cycle,
                complete=True,
                validators=_kept(validators, known.spec),
            )
        )

    store.write(work)


EMPTIED = "emptied"
"""The kind of a document that listed something and then, once, nothing."""


def is_emptied(store: Store, known: Document) -> bool:
    """Whether a document that was just read, and lists nothing, has listed something and was not found empty before."""
    if known.kind == EMPTIED or not known.reading:
        return False
    pages = select(members.c.page).where(members.c.document == known.id, members.c.dropped.is_(None))
    below = select(documents.c.id).where(documents.c.parent == known.id, documents.c.parent_reading == known.reading)
    with store.read() as connection:
        return any(connection.execute(found.limit(1)).first() is not None for found in (pages, below))


@dataclass(frozen=True, slots=True)
class Members:
    """The pages that a document lists now: all, and those of them whose hint spares a look."""

    listed: int
    spared: int


def members_of(store: Store, known: Document) -> Members:
    statement = text(
        "SELECT count(*) AS listed, count(CASE WHEN p.hint IS NOT NULL AND p.due_at IS NOT NULL THEN 1 END) AS spared "
        "FROM members m JOIN pages p ON p.id = m.page WHERE m.document = :document AND m.dropped IS NULL"
    )
    with store.read() as connection:
        row = connection.execute(statement, {"document": known.id}).one()
        return Members(row.listed, row.spared)

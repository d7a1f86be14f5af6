"""Documents of a stream and the reading of them: what `see` writes members for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select, text, update

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


def _document(row: object) -> Document:
    known = row.validators or {}  # type: ignore[attr-defined]
    return Document(
        id=row.id,  # type: ignore[attr-defined]
        url=row.url,  # type: ignore[attr-defined]
        kind=row.kind,  # type: ignore[attr-defined]
        hash=row.hash,  # type: ignore[attr-defined]
        validators=Validators(known.get("etag"), known.get("last_modified")),
        cycle=row.cycle,  # type: ignore[attr-defined]
        reading=row.reading,  # type: ignore[attr-defined]
        complete=row.complete,  # type: ignore[attr-defined]
    )


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
                .values(reading=documents.c.reading + 1, complete=False)
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
    complete: bool,
) -> None:
    """A document was read to its end. Only a complete reading drops the members that it no longer lists; of an
    incomplete one nothing is remembered that could spare the next request."""

    def work(connection: Connection) -> None:
        fence(connection, task, token)
        kept = {"etag": validators.etag, "last_modified": validators.last_modified} if complete else None
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
                validators={"etag": validators.etag, "last_modified": validators.last_modified},
            )
        )

    store.write(work)


def member_count(store: Store, source: str, stream: str, cycle: int) -> int:
    """How many pages the documents found in this cycle list now."""
    statement = text(
        "SELECT count(*) FROM documents d JOIN members m ON m.document = d.id "
        "WHERE d.source = :source AND d.stream = :stream AND d.cycle = :cycle AND m.dropped IS NULL"
    )
    with store.read() as connection:
        return int(connection.execute(statement, {"source": source, "stream": stream, "cycle": cycle}).scalar_one())

"""Documents of a stream and the reading of them: what `see` writes members for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, null, select, text, update

from recrawl.model.fetched import Validators
from recrawl.model.work import OPEN_STATES
from recrawl.store.database import Store
from recrawl.store.keys import identity_hash
from recrawl.store.leases import fence
from recrawl.store.many import execute_many
from recrawl.store.tables import documents, members, pages
from recrawl.store.types import Instant


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
    leads_to: tuple[str, ...] = ()  # the documents that it links to
    listed: int | None = None  # pages, when it was read to its end
    hinted: int | None = None  # those of them that had a hint of it then


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
        leads_to=tuple(row.leads_to or ()),
        listed=row.listed,
        hinted=row.hinted,
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
    body_hash: str | None,
    validators: Validators,
    spec: str,
    complete: bool,
    leads_to: Sequence[str] = (),
    hints: bool = False,
    due_of: Callable[[float | None], datetime] | None = None,
) -> None:
    """A document was read to its end. Only a complete reading drops the members that it no longer lists; of an
    incomplete one, and of one without `body_hash`, nothing is remembered that could spare the next request.

    `hints`: it told versions of pages. `due_of` is given for a document that shows a part of what there is, and says
    when a page is looked at, by its rate of changes, that is listed elsewhere without a version.
    """

    def work(connection: Connection) -> None:
        fence(connection, task, token)
        kept = _kept(validators if body_hash else Validators(), spec) if complete else None
        reading = connection.execute(
            update(documents)
            .where(documents.c.id == known.id)
            .values(
                kind=kind,
                hash=body_hash if complete else None,
                validators=kept,
                cycle=cycle,
                complete=complete,
                leads_to=list(leads_to) or None,
                hints=hints,
            )
            .returning(documents.c.reading)
        ).scalar_one()
        if complete:
            connection.execute(
                update(members)
                .where(members.c.document == known.id, members.c.reading < reading, members.c.dropped.is_(None))
                .values(dropped=reading)
            )
            if due_of is not None:
                _untold(connection, known.id, reading, due_of)
            counts = _counted(connection, known.id)
            noted = {"listed": counts.listed, "hinted": counts.hinted if hints else 0}
            connection.execute(update(documents).where(documents.c.id == known.id).values(noted))

    store.write(work)


_UNTOLD = """
    SELECT p.id, p.change_rate, p.due_at FROM members m JOIN pages p ON p.id = m.page
    WHERE m.document = :document AND m.dropped = :reading AND p.hint IS NOT NULL AND p.taken_at IS NULL
      AND 0 = (SELECT max(CASE WHEN d.hints THEN 1 ELSE 0 END) FROM members o JOIN documents d ON d.id = o.document
               WHERE o.page = p.id AND o.dropped IS NULL)
    ORDER BY p.id {lock}
"""
_BY_RATE = (
    update(pages).where(pages.c.id == bindparam("b_id")).values(hint=null(), due_at=bindparam("b_due", type_=Instant()))
)


def _untold(connection: Connection, document: int, reading: int, due_of: Callable[[float | None], datetime]) -> None:
    """Pages that fell out of a window and are listed elsewhere, but by documents that tell no versions: their hints
    vouch for nothing from now on, and they are due like others of these documents. A page without `due_at` has a task,
    which stays."""
    lock = "FOR UPDATE OF p" if connection.dialect.name == "postgresql" else ""
    statement = text(_UNTOLD.format(lock=lock)).columns(due_at=Instant())
    rows = connection.execute(statement, {"document": document, "reading": reading}).all()
    due = [(row.id, None if row.due_at is None else min(row.due_at, due_of(row.change_rate))) for row in rows]
    execute_many(connection, _BY_RATE, ("b_id", "b_due"), due)


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


_COUNTED = text(
    """
    SELECT count(*) AS listed, count(p.hint) AS hinted,
           count(CASE WHEN p.hint IS NOT NULL AND p.due_at IS NOT NULL THEN 1 END) AS spared
    FROM members m JOIN pages p ON p.id = m.page WHERE m.document = :document AND m.dropped IS NULL
    """
)
# Of some open visits of a source: how many there are, and how many are of pages with hints that a document lists.
_UNDER_WAY = text(
    f"""
    SELECT count(*) AS visits, count(p.hint) AS hinted
    FROM (SELECT page FROM tasks WHERE source = :source AND kind = 'visit'
          AND state IN ({", ".join(f"'{state}'" for state in OPEN_STATES)}) LIMIT :most) AS t
    LEFT JOIN members m ON m.document = :document AND m.page = t.page AND m.dropped IS NULL
    LEFT JOIN pages p ON p.id = m.page
    """
)


def _counted(connection: Connection, document: int) -> Any:
    return connection.execute(_COUNTED, {"document": document}).one()


def members_of(store: Store, source: str, known: Document) -> Members:
    """Counted by the visits that are under way, where these are fewer than the pages that the document listed when it
    was read: an unchanged document costs nothing for what it lists."""
    with store.read() as connection:
        if known.listed is not None and known.hinted is not None:
            values = {"source": source, "document": known.id, "most": known.listed + 1}
            busy = connection.execute(_UNDER_WAY, values).one()
            if busy.visits <= known.listed:
                return Members(known.listed, max(0, known.hinted - busy.hinted))
        row = _counted(connection, known.id)
        return Members(row.listed, row.spared)


def pages_of(store: Store, known: Document) -> list[int]:
    """The ids of the pages that a document lists now."""
    with store.read() as connection:
        rows = connection.execute(
            select(members.c.page).where(members.c.document == known.id, members.c.dropped.is_(None))
        )
        return list(rows.scalars())

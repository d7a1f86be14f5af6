"""What speaks against pages at the end of a cycle: what documents have dropped, and what looks did not find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, select, text, update

from recrawl.store.database import Store
from recrawl.store.keys import task_key
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import WATCHED, cursors, documents, members, pages, tasks
from recrawl.store.types import Instant, instant

CHUNK = 5_000


def in_chunks(ids: Iterable[int]) -> Iterator[list[int]]:
    """Ids in order, some thousands at a time: what one statement takes well."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start : start + CHUNK]


@dataclass(frozen=True, slots=True)
class ExhaustiveStream:
    """An exhaustive stream that was read in a cycle; `ended`: to its end, without error."""

    name: str
    ended: bool


def exhaustive_streams(connection: Connection, source: str, cycle: int) -> list[ExhaustiveStream]:
    """The exhaustive streams of a cycle. One that is no longer declared has no task in it and says nothing about it."""
    rows = connection.execute(
        select(cursors.c.stream, cursors.c.ended_cycle).where(cursors.c.source == source, cursors.c.exhaustive)
    ).all()
    return [
        ExhaustiveStream(row.stream, row.ended_cycle == cycle)
        for row in rows
        if connection.scalar(
            select(tasks.c.id).where(tasks.c.source == source, tasks.c.key == task_key(row.stream, cycle))
        )
    ]


def retire_documents(connection: Connection, source: str, stream: str, cycle: int) -> None:
    """Documents that a complete cycle did not meet are no longer part of the source: they drop all that they listed,
    and nothing is remembered of them that could spare reading them should they come back."""
    gone = connection.execute(
        update(documents)
        .where(documents.c.source == source, documents.c.stream == stream, documents.c.cycle < cycle)
        .values(cycle=None, hash=None, validators=None, complete=False)
        .returning(documents.c.id)
    ).scalars()
    for document in gone.all():
        connection.execute(
            update(members)
            .where(members.c.document == document, members.c.dropped.is_(None))
            .values(dropped=members.c.reading)
        )


_LISTED = """
EXISTS (SELECT 1 FROM members c JOIN documents e ON e.id = c.document
        JOIN cursors s ON s.source = e.source AND s.stream = e.stream
        WHERE c.page = {page} AND c.dropped IS NULL AND s.exhaustive)
"""
# CROSS JOIN: SQLite takes the tables in this order, from the few dropped members on.
_MISSED = f"""
SELECT m.page FROM members m CROSS JOIN documents d CROSS JOIN pages p
WHERE m.dropped IS NOT NULL AND d.id = m.document AND p.id = m.page
  AND d.source = :source AND d.stream IN (SELECT stream FROM {{streams}})
  AND p.first_seen_at < :began AND p.status NOT IN ('deleted', 'moved') AND NOT {_LISTED.format(page="m.page")}
"""


def missed(store: Store, connection: Connection, source: str, streams: Sequence[str], began: datetime) -> set[int]:
    """The pages that existed before a complete cycle began and that none of its exhaustive streams lists now."""
    statement = text(_MISSED.format(streams=rowset(store, {"stream": "text"}, "streams")))
    rows = connection.execute(
        statement.bindparams(instant("began", began)),
        {"source": source, "streams": packed({"stream": name} for name in streams)},
    )
    return set(rows.scalars())


IS_WATCHED = and_(*map(text, WATCHED))
"""Something speaks against the page, or did: word for word the condition of an index, so that it is used."""


def watched(connection: Connection, source: str) -> set[int]:
    """The pages of a source that something spoke against before."""
    return set(connection.execute(select(pages.c.id).where(pages.c.source == source, IS_WATCHED)).scalars())


_LOAD = f"""
SELECT p.id, p.status, p.version, p.misses, p.gone_at, p.confirms, p.confirm_at, p.failures, p.absent_since, p.held,
       p.approved, {_LISTED.format(page="p.id")} AS listed
FROM {{rows}} CROSS JOIN pages p WHERE p.id = r.id
"""


def load(store: Store, connection: Connection, ids: Iterable[int]) -> Iterator[Mapping[Any, Any]]:
    """What is needed to judge pages."""
    statement = text(_LOAD.format(rows=rowset(store, {"id": "int"}))).columns(
        gone_at=Instant(), confirm_at=Instant(), absent_since=Instant()
    )
    for some in in_chunks(ids):
        yield from connection.execute(statement, {"rows": packed({"id": page} for page in some)}).mappings()


_FORGET = f"""
DELETE FROM members WHERE dropped IS NOT NULL AND EXISTS (
  SELECT 1 FROM documents d JOIN cursors o ON o.source = d.source AND o.stream = d.stream
  WHERE d.id = members.document AND d.source = :source AND (NOT o.exhaustive
    OR EXISTS (SELECT 1 FROM pages p WHERE p.id = members.page AND p.status IN ('deleted', 'moved'))
    OR {_LISTED.format(page="members.page")}))
"""


def forget_drops(connection: Connection, source: str) -> None:
    """Let dropped members go that can no longer mean anything: their page is listed elsewhere, or judged to its end."""
    connection.execute(text(_FORGET), {"source": source})


_STANDING = """
SELECT count(*) FROM (
  SELECT 1 FROM pages WHERE source = :source AND status = 'active' AND first_seen_at < :since LIMIT :most
) AS counted
"""


def standing(connection: Connection, source: str, since: datetime, most: int) -> int:
    """How many active pages were there before `since`, counted up to `most`."""
    statement = text(_STANDING).bindparams(instant("since", since))
    return int(connection.execute(statement, {"source": source, "most": most}).scalar_one())

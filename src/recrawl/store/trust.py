"""Trust: the last checks of what streams and hosts say, and what follows when they are no longer believed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select, text, update

from recrawl.decide.trust import Subject, believed, remember
from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import events, trust
from recrawl.store.types import instant

_MOST = 2_000


@dataclass(frozen=True, slots=True)
class Trust:
    """What stands of one stream's hints or one host's validators. `checks` and `wrong` are of the last hundred."""

    kind: str
    name: str
    checks: int
    wrong: int
    believed: bool


def trust_of(store: Store, source: str) -> list[Trust]:
    """All that was checked of a source."""
    with store.read() as connection:
        rows = connection.execute(
            select(trust.c.kind, trust.c.name, trust.c.recent)
            .where(trust.c.source == source)
            .order_by(trust.c.kind, trust.c.name)
        )
        return [Trust(row.kind, row.name, len(row.recent), row.recent.count("f"), believed(row.recent)) for row in rows]


_STREAMS = """
SELECT DISTINCT m.page, d.stream FROM {rows} CROSS JOIN members m JOIN documents d ON d.id = m.document
WHERE m.page = r.page AND m.dropped IS NULL AND d.source = :source
"""


def streams_of(store: Store, source: str, pages: Iterable[int]) -> dict[int, list[str]]:
    """The streams whose documents list each of these pages: those whose hints they carry."""
    statement = text(_STREAMS.format(rows=rowset(store, {"page": "int"})))
    found: dict[int, list[str]] = {}
    with store.read() as connection:
        rows = packed({"page": page} for page in sorted(pages))
        for row in connection.execute(statement, {"source": source, "rows": rows}):
            found.setdefault(row.page, []).append(row.stream)
    return found


def note(
    store: Store, source: str, checks: Mapping[tuple[Subject, str], Sequence[bool]], *, now: datetime, soon: datetime
) -> None:
    """Take in checks: True where what was said was true. Trust that is lost or comes back is an event; where hints are
    no longer believed, the pages that they spared are due at `soon`."""

    def work(connection: Connection) -> list[Subject]:
        return [
            kind
            for (kind, name), found in sorted(checks.items())
            if _noted(store, connection, source, kind, name, found, now)
        ]

    if checks and Subject.HINTS in store.write(work):
        while _bring_forward(store, source, soon) == _MOST:
            pass


def _noted(
    store: Store, connection: Connection, source: str, kind: Subject, name: str, checks: Sequence[bool], now: datetime
) -> bool:
    """Whether it was believed, and is no longer."""
    where = (trust.c.source == source) & (trust.c.kind == kind) & (trust.c.name == name)
    connection.execute(
        store.insert(trust).values(source=source, kind=kind, name=name, recent="").on_conflict_do_nothing()
    )
    before = connection.execute(select(trust.c.recent).where(where).with_for_update()).scalar_one()
    after = remember(before, checks)
    connection.execute(update(trust).where(where).values(recent=after))
    if believed(after) == believed(before):
        return False
    told = {"of": kind, "name": name, "believed": believed(after), "checks": len(after), "wrong": after.count("f")}
    connection.execute(insert(events).values(source=source, kind="trust", data=told, at=now))
    return not believed(after)


_FORWARD = """
UPDATE pages SET due_at = :soon WHERE id IN (
  SELECT id FROM pages WHERE source = :source AND due_at IS NOT NULL AND due_at > :soon AND hint IS NOT NULL
  ORDER BY due_at LIMIT :most {lock})
"""


def _bring_forward(store: Store, source: str, soon: datetime) -> int:
    """Pages that their hints spared are due sooner, at most 2,000 in one transaction; how many were."""
    statement = text(_FORWARD.format(lock="FOR UPDATE SKIP LOCKED" if store.is_postgres else "")).bindparams(
        instant("soon", soon)
    )
    values = {"source": source, "most": _MOST}
    return store.write(lambda connection: connection.execute(statement, values).rowcount)

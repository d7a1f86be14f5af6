"""Pages: read once under lock, written once with everything that a verdict decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter

from sqlalchemy import Connection, bindparam, delete, insert, text, update
from sqlalchemy.dialects import postgresql

from recrawl.model.settlement import PageFacts
from recrawl.model.work import PageState
from recrawl.store.database import Store
from recrawl.store.keys import identity_hash
from recrawl.store.many import execute_many
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import pages

NAMES = [spec.name for spec in fields(PageFacts)]
# What discovery writes while a page is being visited is not settle's to overwrite.
_KEPT = {"id", "source", "page_id", "url", "fetch_url", "host", "hint", "hint_observed", "taken_at"}
_WRITTEN = [name for name in NAMES if name not in _KEPT]
_CHANGED = ("b_id", *(f"v_{name}" for name in _WRITTEN))
_UPDATE = (
    update(pages).where(pages.c.id == bindparam("b_id")).values({name: bindparam(f"v_{name}") for name in _WRITTEN})
)
_ADDED = (*NAMES, "page_hash", "first_seen_at")
_INSERT = insert(pages)
_RESERVE = postgresql.insert(pages).on_conflict_do_nothing().returning(pages.c.id)
_changed_values = attrgetter("id", *_WRITTEN)
_all_values = attrgetter(*NAMES)


def load(store: Store, connection: Connection, ids: Sequence[int]) -> dict[int, PageFacts]:
    """The locked rows by id."""
    if not ids:
        return {}
    columns = ", ".join(f"p.{name}" for name in NAMES)
    statement = text(f"SELECT {columns} FROM {rowset(store, {'id': 'int'})} CROSS JOIN pages p WHERE p.id = r.id")
    typed = statement.columns(**{name: pages.c[name].type for name in NAMES})
    found: dict[int, PageFacts] = {}
    for row in connection.execute(typed, {"rows": packed({"id": page} for page in ids)}).mappings():
        values = dict(row)
        values["status"] = PageState(values["status"])
        found[values["id"]] = PageFacts(**values)
    return found


def write(connection: Connection, rows: Iterable[PageFacts]) -> None:
    execute_many(connection, _UPDATE, _CHANGED, map(_changed_values, sorted(rows, key=_id)))


def add(connection: Connection, rows: Iterable[PageFacts], now: datetime) -> None:
    """Pages that nobody knew, with the ids that were drawn for them."""
    values = [(*_all_values(page), identity_hash(page.source, page.page_id), now) for page in sorted(rows, key=_id)]
    execute_many(connection, _INSERT, _ADDED, values)


def reserve(connection: Connection, rows: Sequence[PageFacts], now: datetime) -> set[int]:
    """Take the identities of pages that nobody knew, on PostgreSQL, where other writers may want them too: those that
    are this transaction's now. The others' writers have committed by then. `rows` in the order of their hashes, in
    which all writers take them."""
    values = [
        {
            "id": page.id,
            "source": page.source,
            "page_id": page.page_id,
            "page_hash": identity_hash(page.source, page.page_id),
            "url": page.url,
            "fetch_url": page.fetch_url,
            "host": page.host,
            "status": page.status,
            "first_seen_at": now,
            "generation": page.generation,
        }
        for page in rows
    ]
    return set(connection.execute(_RESERVE, values).scalars())


def give_back(connection: Connection, ids: Iterable[int]) -> None:
    """Take away pages that were reserved and came to nothing."""
    if wanted := sorted(ids):
        connection.execute(delete(pages).where(pages.c.id.in_(wanted)))


def draw_ids(store: Store, connection: Connection, count: int) -> list[int]:
    """Ids for `count` new pages. On SQLite they are free until the transaction ends, which holds the writer's lock."""
    if store.is_postgres:
        drawn = connection.execute(text(_DRAW_POSTGRES), {"count": count})
        return [row.id for row in drawn]
    last = connection.execute(text(_LAST_SQLITE)).scalar_one_or_none() or 0
    return list(range(last + 1, last + 1 + count))


_id = attrgetter("id")
_DRAW_POSTGRES = "SELECT nextval(pg_get_serial_sequence('pages', 'id')) AS id FROM generate_series(1, :count)"
_LAST_SQLITE = "SELECT seq FROM sqlite_sequence WHERE name = 'pages'"

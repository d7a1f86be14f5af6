"""Pages: read once under lock, written once with everything that a verdict decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from sqlalchemy import Connection, bindparam, text, update

from recrawl.model.settlement import PageFacts
from recrawl.model.work import PageState
from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import pages

NAMES = [spec.name for spec in fields(PageFacts)]
# What discovery writes while a page is being visited is not settle's to overwrite.
_KEPT = {"id", "source", "page_id", "url", "fetch_url", "host", "hint", "hint_observed", "taken_at"}
_WRITTEN = [name for name in NAMES if name not in _KEPT]
_UPDATE = (
    update(pages).where(pages.c.id == bindparam("b_id")).values({name: bindparam(f"v_{name}") for name in _WRITTEN})
)


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
    values = [
        {"b_id": page.id} | {f"v_{name}": getattr(page, name) for name in _WRITTEN}
        for page in sorted(rows, key=lambda page: page.id)
    ]
    if values:
        connection.execute(_UPDATE, values)

"""What is stored of pages that somebody else is about to visit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from recrawl.model.work import PageState
from recrawl.store.database import Store
from recrawl.store.keys import identity_hash
from recrawl.store.rowset import packed, rowset
from recrawl.store.types import Instant


@dataclass(frozen=True, slots=True)
class Known:
    """The source's own version and time of what is stored of a page."""

    version: str | None
    updated: datetime | None


_KNOWN = """
SELECT p.page_id, p.source_version, p.source_updated_at FROM {rows} CROSS JOIN pages p
WHERE p.page_hash = r.h AND p.version > 0 AND p.status = :active
"""


def known(store: Store, source: str, page_ids: Sequence[str]) -> dict[str, Known]:
    """Those of a source's pages that are active and have data, by their ids."""
    statement = text(_KNOWN.format(rows=rowset(store, {"h": "text"}))).columns(source_updated_at=Instant())
    rows = packed({"h": identity_hash(source, one)} for one in page_ids)
    with store.read() as connection:
        found = connection.execute(statement, {"rows": rows, "active": PageState.ACTIVE})
        return {row.page_id: Known(row.source_version, row.source_updated_at) for row in found}

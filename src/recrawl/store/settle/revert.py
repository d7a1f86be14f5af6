"""The verb `revert`, through the same door as outcomes. It needs no lease: an operator is no worker."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from recrawl.decide import revert as decided
from recrawl.errors import Permanent
from recrawl.model.record import RecordRow
from recrawl.model.settlement import OldVersion
from recrawl.store.database import Store
from recrawl.store.settle import events, pages, records, versions, yields
from recrawl.store.tables import versions as table
from recrawl.store.visits import lock_pages

_NAMES = ("version", "kind", "content_hash", "raw_hash", "reader_hash", "final_url", "content_type")


def revert(store: Store, page: int, version: int, now: datetime) -> int | None:
    """Make the content of an older version current; the number of the new version, None where it is current already.

    A look that is under way at the same time is judged afterwards against what is written here. Raises Permanent.
    """

    def work(connection: Connection) -> int | None:
        lock_pages(store, connection, [page])
        facts = pages.load(store, connection, [page])[page]
        verdict = decided.revert(facts, _old(connection, page, version, facts.url), now)
        if verdict is None:
            return None
        pages.write(connection, [verdict.page])
        versions.write(connection, [verdict], None)
        touched = yields.write(store, connection, [verdict])
        records.show(store, connection, [verdict], touched, now)
        events.write(connection, [verdict], now)
        return verdict.page.version

    return store.write(work)


def _old(connection: Connection, page: int, version: int, url: str) -> OldVersion:
    row = connection.execute(select(table).where(table.c.page == page, table.c.version == version)).one_or_none()
    if row is None:
        raise Permanent(
            f"the page has no version {version}", place=url, action="`recrawl show` lists those that are kept."
        )
    rows = tuple(RecordRow(item["table"], item["key"], item["data"]) for item in row.data)
    kept = {name: getattr(row, name) for name in (*_NAMES, "source_updated_at")}
    return OldVersion(**kept, rows=rows)

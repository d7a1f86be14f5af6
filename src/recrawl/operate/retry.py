"""Fresh attempts at what has no good end."""

from __future__ import annotations

from datetime import datetime

from recrawl.store import queries
from recrawl.store.database import Store
from recrawl.store.retry import Retried, retry


def retry_sources(
    store: Store, source: str | None = None, *, failed: bool, missing: bool, now: datetime
) -> dict[str, Retried]:
    """What was marked for the next run, by source: of `source`, else of all. See `recrawl.store.retry`."""
    names = [source] if source is not None else queries.source_names(store)
    return {name: retry(store, name, failed=failed, missing=missing, now=now) for name in names}

"""Reading stored bodies again on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from recrawl.operate.standing import working
from recrawl.run.engine import Engine, Errand, Result
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source
from recrawl.store import plan, reparse
from recrawl.store.database import Store


@dataclass(frozen=True, slots=True)
class Reparsed:
    """`kept` pages were to be read from what is stored; `fetched` have nothing stored, and wait for the next run."""

    kept: int
    fetched: int
    result: Result


async def reparse_source(
    declared: Declared,
    store: Store,
    *,
    processes: int = 0,
    prepare: Callable[[Engine, Progress, int], None] = lambda _engine, _progress, _total: None,
) -> Reparsed:
    """Read all stored bodies of a source again by its present rules, without a request.

    Nobody can see every change of a reader function, so they are read whether or not rules are known to have changed.
    `prepare` is also given how many pages there are to read. What is not done when this is interrupted is done by the
    next run. Raises Permanent for a source that was never synced, or is paused.
    """
    name = declared.source.name
    working(store, name)
    parts = list(reparse.mark(store, name))
    kept, fetched = sum(part.kept for part in parts), sum(part.fetched for part in parts)

    def marked(store: Store, *, now: datetime, expires_at: datetime) -> int:
        return plan.plan_marked(store, name, now=now, expires_at=expires_at)

    result = await sync_source(
        declared,
        store,
        processes=processes,
        errand=Errand(marked),
        prepare=lambda engine, progress: prepare(engine, progress, kept),
    )
    return Reparsed(kept, fetched, result)

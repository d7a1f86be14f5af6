"""What `recrawl run` does by itself to each source that it looks after: one line a job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from recrawl.declare.policies import seconds
from recrawl.operate.audit import audit_source
from recrawl.operate.reconcile import reconcile_source
from recrawl.run.engine import Engine, Result
from recrawl.run.progress import Progress
from recrawl.run.schedule import Job, Prepare, Served
from recrawl.run.wire import sync_source, the_chance, the_clock
from recrawl.store.notes import last_noted
from recrawl.store.passes import passes
from recrawl.store.sources import standing


def _pass_due(served: Served) -> datetime | None:
    return passes(served.store, served.name).due(served.interval)


async def _pass(served: Served, prepare: Prepare) -> Result:
    return await sync_source(
        served.declared,
        served.store,
        concurrency=served.concurrency,
        delay=served.delay,
        processes=served.processes,
        every=served.interval,
        prepare=prepare,
    )


def _checks_due(kind: str) -> Callable[[Served], datetime | None]:
    """Whole comparisons are made a full scan's time after the last; the first, after the first pass."""

    def due(served: Served) -> datetime | None:
        span = timedelta(seconds=seconds(served.declared.source.full_scan))
        first = passes(served.store, served.name).first
        if first is None or standing(served.store, served.name).paused:
            return the_clock().now() + span
        return (last_noted(served.store, served.name, kind) or first) + span

    return due


async def _reconcile(served: Served, prepare: Prepare) -> Result:
    def watched(engine: Engine, progress: Progress, _: int | None) -> None:
        prepare(engine, progress)

    return (await reconcile_source(served.declared, served.store, prepare=watched)).result


async def _audit(served: Served, prepare: Prepare) -> Result:
    def watched(engine: Engine, progress: Progress, _: int) -> None:
        prepare(engine, progress)

    _found, result = await audit_source(served.declared, served.store, SAMPLE, the_chance(), prepare=watched)
    return result


SAMPLE = 100
"""Pages of a source that an audit of the scheduler looks at."""

JOBS: tuple[Job, ...] = (
    Job("sync", _pass_due, _pass),
    Job("reconcile", _checks_due("reconciled"), _reconcile),
    Job("audit", _checks_due("audit"), _audit),
)

"""What `recrawl run` does by itself to each source that it looks after: one line a job."""

from __future__ import annotations

from datetime import datetime

from recrawl.run.engine import Result
from recrawl.run.schedule import Job, Prepare, Served
from recrawl.run.wire import sync_source
from recrawl.store.passes import passes


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


JOBS: tuple[Job, ...] = (Job("sync", _pass_due, _pass),)

"""Storing what is pushed: the worker beside a service, and after an import."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable

from recrawl.declare import Source
from recrawl.run.inbox import Inbox
from recrawl.run.wire import the_clock
from recrawl.store.database import Store

_GLANCE = 0.2  # seconds between two looks into an empty inbox


async def work(
    store: Store,
    sources: Iterable[Source],
    *,
    stop: asyncio.Event | None = None,
    told: Callable[[Counter[str]], None] = lambda _: None,
) -> Counter[str]:
    """Clean and settle what is pushed to these sources, until `stop` is set; without it, until nothing waits.

    Gives the counts of what it came to, and `told` hears them as they come: new, changed, duplicates, regressions,
    dead. Any number of workers may serve one store. Raises Misuse for a record that no table can hold, and
    StoreUnavailable; what was begun then is done again by the next worker.
    """
    counts: Counter[str] = Counter()

    def count(found: Counter[str]) -> None:
        counts.update(found)
        told(found)

    inbox = Inbox(store, {source.name: source for source in sources}, the_clock().now, count)
    await asyncio.to_thread(inbox.prepare)
    while stop is None or not stop.is_set():
        taken = await asyncio.to_thread(inbox.take)
        if taken:
            continue
        if stop is None:
            break
        try:
            async with asyncio.timeout(_GLANCE):
                await stop.wait()
        except TimeoutError:
            pass
    return counts

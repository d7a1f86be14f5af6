"""Showing how a run gets on: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from recrawl.cli.surface import err, safe
from recrawl.run.progress import Progress as Counts
from recrawl.store import queries
from recrawl.store.database import Store

_GLANCE = 0.5
_LINE_AFTER = 15.0


class Watch:
    """Looks at a run's counts and at its open tasks, and tells. Silent where nothing is to be shown."""

    def __init__(self, store: Store, source: str, *, silent: bool) -> None:
        self._store = store
        self._source = source
        self._silent = silent
        self._console = err()
        self._began = self._told = time.monotonic()
        self._bar: Progress | None = None
        self._line = TaskID(0)
        self.counts: Counts | None = None
        self.total: int | None = None  # how many pages there are to look at, where that is known beforehand

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """For as long as the run goes on."""
        if self._silent:
            yield
            return
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(20),
                TextColumn("{task.fields[told]}", markup=False),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            self._line = self._bar.add_task(self._source, total=None, told="beginning")
            self._bar.start()
        watching = asyncio.create_task(self._look())
        try:
            yield
        finally:
            watching.cancel()
            self.clear()

    def clear(self) -> None:
        """Take the bar away, and give the terminal its cursor back."""
        if self._bar is not None:
            self._bar.stop()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_GLANCE)
            if self.counts is not None:
                self._tell(self.counts, await self._waiting(self.counts))

    async def _waiting(self, counts: Counts) -> int:
        if self.total is not None:
            return max(0, self.total - counts.looked_at)
        return await asyncio.to_thread(queries.open_tasks, self._store, self._source)

    def _tell(self, counts: Counts, waiting: int) -> None:
        now = time.monotonic()
        looked = counts.looked_at
        rate = looked / max(now - self._began, 0.001)
        told = f"{looked:,} looked at, {waiting:,} to go, {rate:,.1f}/s"
        if counts.waiting:
            told = f"{looked:,} looked at, waiting {counts.waiting}"
        if self._bar is not None:
            self._bar.update(self._line, completed=looked, total=looked + waiting or None, told=told)
        elif now - self._told >= _LINE_AFTER:
            self._told = now
            self._console.print(f"{safe(self._source)}: {told}")

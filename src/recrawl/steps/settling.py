"""Bringing outcomes to `settle`, many at a time: while one transaction is written, the next batch gathers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import zstandard

from recrawl.model.outcome import Changed, Outcome, Unchanged
from recrawl.model.settlement import Settlement
from recrawl.model.work import Task
from recrawl.steps.alarm import Alarm
from recrawl.steps.tools import Tools
from recrawl.store.database import Store
from recrawl.store.settle import Settled, settle

ZSTD_LEVEL = 3
_MOST = 100
_SMALL = 256  # bytes that compression would not make fewer


@dataclass(slots=True)
class Settler:
    """Takes outcomes in and writes them in the order in which they came. `told` hears what each write came to."""

    tools: Tools
    run: int
    told: Callable[[list[Task], Settled], None]

    _alarm: Alarm = field(init=False)
    _queue: asyncio.Queue[Settlement | None] = field(default_factory=lambda: asyncio.Queue(maxsize=2 * _MOST))

    def __post_init__(self) -> None:
        self._alarm = Alarm(self.tools.store, self.tools.source, self.tools.clock.now)

    async def put(self, task: Task, outcome: Outcome) -> None:
        """Hand an outcome over; waits when writing falls behind fetching."""
        await self._queue.put(Settlement(task, outcome))

    async def finish(self) -> None:
        """Let `serve` end once everything handed over is written."""
        await self._queue.put(None)

    async def serve(self) -> None:
        """Write outcomes until `finish`. Raises what the database raises: nothing is lost, the leases run out."""
        going = True
        while going:
            batch = [await self._queue.get()]
            # A transaction costs as much as some rows: what comes to its end in the same turns of the loop shares one.
            while len(batch) < _MOST and not (self._queue.empty() and await self._nothing_comes()):
                batch.append(self._queue.get_nowait())
            going = None not in batch
            settlements = [settlement for settlement in batch if settlement is not None]
            if settlements:
                tools = self.tools
                settled = await tools.db(_write, settlements, tools=tools, run=self.run, alarm=self._alarm)
                self.told([settlement.task for settlement in settlements], settled)

    async def _nothing_comes(self) -> bool:
        await asyncio.sleep(0)
        return self._queue.empty()


def _write(store: Store, settlements: list[Settlement], *, tools: Tools, run: int, alarm: Alarm) -> Settled:
    """Compress, then write; in the writer's thread, before its transaction begins."""
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    settled = settle(
        store,
        [_compressed(settlement, compressor) for settlement in settlements],
        rules={tools.source.name: tools.rules},
        now=tools.clock.now(),
        draw=tools.chance.random,
        run=run,
    )
    alarm.hear(settled.counts)
    return settled


def _compressed(settlement: Settlement, compressor: zstandard.ZstdCompressor) -> Settlement:
    outcome = settlement.outcome
    if not isinstance(outcome, Changed | Unchanged) or outcome.body is None or outcome.body.size < _SMALL:
        return settlement
    body = replace(outcome.body, codec="zstd", data=compressor.compress(outcome.body.data))
    return replace(settlement, outcome=replace(outcome, body=body))

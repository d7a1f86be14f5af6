"""Doing what is due, for as long as the process lives: each source is gone through again and again.

What was done when is in the database. So any number of these can run at once, each can be killed at any moment, and one
that begins anew does only what is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from recrawl.declare.policies import seconds
from recrawl.run.clock import Clock
from recrawl.run.engine import Engine, Result
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared
from recrawl.store.database import Store

AT_ONCE = 8
"""So many sources are worked on at one time."""
_GLANCE = 1.0
_FIRST_RETRY = 30.0


@dataclass(frozen=True, slots=True)
class Served:
    """A source that is looked after, and how. `every`: seconds between its passes, where it declares none."""

    declared: Declared
    store: Store
    every: float
    concurrency: int | None = None
    delay: float | None = None
    processes: int = 0

    @property
    def name(self) -> str:
        return self.declared.source.name

    @property
    def interval(self) -> float:
        """Seconds between its passes."""
        declared = self.declared.source.every
        return self.every if declared is None else seconds(declared)


Prepare = Callable[[Engine, Progress], None]


@dataclass(frozen=True, slots=True)
class Job:
    """Something that is done to each source from time to time.

    `due` tells when it is to be done next by what the database knows: None is now. `perform` does it once; its result
    may name a time at which to go on. It hands any engine that it drives to `prepare`, so that it can be stopped.
    """

    name: str
    due: Callable[[Served], datetime | None]
    perform: Callable[[Served, Prepare], Awaitable[Result]]


class Listener(Protocol):
    """Who is told how it goes."""

    def began(self, served: Served, job: Job, engine: Engine, progress: Progress) -> None: ...

    def ended(self, served: Served, job: Job, result: Result, following: datetime) -> None: ...

    def failed(self, served: Served, job: Job, error: Exception, again: datetime) -> None: ...


@dataclass(slots=True)
class _Turn:
    """One job of one source, and when this process will look at it next. `going_on`: though it is not due again by
    then, as something had to wait until then."""

    served: Served
    job: Job
    at: datetime
    failures: int = 0
    going_on: bool = False


class Scheduler:
    """Looks after sources until it is stopped: `await Scheduler(served, jobs, clock, listener).run()`."""

    def __init__(self, served: Sequence[Served], jobs: Sequence[Job], clock: Clock, listener: Listener) -> None:
        self._clock = clock
        self._listener = listener
        self._turns = [_Turn(one, job, clock.now()) for one in served for job in jobs]
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._engines: dict[str, Engine] = {}
        self._moved = asyncio.Event()
        self._stopping = False

    def stop(self) -> None:
        """End as soon as what is under way is written."""
        self._stopping = True
        self._moved.set()
        for engine in self._engines.values():
            engine.stop()

    async def run(self) -> None:
        """Go on until `stop`. What goes wrong at one source is told, and stops no other."""
        while not self._stopping:
            self._moved.clear()
            for turn in sorted(self._turns, key=lambda turn: turn.at):
                if turn.at <= self._clock.now() and turn.served.name not in self._under_way:
                    if len(self._under_way) == AT_ONCE:
                        break
                    self._start(turn)
            await self._wait()
        await asyncio.gather(*self._under_way.values())

    def _start(self, turn: _Turn) -> None:
        name = turn.served.name
        job = asyncio.create_task(self._take(turn))
        self._under_way[name] = job
        job.add_done_callback(lambda _: self._ended(name))

    def _ended(self, name: str) -> None:
        self._under_way.pop(name, None)
        self._engines.pop(name, None)
        self._moved.set()

    async def _wait(self) -> None:
        """Until the next turn, or until something ends. Time is looked at now and then while work is under way: a clock
        that jumps would jump over the leases of that work."""
        if self._under_way:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), _GLANCE)
            return
        first = min(turn.at for turn in self._turns)
        pause = max(0.0, (first - self._clock.now()).total_seconds())
        waits = [asyncio.create_task(wait) for wait in (self._clock.sleep(pause), self._stopped())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _stopped(self) -> None:
        await self._moved.wait()

    async def _take(self, turn: _Turn) -> None:
        """Do a job if it is still due: another process may have been quicker."""
        served, job = turn.served, turn.job
        try:
            due = await asyncio.to_thread(job.due, served)
            if due is not None and due > self._clock.now() and not turn.going_on:
                turn.at = due
                return
            result = await job.perform(served, lambda engine, progress: self._prepared(turn, engine, progress))
            turn.at, turn.going_on = await self._following(turn, result)
            turn.failures = 0
            self._listener.ended(served, job, result, turn.at)
        except Exception as error:
            turn.failures += 1
            wait = min(served.interval, _FIRST_RETRY * 2.0 ** min(turn.failures - 1, 20))
            turn.at = self._clock.now() + timedelta(seconds=wait)
            self._listener.failed(served, job, error, turn.at)

    def _prepared(self, turn: _Turn, engine: Engine, progress: Progress) -> None:
        self._engines[turn.served.name] = engine
        if self._stopping:
            engine.stop()
        self._listener.began(turn.served, turn.job, engine, progress)

    async def _following(self, turn: _Turn, result: Result) -> tuple[datetime, bool]:
        """When to look at a job again: when it is due next, or (True) when what had to wait can be gone on with.

        One that came to no end, as others serve its source or somebody paused it, is left to them for a while.
        """
        now = self._clock.now()
        due = await asyncio.to_thread(turn.job.due, turn.served)
        regular = now + timedelta(seconds=turn.served.interval) if due is None else due
        if result.until is None or result.until >= regular:
            return regular, False
        return max(result.until, now), True

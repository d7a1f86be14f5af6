"""The embedded engine: one process, asyncio for fetching, one thread for writing.

It holds no state that matters: all of it is in the database, so that it can be killed at any moment and any number of
it can run at once. What it claimed and did not finish goes back by itself when its leases end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from recrawl.decide import pace
from recrawl.errors import StoreUnavailable
from recrawl.model.work import ASKED, Task, TaskKind
from recrawl.run.inbox import Inbox
from recrawl.run.owner import dead
from recrawl.run.progress import Progress
from recrawl.steps.control import Control
from recrawl.steps.courtesy import PATIENCE, Courtesy
from recrawl.steps.discover import discover, streams_of
from recrawl.steps.documents import LEASE, Trouble
from recrawl.steps.settling import Settler
from recrawl.steps.tools import Tools
from recrawl.steps.visit import look_at, visit
from recrawl.store import claim, close, cursor, cycle, leases, plan, reap, recordtables, runs, sources
from recrawl.store.leases import LeaseLost
from recrawl.store.settle import Settled

RENEW_AFTER = 20.0
_GLANCE = 0.2


class Ending(StrEnum):
    """The terminal states of a run."""

    FINISHED = "finished"
    FAILURES = "failures"  # to its end, with failures or dead letters
    WAITING = "waiting"  # the rest is not due yet
    APPROVAL = "approval"  # too many pages would vanish: a person has to agree
    NOTHING = "nothing"  # discovery found nothing to work on
    INTERRUPTED = "interrupted"
    PAUSED = "paused"  # somebody paused the source, before or meanwhile


@dataclass(frozen=True, slots=True)
class Errand:
    """What an operator asked for, done beside all cycles: nothing is discovered, and no other work is taken up.

    `plan(store, now=, expires_at=)` makes tasks of priority ASKED until it makes none; `told` hears what each
    transaction came to.
    """

    plan: Callable[..., int]
    told: Callable[[list[Task], Settled], None] = lambda _tasks, _settled: None


@dataclass(slots=True)
class Result:
    ending: Ending
    complete: bool
    progress: Progress
    until: datetime | None = None
    troubles: tuple[Trouble, ...] = ()
    closed: close.Closed | None = None


class Engine:
    """Brings one source up to date once, or runs one errand: `await Engine(tools, progress).run()`."""

    def __init__(self, tools: Tools, progress: Progress, errand: Errand | None = None) -> None:
        self._tools = tools
        self._errand = errand
        self._progress = progress
        self._courtesy = Courtesy(tools)
        self._control = Control(tools, partial(look_at, tools=tools, courtesy=self._courtesy))
        self._held: dict[int, Task] = {}
        self._jobs: dict[int, asyncio.Task[None]] = {}
        self._troubles: dict[str | None, list[Trouble]] = {}  # of each stream what its last attempt met
        self._moved = asyncio.Event()
        self._stopping = False
        self._failed: BaseException | None = None
        self._until: datetime | None = None
        self._last_host = ""
        self._reaped_at: datetime | None = None

    def stop(self) -> None:
        """End as soon as what is under way is written; what was not begun is given back."""
        self._stopping = True
        self._moved.set()

    async def run(self) -> Result:
        """Discover, visit, settle, until nothing is left that can be done. Raises StoreUnavailable, Misuse."""
        tools = self._tools
        hashes = tools.source.spec_hash, tools.source.reader_hash
        await tools.db(sources.register, tools.source.name, *hashes, tools.every)
        await tools.db(recordtables.ensure, tools.source.records, frozen=tools.source.contract == "freeze")
        if await self._paused():
            return Result(Ending.PAUSED, False, self._progress, troubles=self._told())
        await self._reap(force=True)
        run = await tools.db(runs.start_run, tools.source.name, tools.owner, tools.clock.now())
        settler = Settler(tools, run, self._settled)
        writing = asyncio.create_task(settler.serve())
        writing.add_done_callback(lambda _: self._moved.set())
        renewing = asyncio.create_task(self._renew())
        ending: Ending = Ending.INTERRUPTED
        closed: close.Closed | None = None
        try:
            if self._errand is None:
                await self._take_pushes(run)
            opened = None if self._errand else await self._begin()
            await self._work(opened, settler, writing)
            await self._drain(settler, writing)
            closed = await self._close(opened) if opened and not self._stopping else None
            ending = self._ending(closed)
        finally:
            under_way = [writing, renewing, *self._jobs.values()]
            for job in under_way:
                job.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            with suppress(StoreUnavailable):  # what ends the run is told; leases run out, and the run is buried later
                await self._give_back()
                await tools.experience.keep(tools, at_end=True)
                counts, complete = self._progress.summary(), closed is not None and closed.complete
                await tools.db(runs.end_run, run, state=ending, complete=complete, counts=counts, now=tools.clock.now())
        return Result(ending, complete, self._progress, self._until, self._told(), closed)

    async def _take_pushes(self, run: int) -> None:
        """Settle what was pushed to this source and waits."""
        source = self._tools.source

        def told(counts: Counter[str]) -> None:
            self._progress.add(Counter({f"pushed_{name}": count for name, count in counts.items()}))

        inbox = Inbox(self._tools.store, {source.name: source}, self._tools.clock.now, told, self._tools.owner, run)
        await self._tools.db(lambda _: inbox.prepare())
        taken = 1
        while taken and not self._stopping:
            taken = await self._tools.db(lambda _: inbox.take())

    async def _begin(self) -> cycle.Cycle:
        tools = self._tools
        return await tools.db(cycle.begin, tools.source.name, await streams_of(tools), tools.clock.now())

    async def _work(self, opened: cycle.Cycle | None, settler: Settler, writing: asyncio.Task[None]) -> None:
        """Keep the hands full until there is nothing to take up any more."""
        room = 4 * self._tools.concurrency
        while not self._stopping:
            if writing.done():
                writing.result()
            await self._reap()
            now = self._tools.clock.now()
            claimed = await self._claim(room - len(self._held), now) if len(self._held) <= room // 2 else []
            for task in claimed:
                self._start(task, settler)
            if len(self._held) > room // 2:
                await self._movement()
            elif not claimed and not await self._plan(opened):
                if self._held:
                    await self._movement()
                elif not await self._wait_for_others(opened, now):
                    return

    async def _movement(self) -> None:
        """Until something that is held comes to its end. A `stop` that came meanwhile is not waited for again."""
        self._moved.clear()
        if not self._stopping:
            await self._moved.wait()

    async def _claim(self, count: int, now: datetime) -> list[Task]:
        tools = self._tools
        if self._courtesy.spent_until is not None:
            return []
        claimed = await tools.db(
            claim.claim,
            count,
            specs={tools.source.name: tools.source.spec_hash},
            owner=tools.owner,
            now=now,
            until=now + LEASE,
            after=self._last_host,
            floor=ASKED if self._errand else None,
        )
        if claimed:
            self._last_host = claimed[-1].host
        return claimed

    async def _plan(self, opened: cycle.Cycle | None) -> int:
        """Make tasks for what is due; pages that this cycle has looked at are due after it began, and wait."""
        tools = self._tools
        now = tools.clock.now()
        common = {"now": now, "expires_at": now + tools.task_life}
        if self._errand or opened is None:
            return await tools.db(self._errand.plan, **common) if self._errand else 0
        made = await tools.db(plan.plan_rereads, tools.source.name, tools.source.reader_hash, **common)
        most = 0 if made else await self._courtesy.left(plan.MOST)
        if not most:
            return made
        return await tools.db(
            plan.plan,
            tools.source.name,
            until=opened.started_at,
            share=pace.share(tools.delay),
            most=most,
            **common,
        )

    def _start(self, task: Task, settler: Settler) -> None:
        self._held[task.id] = task
        job = asyncio.create_task(self._perform(task, settler))
        self._jobs[task.id] = job
        job.add_done_callback(lambda done: self._ended(task, done))

    async def _perform(self, task: Task, settler: Settler) -> None:
        if task.kind is TaskKind.DISCOVER:
            self._troubles[task.stream] = await discover(task, self._tools, self._courtesy, self._progress.add)
            self._held.pop(task.id, None)
            return
        outcome = await self._courtesy.judged(task, await visit(task, self._tools, self._control))
        self._progress.add(Counter(requests=outcome.look.requests))
        await settler.put(task, outcome)

    def _ended(self, task: Task, job: asyncio.Task[None]) -> None:
        self._jobs.pop(task.id, None)
        self._moved.set()
        error = None if job.cancelled() else job.exception()
        if error is None:
            return
        self._held.pop(task.id, None)
        if not isinstance(error, LeaseLost):
            self._failed = error
            self.stop()

    def _settled(self, tasks: list[Task], settled: Settled) -> None:
        for task in tasks:
            self._held.pop(task.id, None)
        self._progress.changes += settled.changed
        self._progress.add(settled.counts + Counter(lost=len(settled.lost)))
        if self._errand:
            self._errand.told(tasks, settled)
        self._moved.set()

    async def _drain(self, settler: Settler, writing: asyncio.Task[None]) -> None:
        """Let what is under way come to its end, unless something failed."""
        if self._failed is None:
            rest: asyncio.Future[Any] = asyncio.gather(*self._jobs.values(), return_exceptions=True)
            while not (rest.done() or writing.done()):
                self._let_go()
                await asyncio.wait([rest, writing], timeout=_GLANCE, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
        await settler.finish()
        await writing
        if self._failed is not None:
            raise self._failed

    def _let_go(self) -> None:
        """When stopping, end what waits for its turn, and what begins to: none of it is on the wire."""
        for task_id, job in self._jobs.items() if self._stopping else ():
            task = self._held.get(task_id)
            if (task and task.kind is TaskKind.DISCOVER) or job in self._courtesy.waiting:
                job.cancel()

    async def _renew(self) -> None:
        """Keep the leases of what is held; another clock than the machine's would make no leases last."""
        while True:
            await asyncio.sleep(RENEW_AFTER)
            held = [(task.id, task.token) for task in self._held.values()]
            if held:
                try:
                    lost = await self._tools.db(leases.renew, held, self._tools.clock.now() + LEASE)
                except StoreUnavailable as error:
                    self._failed = error
                    self.stop()
                    return
                for task in lost:
                    if task in self._jobs:
                        self._jobs[task].cancel()
                    self._held.pop(task, None)

    async def _reap(self, *, force: bool = False) -> None:
        """Bring back what is due again and what dead workers held, once a second at most."""
        tools = self._tools
        now = tools.clock.now()
        if not force and self._reaped_at is not None and now - self._reaped_at < timedelta(seconds=1):
            return
        self._reaped_at = now
        gone = dead(await tools.db(leases.owners))
        await tools.db(reap.reap, now, gone)
        if force:
            await tools.db(runs.bury_runs, dead(await tools.db(runs.running_owners)), now)
            await tools.db(cursor.forget, tools.source.name)

    async def _wait_for_others(self, opened: cycle.Cycle | None, now: datetime) -> bool:
        """Nothing is held and nothing could be claimed at `now`: wait for what is due soon, or for what others hold.

        False: nothing is left, or the rest is due too late for this run.
        """
        tools = self._tools
        least = {"floor": ASKED} if self._errand else {}
        count, due = await tools.db(runs.open_work, tools.source.name, now, **least)
        self._progress.open_tasks = count
        spent = self._courtesy.spent_until
        if not count and not (opened and spent and await self._still_due(opened)):
            return False
        due = max(due or spent, spent) if spent else due
        if due is None:
            if await self._superseded():
                return False
            self._progress.waiting = "for a free request slot, or for work that another process holds"
            await asyncio.sleep(_GLANCE)
        elif (due - now).total_seconds() > PATIENCE:
            self._until = due
            return False
        else:
            self._progress.waiting = f"until {due:%H:%M:%S} UTC, to try again"
            self._progress.on_change(self._progress)
            await self._pause(max((due - now).total_seconds(), 0.01))
        self._reaped_at = None
        self._progress.waiting = None
        return True

    async def _still_due(self, opened: cycle.Cycle) -> bool:
        """Whether pages are due for which the budget had nothing left."""
        return await self._tools.db(plan.anything_due, self._tools.source.name, opened.started_at)

    async def _superseded(self) -> bool:
        """Whether other workers serve this source by another declaration, or somebody paused it: then this run ends."""
        known = await self._tools.db(sources.standing, self._tools.source.name)
        if not await self._paused():
            if known.spec_hash == self._tools.source.spec_hash:
                return False
            self._progress.on_notice(f"{known.name}: a newer declaration of it is in use; the rest is left to it")
        self._stopping = True
        return True

    async def _paused(self) -> bool:
        known = await self._tools.db(sources.standing, self._tools.source.name)
        if known.paused:
            reason = f": {known.paused_reason}" if known.paused_reason else ""
            self._troubles[None] = [Trouble(known.name, "paused", f"{known.name} is paused{reason}", again=False)]
        return known.paused

    async def _pause(self, seconds: float) -> None:
        """A wait that `stop` ends."""
        self._moved.clear()
        waits = [asyncio.ensure_future(self._tools.clock.sleep(seconds)), asyncio.ensure_future(self._moved.wait())]
        _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in pending:
            wait.cancel()

    async def _close(self, opened: cycle.Cycle) -> close.Closed | None:
        """End the cycle, and with it judge what has vanished."""
        tools = self._tools
        for stream in (name for finder in tools.source.finders for name in finder.streams):
            await tools.db(cursor.advance, tools.source.name, stream, tools.clock.now())
        now, longest = tools.clock.now(), tools.rules.longest
        closed = await tools.db(close.close, tools.source.name, opened.id, tools.source.deletion, now, longest=longest)
        if closed is not None:
            self._progress.vanished(closed.deleted, suspected=closed.suspected, held=closed.held)
        return closed

    def _ending(self, closed: close.Closed | None) -> Ending:
        if any(trouble.kind == "paused" for trouble in self._told()):
            return Ending.PAUSED
        if self._stopping:
            return Ending.INTERRUPTED
        if closed is not None and closed.held:
            return Ending.APPROVAL
        if self._until is not None:
            return Ending.WAITING
        if self._told() and not self._progress.counts["found"] and not self._progress.looked_at:
            return Ending.NOTHING
        if self._progress.dead or self._told() or (closed is not None and not closed.complete):
            return Ending.FAILURES
        return Ending.FINISHED

    def _told(self) -> tuple[Trouble, ...]:
        return tuple(trouble for troubles in self._troubles.values() for trouble in troubles)

    async def _give_back(self) -> None:
        held = [(task.id, task.token) for task in self._held.values()]
        self._held.clear()
        if held:
            await self._tools.db(leases.release, held)

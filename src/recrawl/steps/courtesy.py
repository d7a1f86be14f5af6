"""Politeness towards hosts: robots.txt, request slots, budgets, back-off, how many requests are under way at once."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from recrawl.decide import budget, pace
from recrawl.decide.answers import look_of
from recrawl.decide.retry import retry_after
from recrawl.decide.urls import canonical_url, host_of, origin
from recrawl.fetch.http import USER_AGENT
from recrawl.fetch.robots import crawl_delay, robots_allows, rules_for_status
from recrawl.model.fetched import Answer, Failure, Request
from recrawl.model.outcome import Broken, Look, Outcome, Refused, Throttled
from recrawl.model.work import Task
from recrawl.steps import trouble
from recrawl.steps.budget import Purse
from recrawl.steps.tools import Tools
from recrawl.steps.trouble import Standing
from recrawl.store import hosts
from recrawl.store.budgets import host_scope, source_scope

_ROBOTS_LIFE = 86_400.0  # RFC 9309 section 2.4: no longer than 24 hours
_ROBOTS_STALE = 30 * 86_400.0
PATIENCE = 120.0
"""Seconds that a run waits for what is not due yet; what is further off is left to a later run."""
_AHEAD = 4  # slots taken in one statement


@dataclass(slots=True)
class _HostState:
    known: hosts.Host
    gate: asyncio.Semaphore
    purse: Purse
    standing: Standing
    slots: deque[float] = field(default_factory=deque)
    latency: float | None = None
    asked: int = 0
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class TooFar(Exception):
    """The next request to a host may be made no sooner than at `until`, and that is not waited for.

    `host_wide`: nobody may ask this host before; else only this source may not.
    """

    def __init__(self, until: datetime, why: str = "no request slot is free", *, host_wide: bool = True) -> None:
        super().__init__(f"{why} before {until:%Y-%m-%d %H:%M:%S} UTC")
        self.until = until
        self.host_wide = host_wide

    def as_outcome(self, url: str, now: datetime) -> Throttled:
        """What that means for the task of a URL: it waits."""
        look = Look(at=now, url=url)
        return Throttled(look=look, until=self.until, message=str(self), host_wide=self.host_wide)


class Courtesy:
    """Keeps this process polite, and all processes together: slots and robots texts live in the store."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._budget = tools.source.budget
        self._purse = Purse(tools, source_scope(tools.source.name), budget.of_source(self._budget))
        self._hosts: dict[str, _HostState] = {}
        self._loading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.waiting: set[asyncio.Task[Any]] = set()
        """Jobs that wait for their turn: nothing of theirs is on the wire."""

    async def fetch(self, request: Request, host: str) -> Answer | Failure:
        """Make one request within the host's pace. Redirects to other hosts keep the pace of those. Raises TooFar."""
        state = await self._host(host)
        with self._in_line():
            await state.gate.acquire()
        try:
            with self._in_line():
                await self._wait(state)
            answer = await self._tools.client.fetch(self._tools.keys.signed(request), before_hop=self._before_hop)
        finally:
            state.gate.release()
        self._note(state, answer)
        return answer

    async def judged(self, task: Task, outcome: Outcome) -> Outcome:
        """Note how a look at a host ended; what fails while the host is in trouble waits, and spends no attempt."""
        return await trouble.judged(task, outcome, (await self._host(task.host)).standing, self._tools)

    async def left(self, count: int) -> int:
        """How many of `count` requests the source's budget still allows."""
        return await self._purse.left(count)

    @property
    def spent_until(self) -> datetime | None:
        """When the source's budget allows a request again, where none is left of it."""
        until = self._purse.empty_until
        return until if until is not None and until > self._tools.clock.now() else None

    @contextmanager
    def _in_line(self) -> Iterator[None]:
        job = asyncio.current_task()
        assert job is not None
        self.waiting.add(job)
        try:
            yield
        finally:
            self.waiting.discard(job)

    async def refusal(self, url: str, host: str) -> Outcome | None:
        """Why a URL may not be fetched now: robots.txt forbids it, or cannot be read. None: it may."""
        state = await self._host(host)
        trouble = await self._robots(state, url)
        if trouble is not None:
            return trouble
        if robots_allows(state.known.robots or "", USER_AGENT, url):
            return None
        look = look_of(_nothing(url, self._tools.clock.now()), url, 0)
        return Refused(look=look, reason=f"robots.txt of {host} does not allow {url}", by_robots=True)

    async def robots_text(self, url: str, host: str) -> str | Outcome:
        """The robots.txt that applies to a host, or why it cannot be had."""
        state = await self._host(host)
        trouble = await self._robots(state, url)
        return trouble if trouble is not None else state.known.robots or ""

    async def _host(self, name: str) -> _HostState:
        state = self._hosts.get(name)
        if state is None:
            async with self._loading[name]:
                state = self._hosts.get(name)
                if state is None:
                    known = await self._tools.db(hosts.host, name)
                    state = _HostState(
                        known,
                        asyncio.Semaphore(self._tools.concurrency),
                        Purse(self._tools, host_scope(name), budget.of_host(self._budget)),
                        Standing(known.troubles, datetime.fromtimestamp(known.backoff_until, UTC)),
                        latency=known.latency,
                    )
                    self._hosts[name] = state
        return state

    def _delay(self, state: _HostState) -> float:
        return pace.delay(
            state.known.host,
            declared=self._tools.delay,
            crawl_delay=crawl_delay(state.known.robots or "", USER_AGENT),
            mean=state.latency,
            concurrency=self._tools.concurrency,
        )

    async def _wait(self, state: _HostState) -> None:
        """Wait for the next request slot of a host. Slots are handed out by the store, some at a time."""
        delay = self._delay(state)
        clock = self._tools.clock
        if state.standing.until > clock.now():
            raise TooFar(state.standing.until, f"{state.known.host} is left alone: it is not asked")
        await self._spend(state)
        if delay <= 0:
            return
        if not state.slots:
            count = 1 if delay > 1 else _AHEAD
            state.slots.extend(await self._tools.db(hosts.reserve, state.known.host, count, delay, clock.now()))
        slot = state.slots.popleft()
        wait = slot - clock.now().timestamp()
        if wait > PATIENCE:
            raise TooFar(datetime.fromtimestamp(slot, UTC))
        await clock.sleep(wait)

    async def _spend(self, state: _HostState) -> None:
        """Take one request out of the budgets of the source and of the host."""
        if until := await self._purse.take():
            raise TooFar(until, f"the source's budget is used up: {state.known.host} is not asked", host_wide=False)
        if until := await state.purse.take():
            raise TooFar(until, f"its budget is used up: {state.known.host} is not asked")

    async def _before_hop(self, url: str) -> str | None:
        """Pace and robots of the host that a redirect leads to; why it must not be followed, or None."""
        host = host_of(canonical_url(url))
        trouble = await self.refusal(url, host)
        if trouble is not None:
            return trouble.reason if isinstance(trouble, Refused) else f"robots.txt of {host} cannot be read"
        await self._wait(await self._host(host))
        return None

    def _note(self, state: _HostState, answer: Answer | Failure) -> None:
        state.latency = pace.latency(state.latency, answer.elapsed)
        state.asked += 1

    async def _robots(self, state: _HostState, url: str) -> Outcome | None:
        """See to it that the robots.txt of a host is known; else what stands in the way."""
        async with state.reading:
            now = self._tools.clock.now()
            age = now.timestamp() - state.known.robots_at if state.known.robots_at is not None else None
            if age is not None and age < _ROBOTS_LIFE:
                return None
            address = f"{origin(url)}/robots.txt"
            await self._wait(state)
            answer = await self._robots_answer(address)
            text = _robots_of(answer)
            if text is None:
                # Unreachable: an older copy may serve for thirty days, else nothing is fetched (RFC 9309 2.3.1.4).
                return None if age is not None and age < _ROBOTS_STALE else self._unreadable(answer, address, now)
            await self._tools.db(hosts.remember_robots, state.known.host, text, now)
            state.known = replace(state.known, robots=text, robots_at=now.timestamp())
            return None

    async def _robots_answer(self, address: str) -> Answer | Failure:
        """Ask for a robots.txt; at least five redirects are followed, permanent ones too (RFC 9309 2.3.1.2)."""
        answer = await self._tools.client.fetch(Request(address))
        for _ in range(5):
            if isinstance(answer, Failure) or answer.location is None:
                break
            answer = await self._tools.client.fetch(Request(answer.location))
        return answer

    def _unreadable(self, answer: Answer | Failure, address: str, now: datetime) -> Outcome:
        look = look_of(answer, address, 1)
        if isinstance(answer, Failure):
            return Broken(look=look, kind=answer.kind, message=answer.message)
        message = f"{address} answers {answer.status}: until it can be read, nothing of this host is fetched (RFC 9309)"
        wait = answer.header("retry-after")
        if wait is not None:
            return Throttled(look=look, until=retry_after(wait, now, self._tools.max_wait))
        return Broken(look=look, kind="robots_unreachable", message=message)


def _robots_of(answer: Answer | Failure) -> str | None:
    """The robots text that an answer stands for; None where it stands for nothing yet."""
    if isinstance(answer, Failure) or answer.status == 429 or answer.status >= 500:
        return None
    return rules_for_status(answer.status, answer.body.decode("utf-8", "replace"))


def _nothing(url: str, now: datetime) -> Failure:
    from recrawl.model.fetched import FailureKind

    return Failure(url, FailureKind.ROBOTS, "", now, 0.0)

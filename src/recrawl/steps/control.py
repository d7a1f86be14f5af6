"""Whether a host answers well: what tells a page that is gone from a host that is not itself.

A deploy, a lost backend, a wrong route: for hours a site may answer 404 to everything. So a 404 counts only between
two good answers of its host, one shortly before and one after. Ordinary looks at other pages are such answers; where
there is none, a page that is known to be there is asked for: one for the host and the moment, however many pages wait.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from recrawl.model.outcome import Broken, Changed, Gone, Outcome, Throttled, Unchanged
from recrawl.model.work import PageState, PageView
from recrawl.steps.tools import Tools
from recrawl.store.control import pages_of_host

_BEFORE = timedelta(minutes=5)
"""How long before a 404 its host may have answered well."""
_SULK = timedelta(seconds=15)
"""How long a host that did not answer well is not asked again."""
_TRIES = 3  # pages that must answer badly before the host counts as not itself: one of them may be gone indeed


class Look(Protocol):
    """One look at a page of a host, whatever comes of it; `forced` goes without validators."""

    async def __call__(self, page: PageView, host: str, *, forced: bool = False) -> Outcome: ...


@dataclass(slots=True)
class _Host:
    good_at: datetime | None = None  # when the last good answer was asked for
    bad_at: datetime | None = None
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Control:
    """What this process knows of how hosts answer."""

    def __init__(self, tools: Tools, look: Look) -> None:
        self._tools = tools
        self._look = look
        self._hosts: defaultdict[str, _Host] = defaultdict(_Host)

    async def look(self, page: PageView, host: str, *, forced: bool = False) -> Outcome:
        """Look at a page. What is not found is `Gone` only beside good answers of its host, else `Broken`.

        Where no good answer came before it, the page is asked for once more after the one that follows it.
        """
        state = self._hosts[host]
        requests = 0
        for last in (False, True):
            now = self._tools.clock.now()
            before = state.good_at is not None and now - state.good_at <= _BEFORE
            found = await self._noted(page, host, forced=forced)
            requests += found.look.requests
            if isinstance(found, Gone) and _can_be_lost(page):
                doubt, asked = await self._doubt(page, host, found)
                requests += asked
                if doubt is None and not before:
                    if not last:
                        continue
                    doubt = _unvouched(found, host)
                found = doubt or found
            break
        return replace(found, look=replace(found.look, requests=requests))

    async def _noted(self, page: PageView, host: str, *, forced: bool = False) -> Outcome:
        began = self._tools.clock.now()
        found = await self._look(page, host, forced=forced)
        if page.status is PageState.ACTIVE and isinstance(found, Unchanged | Changed):
            state = self._hosts[host]
            state.good_at = max(began, state.good_at or began)
            state.bad_at = None
        return found

    async def _doubt(self, page: PageView, host: str, gone: Gone) -> tuple[Outcome | None, int]:
        """What speaks against believing a `Gone`, after another page of the host was asked for; and the requests."""
        state, tools = self._hosts[host], self._tools
        since = tools.clock.now()
        requests = 0
        async with state.asking:
            if state.good_at is not None and state.good_at >= since:
                return None, 0
            if state.bad_at is not None and tools.clock.now() - state.bad_at < _SULK:
                return _unvouched(gone, host), 0
            draw = tools.chance.random()
            others = await tools.db(pages_of_host, tools.source.name, host, most=_TRIES + 1, draw=draw)
            for other in [other for other in others if other.id != page.id][:_TRIES]:
                found = await self._noted(other, host)
                requests += found.look.requests
                if isinstance(found, Unchanged | Changed):
                    return None, requests
                if isinstance(found, Throttled):
                    return replace(found, look=gone.look), requests
            state.good_at, state.bad_at = None, tools.clock.now()
            return _unvouched(gone, host), requests


def _can_be_lost(page: PageView) -> bool:
    """A page that never read well, or is deleted already, has nothing that a wrong answer could take."""
    return page.status is PageState.SUSPECTED or (page.version > 0 and page.status is not PageState.DELETED)


def _unvouched(gone: Gone, host: str) -> Broken:
    look = gone.look
    message = f"the server answers {look.status} for {look.url}, and {host} answers no other page well just now"
    return Broken(look=look, kind="unvouched", message=message)

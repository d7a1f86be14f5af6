"""What a worker learns of its source on the way: the look of good pages, and how far hints and validators are true.

Held in memory and added to the store in parts, so that no page costs a write; a part that a crash takes along is
learned again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from recrawl.decide import template, trust
from recrawl.decide.profile import Profile
from recrawl.decide.trust import Subject
from recrawl.model.signals import Signals
from recrawl.store import profiles
from recrawl.store import trust as store_trust

if TYPE_CHECKING:
    from recrawl.steps.tools import Tools

_PART = 200  # looks after which what was learned is written
_MOST_PRINTS = 4_096
_FEW = 3


@dataclass(slots=True)
class Experience:
    """What is known of one source, with what this worker has learned since it was last written."""

    profile: Profile = field(default_factory=Profile)
    rebuilding: bool = False

    _learned: Profile = field(default_factory=Profile)
    _returned: set[int] = field(default_factory=set)
    _again: set[int] = field(default_factory=set)
    _moved: deque[bool] = field(default_factory=lambda: deque(maxlen=template.WINDOW))
    _prints: dict[str, set[int]] = field(default_factory=dict)
    _doubted: set[tuple[str, str]] = field(default_factory=set)
    _checks: dict[tuple[Subject, str], list[bool]] = field(default_factory=dict)
    _hints: dict[int, bool] = field(default_factory=dict)
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _loaded: bool = False

    async def load(self, tools: Tools) -> None:
        """Read what is known, once."""
        async with self._loading:
            if not self._loaded:
                self.profile, self.rebuilding = await tools.db(profiles.profile, tools.source.name)
                await self._load_trust(tools)
                self._loaded = True

    async def _load_trust(self, tools: Tools) -> None:
        found = await tools.db(store_trust.trust_of, tools.source.name)
        self._doubted = {(one.kind, one.name) for one in found if not one.believed}
        hints_believed = not any(kind == Subject.HINTS for kind, _ in self._doubted)
        tools.rules = replace(tools.rules, hints_believed=hints_believed)

    # Pages

    def twins(self, page: int, signals: Signals) -> int:
        """Other pages on which this worker met the same short text, at most a few."""
        if signals.print is None:
            return 0
        met = self._prints.setdefault(signals.print, set())
        others = len(met - {page})
        if len(met) < _FEW:
            met.add(page)
        while len(self._prints) > _MOST_PRINTS:
            del self._prints[next(iter(self._prints))]
        return others

    def redirected(self, target: str, page: int) -> list[int]:
        """Note where a page was sent to; other pages that were sent there, at most a few."""
        self._learned.redirected(target, page)
        return self.profile.redirected(target, page)

    def look_again(self, pages: Iterable[int]) -> None:
        """Pages that were believed and should not have been are due once their outcomes are written."""
        self._again.update(pages)

    def good(self, page: int, signals: Signals | None, *, away: bool) -> None:
        """A page is the page. `away`: it came from another address."""
        if signals is not None:
            self.profile.learn(signals)
            self._learned.learn(signals)
        if not away and self.profile.returned(page):
            self._learned.returned(page)
            self._returned.add(page)

    def looked(self, *, moved: bool) -> None:
        """A good look at a known page, and whether its structure is another."""
        self._moved.append(moved)
        self._learned.looks += 1
        self._learned.moved += moved
        now = self._rebuilt()
        self.rebuilding = self.rebuilding if now is None else now

    def _rebuilt(self, *, at_end: bool = False) -> bool | None:
        known = self.profile
        return template.rebuilt(self._moved, looks=known.looks, usual=known.moved, at_end=at_end)

    # Trust

    def validators_believed(self, host: str) -> bool:
        return (Subject.VALIDATORS, host) not in self._doubted

    def checked_validators(self, host: str, *, true: bool) -> None:
        """A 304 of a host was looked into."""
        self._checks.setdefault((Subject.VALIDATORS, host), []).append(true)

    def checked_hint(self, page: int, *, true: bool) -> None:
        """An unconditional look at a page whose hint stayed."""
        self._hints[page] = true

    # The store

    async def keep(self, tools: Tools, *, at_end: bool = False) -> None:
        """Write what was learned, when it is enough to be worth it or at the end."""
        size = self._learned.pages + self._learned.looks + len(self._hints)
        if not self._loaded or (size < _PART and not at_end):
            return
        await self._keep_profile(tools, at_end=at_end)
        await self._keep_checks(tools)
        if at_end and self._again:
            again, self._again = self._again, set()
            await tools.db(profiles.look_again, again, tools.clock.now())

    async def _keep_profile(self, tools: Tools, *, at_end: bool) -> None:
        learned, self._learned = self._learned, Profile()
        returned, self._returned = self._returned, set()
        if learned != Profile() or returned:
            await tools.db(
                profiles.add,
                tools.source.name,
                learned,
                tools.clock.now(),
                returned=returned,
                rebuilt=self._rebuilt(at_end=at_end),
                told={"looks": len(self._moved), "moved": sum(self._moved)},
            )

    async def _keep_checks(self, tools: Tools) -> None:
        checks, self._checks = self._checks, {}
        hints, self._hints = self._hints, {}
        source, now = tools.source, tools.clock.now()
        if hints:
            streams = await tools.db(store_trust.streams_of, source.name, hints)
            for page, true in hints.items():
                for stream in streams.get(page, ()):
                    checks.setdefault((Subject.HINTS, stream), []).append(true)
        if checks:
            soon = now + timedelta(seconds=tools.rules.shortest)
            await tools.db(store_trust.note, source.name, checks, now=now, soon=soon)
            await self._load_trust(tools)


def sends_validators(experience: Experience, host: str, chance: Callable[[], float]) -> bool:
    """Whether a visit sends validators: of a host that is not believed now and then, to see whether it may be again."""
    return experience.validators_believed(host) or chance() < trust.STILL_ASKED


def looks_into(experience: Experience, host: str, share: float, chance: Callable[[], float]) -> bool:
    """Whether a 304 is checked by a second request without validators."""
    return not experience.validators_believed(host) or (share > 0 and chance() < share)

"""Keeping within a budget: requests are taken out of it some at a time, before they are made."""

from __future__ import annotations

import asyncio
from datetime import datetime

from recrawl.decide.budget import Limit, block
from recrawl.steps.tools import Tools
from recrawl.store import budgets


class Purse:
    """The requests that this process may still make out of the budgets of one scope; without limits, any number."""

    def __init__(self, tools: Tools, scope: str, limits: tuple[Limit, ...]) -> None:
        self._tools = tools
        self._scope = scope
        self._limits = limits
        self._in_hand = 0
        self._taken_at: datetime | None = None
        self._filling = asyncio.Lock()
        self.empty_until: datetime | None = None
        """When there is more, since the last request that was refused."""

    async def take(self) -> datetime | None:
        """Take one request out. None: it may be made; else when there is one again."""
        if not self._limits:
            return None
        async with self._filling:
            now = self._tools.clock.now()
            if self.empty_until is not None and self.empty_until > now:
                return self.empty_until
            if self._in_hand == 0 or self._stale(now):
                spending = await self._tools.db(budgets.spend, self._scope, self._limits, block(self._limits), now)
                self._in_hand, self._taken_at, self.empty_until = spending.granted, now, spending.until
            if self._in_hand == 0:
                return self.empty_until
            self._in_hand -= 1
            return None

    async def left(self, count: int) -> int:
        """How many of `count` requests the budgets still allow."""
        if not self._limits:
            return count
        async with self._filling:
            left = await self._tools.db(budgets.left, self._scope, self._limits, count, self._tools.clock.now())
            if not self._in_hand:
                self.empty_until = left.until
            return min(count, left.granted + self._in_hand)

    def _stale(self, now: datetime) -> bool:
        """What was taken in an hour or day that is over counts for that one."""
        taken = self._taken_at
        return taken is not None and any(
            limit.began(taken.timestamp()) != limit.began(now.timestamp()) for limit in self._limits
        )

"""Time, as one object: everything that waits or asks the hour is given it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class Clock:
    """The machine's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds)


class VirtualClock(Clock):
    """A clock whose waits are jumps: for tests of hours and days. It never goes back."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.ahead += timedelta(seconds=seconds)
        await asyncio.sleep(0)

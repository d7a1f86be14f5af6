"""What the endpoints work with. `run.serve` builds it; nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Concatenate, ParamSpec, TypeVar

from fastapi import Depends, Request

from recrawl.declare import Source
from recrawl.declare.checks import suggestion
from recrawl.service.bodies import Bounds
from recrawl.service.intake import Intake
from recrawl.service.problems import Problem
from recrawl.store import tokens
from recrawl.store.database import Store

P = ParamSpec("P")
T = TypeVar("T")


_ASKED_AGAIN = timedelta(seconds=1)


@dataclass(slots=True)
class Desk:
    """The rim of the service. `open` tells that there was no token, so that none is asked for: only on a loopback
    address, and until the first one is made."""

    store: Store
    sources: Mapping[str, Source]
    intake: Intake
    now: Callable[[], datetime]
    open: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    _asked_at: datetime | None = None

    async def is_open(self) -> bool:
        """Whether anyone may ask; a token that was made meanwhile counts after a second."""
        now = self.now()
        if self.open and (self._asked_at is None or now - self._asked_at >= _ASKED_AGAIN):
            self._asked_at = now
            self.open = not await self.db(tokens.any_valid, now)
        return self.open

    async def db(self, verb: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb of the store in a thread of its own."""
        return await asyncio.to_thread(verb, self.store, *args, **kwargs)

    def source(self, name: str) -> Source:
        """The declared source of this name. Raises Problem (404) that names one like it."""
        found = self.sources.get(name)
        if found is None:
            raise Problem(404, f"{name[:64]!r} is no source here", action=suggestion(name, list(self.sources)))
        return found


async def _desk(request: Request) -> Desk:
    found: Desk = request.app.state.desk
    return found


TheDesk = Annotated[Desk, Depends(_desk)]

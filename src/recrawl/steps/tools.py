"""What the steps work with. `run.wire` builds it; nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from recrawl.decide.case import Rules
from recrawl.declare import Source
from recrawl.declare.policies import seconds
from recrawl.fetch.http import HttpClient
from recrawl.steps.experience import Experience
from recrawl.steps.keys import Keyring
from recrawl.store.database import Store

P = ParamSpec("P")
T = TypeVar("T")


class Clock(Protocol):
    """Time, as the steps see it."""

    def now(self) -> datetime: ...

    async def sleep(self, seconds: float) -> None: ...


@dataclass(slots=True)
class Tools:
    """The rim of the program: database, network, time, chance.

    The store is called in `writer`, a single thread, so that one process is one writer; `parsers` reads pages in
    processes of their own where the user asked for it.
    """

    source: Source
    store: Store
    client: HttpClient
    clock: Clock
    chance: Random
    owner: str
    writer: Executor
    parsers: Executor | None = None
    concurrency: int = 4
    delay: float = 0.25
    every: float | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    full: bool = False  # read everything now, whenever it was read last
    keys: Keyring = field(init=False)
    rules: Rules = field(init=False)
    max_wait: float = field(init=False)
    task_life: timedelta = field(init=False)
    experience: Experience = field(default_factory=Experience)

    def __post_init__(self) -> None:
        source = self.source
        self.keys = Keyring(source, self.secrets)
        self.max_wait = seconds(source.max_wait)
        self.task_life = timedelta(seconds=seconds(source.max_age))
        self.rules = Rules(
            order=source.order,
            max_attempts=source.max_attempts,
            shortest=seconds(source.revisit.min),
            longest=seconds(source.revisit.max),
            reader_hash=source.reader_hash,
            confirm_after=source.deletion.confirm_after,
            confirm_gap=seconds(source.deletion.confirm_gap),
        )

    async def db(self, verb: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb of the store in the writer's thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.writer, lambda: verb(self.store, *args, **kwargs))


Notice = Callable[[str], None]
"""Told, in one sentence, what a user may want to know while it happens."""

"""From settings to objects: the one place where the parts of the program are put together."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from pydantic_settings import BaseSettings, SettingsConfigDict

from recrawl.declare import Source
from recrawl.declare.policies import seconds
from recrawl.fetch.guard import AddressRule
from recrawl.fetch.http import HttpClient
from recrawl.run.clock import Clock, VirtualClock
from recrawl.run.engine import Engine, Errand, Result
from recrawl.run.owner import own_name
from recrawl.run.progress import Progress
from recrawl.steps import parsers
from recrawl.steps.keys import secrets_of
from recrawl.steps.tools import Tools
from recrawl.store import migrate
from recrawl.store.database import Store, open_store

DEFAULT_STORE = "recrawl.db"
SWITCH_SECONDS = 0.001
"""How long the reading thread may keep the interpreter from the writing one. The writer gives it up at every row, and
at Python's default of 5 ms waited longer for it than it worked: a third of the pages per second."""

# One for the process: between two runs, too, time never goes back.
_VIRTUAL = VirtualClock()


class Settings(BaseSettings):
    """What the environment says: RECRAWL_STORE, and for tests RECRAWL_CLOCK and RECRAWL_SEED."""

    model_config = SettingsConfigDict(env_prefix="RECRAWL_", extra="ignore")

    store: str = DEFAULT_STORE
    clock: Literal["", "virtual"] = ""
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A source, and the file or bare URL that declares it: parser processes load it from there."""

    source: Source
    origin: str


def store_at(address: str | None) -> Store:
    """Open the database that the command line, else the environment, else the working directory names."""
    return open_store(address or Settings().store)


def the_clock() -> Clock:
    """The clock of this process: the machine's, or for tests one whose waits are jumps."""
    return _VIRTUAL if Settings().clock == "virtual" else Clock()


@asynccontextmanager
async def tools_for(
    declared: Declared,
    store: Store,
    *,
    concurrency: int | None = None,
    delay: float | None = None,
    processes: int = 0,
    full: bool = False,
) -> AsyncIterator[Tools]:
    """Everything that the steps need for one source, closed again at the end."""
    settings = Settings()
    source = declared.source
    secrets = secrets_of(source, os.environ)
    clock = the_clock()
    at_once = concurrency or source.pace.concurrency
    writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recrawl-writer")
    pool = _parser_pool(declared, processes) if processes else None
    rule = AddressRule(allow_private=source.allow_private, hosts=source.named_hosts)
    try:
        async with HttpClient(now=clock.now, allow=rule, concurrency=max(100, at_once)) as client:
            yield Tools(
                source=source,
                store=store,
                client=client,
                clock=clock,
                chance=Random(settings.seed) if settings.seed is not None else Random(),
                owner=own_name(),
                writer=writer,
                parsers=pool,
                concurrency=at_once,
                delay=seconds(source.pace.delay) if delay is None else delay,
                secrets=secrets,
                full=full,
            )
    finally:
        writer.shutdown()
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _parser_pool(declared: Declared, processes: int) -> ProcessPoolExecutor:
    origin = declared.origin if "://" in declared.origin else str(Path(declared.origin).resolve())
    return ProcessPoolExecutor(
        max_workers=processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_in_parser,
        initargs=(origin, declared.source.name),
    )


def _in_parser(origin: str, name: str) -> None:
    # Ctrl-C reaches the whole group of processes; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parsers.prepare(origin, name)


async def sync_source(
    declared: Declared,
    store: Store,
    *,
    concurrency: int | None = None,
    delay: float | None = None,
    processes: int = 0,
    errand: Errand | None = None,
    full: bool = False,
    prepare: Callable[[Engine, Progress], None] = lambda _engine, _progress: None,
) -> Result:
    """Bring one source up to date, or run one errand over it; `full` reads everything where only changes are due.

    `prepare` is given the engine (to stop it) and its progress (to watch it).
    """
    migrate.ready(store)
    sys.setswitchinterval(SWITCH_SECONDS)
    async with tools_for(
        declared, store, concurrency=concurrency, delay=delay, processes=processes, full=full
    ) as tools:
        progress = Progress(declared.source.name)
        engine = Engine(tools, progress, errand)
        prepare(engine, progress)
        return await engine.run()

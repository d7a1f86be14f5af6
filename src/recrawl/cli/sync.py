"""`recrawl sync`: bring sources up to date, say how it goes, and end in an orderly way."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.surface import Exit, JsonOption, StoreOption, code_of, emit, err, tell
from recrawl.errors import RecrawlError, StoreUnavailable

if TYPE_CHECKING:
    from recrawl.cli.watch import Watch
    from recrawl.run.engine import Engine, Result
    from recrawl.run.progress import Progress
    from recrawl.run.wire import Declared
    from recrawl.store.database import Store

_WORST_FIRST = (Exit.INTERRUPTED, Exit.MISUSE, Exit.COULD_NOT, Exit.APPROVAL, Exit.FAILURES, Exit.GOOD)


def sync(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE|URL|FILE", help="Names in recrawl.toml, sites, or files that declare."),
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Requests at once to a host.")] = None,
    delay: Annotated[str | None, typer.Option(metavar="T", help="Between requests to a host: 0s, 500ms, 2s.")] = None,
    parsers: Annotated[int, typer.Option(min=0, help="Processes that read pages.")] = 0,
    full: Annotated[bool, typer.Option("--full", help="Read APIs whole, not only what changed.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Bring sources up to date: all of recrawl.toml, or those that are named.

    A site needs no declaration: `recrawl sync https://site.example`. Ctrl-C ends in an orderly way; the same command
    goes on where it stopped.
    """
    from recrawl.declare.policies import seconds
    from recrawl.operate.sync import named
    from recrawl.run.wire import store_at

    declared = named(what or [])
    pause = seconds(delay, place="--delay") if delay is not None else None
    opened = store_at(store)
    try:
        work = Work(opened, concurrency, pause, parsers, silent=json, full=full)
        code = asyncio.run(work.through(declared))
    finally:
        opened.close()
    if json:
        emit({"exit_code": code, "sources": work.told})
    raise typer.Exit(code)


@dataclass(slots=True)
class Work:
    """Sources synced one after the other, and what a signal does to them."""

    store: Store
    concurrency: int | None
    delay: float | None
    parsers: int
    silent: bool
    full: bool = False
    told: list[dict[str, object]] = field(default_factory=list)
    stopping: bool = False
    engine: Engine | None = None
    watch: Watch | None = None

    async def through(self, declared: list[Declared]) -> Exit:
        """All of them; the exit code is that of the one that ended worst."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError, RuntimeError):  # not on Windows, and not outside the main thread
                loop.add_signal_handler(number, self._stop)
        codes = []
        for one in declared:
            if self.stopping:
                break
            codes.append(await self._one(one))
        return next(code for code in _WORST_FIRST if code in codes or code is Exit.GOOD)

    async def _one(self, one: Declared) -> Exit:
        from recrawl.cli.summary import code_for, facts, show
        from recrawl.cli.watch import Watch
        from recrawl.run.wire import sync_source

        watch = self.watch = Watch(self.store, one.source.name, silent=self.silent)

        def prepare(engine: Engine, progress: Progress) -> None:
            self.engine, watch.counts = engine, progress
            if self.stopping:
                engine.stop()

        try:
            async with watch.shown():
                result: Result = await sync_source(
                    one,
                    self.store,
                    concurrency=self.concurrency,
                    delay=self.delay,
                    processes=self.parsers,
                    full=self.full,
                    prepare=prepare,
                )
        except StoreUnavailable:
            raise  # the next source needs the same database
        except RecrawlError as error:
            self._told_error(one, error)
            return code_of(error)
        waiting = await asyncio.to_thread(_open, self.store, one.source.name)
        self.told.append(facts(one.source.name, result, waiting))
        if not self.silent:
            show(one.source.name, result, waiting)
        return code_for(result)

    def _told_error(self, one: Declared, error: RecrawlError) -> None:
        body = {"error": error.problem, "place": error.place, "action": error.action}
        self.told.append({"source": one.source.name, "ending": "failed", **body})
        if not self.silent:
            tell(error, json=False)

    def _stop(self) -> None:
        if self.stopping:
            # Whoever asks twice wants it at once. Nothing is lost: what is held goes back when this process is gone.
            if self.watch is not None:
                self.watch.clear()
            for child in multiprocessing.active_children():
                child.terminate()
            os._exit(Exit.INTERRUPTED)
        self.stopping = True
        if not self.silent:
            err().print("\nEnding: what is under way is being written. Once more to end at once.")
        if self.engine is not None:
            self.engine.stop()


def _open(store: Store, source: str) -> int:
    from recrawl.store.queries import open_tasks

    return open_tasks(store, source)

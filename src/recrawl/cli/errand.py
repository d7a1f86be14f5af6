"""What the commands share that have an engine do one thing for an operator: progress, signals, exit codes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from recrawl.cli.surface import Exit, code_of, emit, known_store
from recrawl.cli.sync import Work
from recrawl.cli.watch import Watch
from recrawl.errors import RecrawlError, StoreUnavailable

if TYPE_CHECKING:
    from recrawl.run.engine import Engine
    from recrawl.run.progress import Progress
    from recrawl.run.wire import Declared
    from recrawl.store.database import Store

Prepare = Callable[["Engine", "Progress", int | None], None]
Perform = Callable[["Declared", "Store", Prepare], Awaitable[tuple[Exit, dict[str, object]]]]
"""Does it for one source, tells about it unless JSON is asked for, and gives the exit code and the facts."""


def perform(what: str, store: str | None, json: bool, doing: Perform, *, processes: int = 0) -> None:
    """Do it for the source, or for each source of the file, that `what` names; ends the command."""
    from recrawl.operate.sync import named

    declared = named([what])
    with known_store(store) as opened:
        work = Errands(opened, None, None, processes, silent=json, doing=doing)
        code = asyncio.run(work.through(declared))
    if json:
        emit({"exit_code": code, "sources": work.told})
    raise typer.Exit(code)


@dataclass(slots=True, kw_only=True)
class Errands(Work):
    doing: Perform

    async def _one(self, one: Declared) -> Exit:
        watch = self.watch = Watch(self.store, one.source.name, silent=self.silent)

        def prepare(engine: Engine, progress: Progress, total: int | None) -> None:
            self.engine, watch.counts, watch.total = engine, progress, total
            if self.stopping:
                engine.stop()

        try:
            async with watch.shown():
                code, facts = await self.doing(one, self.store, prepare)
        except StoreUnavailable:
            raise
        except RecrawlError as error:
            self._told_error(one, error)
            return code_of(error)
        self.told.append({"source": one.source.name} | facts)
        return code

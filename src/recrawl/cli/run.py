"""`recrawl run`: look after sources until Ctrl-C, and say how it goes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.surface import Exit, StoreOption

if TYPE_CHECKING:
    from recrawl.cli.board import Board
    from recrawl.run.schedule import Scheduler


def run(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE|URL|FILE", help="Names in recrawl.toml, sites, or files that declare."),
    ] = None,
    every: Annotated[
        str, typer.Option(metavar="T", help="Between two passes over a source that declares none: 15m, 1h, 1d.")
    ] = "1h",
    concurrency: Annotated[int | None, typer.Option(min=1, help="Requests at once to a host.")] = None,
    delay: Annotated[str | None, typer.Option(metavar="T", help="Between requests to a host: 0s, 500ms, 2s.")] = None,
    parsers: Annotated[int, typer.Option(min=0, help="Processes that read pages, for each source.")] = 0,
    store: StoreOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print what happens as lines of JSON.")] = False,
) -> None:
    """Bring sources up to date again and again, each when it is due: all of recrawl.toml, or those that are named.

    Ctrl-C ends it in an orderly way. Several of these at once share the work.
    """
    from recrawl.cli.board import Board
    from recrawl.declare.checks import at_least
    from recrawl.declare.policies import seconds
    from recrawl.operate.jobs import JOBS
    from recrawl.operate.sync import named
    from recrawl.run.schedule import Scheduler, Served
    from recrawl.run.wire import store_at, the_clock
    from recrawl.store import migrate

    declared = named(what or [])
    pause = seconds(delay, place="--delay") if delay is not None else None
    between = seconds(every, place="--every")
    at_least(between, 1, "--every")
    opened = store_at(store)
    try:
        migrate.ready(opened)
        served = [Served(one, opened, between, concurrency, pause, parsers) for one in declared]
        board = Board(opened, json=json)
        asyncio.run(_look_after(Scheduler(served, JOBS, the_clock(), board), board))
    finally:
        opened.close()
    raise typer.Exit(Exit.INTERRUPTED)


async def _look_after(scheduler: Scheduler, board: Board) -> None:
    loop = asyncio.get_running_loop()
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            # Whoever asks twice wants it at once. Nothing is lost: what is held goes back when this process is gone.
            for child in multiprocessing.active_children():
                child.terminate()
            os._exit(Exit.INTERRUPTED)
        asked = True
        board.ending()
        scheduler.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):  # not on Windows, and not outside the main thread
            loop.add_signal_handler(number, stop)
    async with board.shown():
        await scheduler.run()

"""`recrawl ingest`: records from a file, as a spider has written them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from recrawl.cli.surface import Exit, JsonOption, StoreOption, emit, err, out, safe
from recrawl.errors import Misuse

if TYPE_CHECKING:
    from recrawl.declare import Source
    from recrawl.operate.ingest import Reached
    from recrawl.store.inbox import Account

_LINE_AFTER = 15.0
_LINES = (
    ("new", "new"),
    ("changed", "changed"),
    ("duplicates", "duplicates: the same as is stored"),
    ("regressions", "older than what is stored"),
    ("dead", "not valid data"),
    ("waiting", "still waiting"),
)


def ingest(
    file: Annotated[
        str, typer.Argument(metavar="FILE.jsonl|-", help="One record a line; .gz, .zst too; - for a pipe.")
    ],
    source: Annotated[str, typer.Option("--source", help="A source of recrawl.toml, or a file that declares one.")],
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Lines that are kept together.")] = 500,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Take in a file of records: each line an object, or {"id", "url", "fetched_at", ..., "data": {...}}.

    The same command goes on where a run that was ended stopped, and takes nothing in twice.
    """
    from recrawl.operate.ingest import ingest as take_in
    from recrawl.run.wire import store_at
    from recrawl.store import migrate
    from recrawl.store.sources import standing

    declared = _source(source)
    opened = store_at(store)
    try:
        migrate.ready(opened)
        with _shown(file, silent=json) as told:
            account = take_in(opened, declared, None if file == "-" else Path(file), batch=batch, told=told)
        paused = standing(opened, declared.name).paused
    except KeyboardInterrupt:
        if not json:
            err().print("\nEnded. What was taken in is kept; the same command goes on behind it.")
        raise typer.Exit(Exit.INTERRUPTED) from None
    finally:
        opened.close()
    code = Exit.FAILURES if account.dead or account.waiting else Exit.GOOD
    if json:
        emit({"exit_code": code, "source": declared.name, "file": file, "counts": asdict(account)})
    else:
        _show(file, declared.name, account, paused=paused)
    raise typer.Exit(code)


def _source(name: str) -> Source:
    from recrawl.operate.sync import named

    found = named([name])
    if len(found) != 1:
        names = ", ".join(one.source.name for one in found)
        raise Misuse(f"{name} declares {len(found)} sources", place="--source", action=f"Name one of them: {names}.")
    return found[0].source


def _show(file: str, source: str, account: Account, *, paused: bool) -> None:
    console = out()
    console.print(f"{safe(source)}: {account.received:,} lines of {safe(file)}", style="bold")
    lines = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    lines.add_column(width=44, no_wrap=True)
    lines.add_column(justify="right")
    for name, words in _LINES:
        if count := getattr(account, name):
            lines.add_row(f"    {words}", f"{count:,}", style="yellow" if name == "dead" else None)
    console.print(lines)
    if account.dead:
        console.print(f"  What could not become data, and why: recrawl dead list --source {safe(source)}")
    if account.waiting and paused:
        console.print(f"  The source is paused: the rest waits for `recrawl resume {safe(source)}`.")
    elif account.waiting:
        console.print("  Another worker holds the rest; the same command tells what became of it.")


@contextmanager
def _shown(file: str, *, silent: bool) -> Iterator[Callable[[Reached], None]]:
    """A bar on a terminal, a plain line now and then elsewhere."""
    console = err()
    if silent:
        yield lambda _: None
    elif console.is_terminal:
        columns = (BarColumn(20), TextColumn("{task.fields[told]}", markup=False), TimeElapsedColumn())
        name = TextColumn("{task.description}", markup=False)
        with Progress(name, *columns, console=console, transient=True) as bar:
            line = bar.add_task(safe(Path(file).name), total=None, told="beginning")
            yield lambda reached: bar.update(
                line, completed=reached.read, total=reached.size, told=f"{reached.lines:,} lines"
            )
    else:
        yield _plain(file)


def _plain(file: str) -> Callable[[Reached], None]:
    said_at = time.monotonic()

    def told(reached: Reached) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= _LINE_AFTER:
            said_at = time.monotonic()
            share = f", {reached.read * 100 // reached.size} %" if reached.size else ""
            err().print(f"{safe(file)}: {reached.lines:,} lines{share}")

    return told

"""`recrawl changes`: the feed of versions."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from recrawl.cli.lookup import source_named
from recrawl.cli.surface import Exit, JsonOption, StoreOption, known_store, out, safe

if TYPE_CHECKING:
    from recrawl.store.changes import Change
    from recrawl.store.database import Store

_GLANCE = 1.0


def changes(
    source: Annotated[str | None, typer.Argument(help="Only this source.")] = None,
    after: Annotated[str | None, typer.Option("--after", metavar="POS", help="Go on after this position.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more, until Ctrl-C.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show versions in the order in which they were committed. With --json one line each, with its position.

    Whoever remembers the position of the last line goes on there with --after, and misses nothing.
    """
    with known_store(store) as opened:
        if source is not None:
            source_named(opened, source)
        try:
            for change in _feed(opened, after, source, follow):
                _show(change, json)
        except KeyboardInterrupt:
            raise typer.Exit(Exit.INTERRUPTED) from None


def _feed(store: Store, after: str | None, source: str | None, follow: bool) -> Iterator[Change]:
    from recrawl.store import changes as feed

    while True:
        part = feed.changes(store, after, source=source)
        yield from part.rows
        after = part.position
        if not part.more:
            sys.stdout.flush()
            if not follow:
                return
            time.sleep(_GLANCE)


def _show(change: Change, json: bool) -> None:
    if json:
        sys.stdout.write(orjson.dumps(asdict(change), option=orjson.OPT_APPEND_NEWLINE).decode())
        return
    what = f"{change.kind:8} version {change.version:<4} {safe(change.url)}"
    out().print(f"{change.position}  {change.fetched_at:%Y-%m-%d %H:%M:%S} UTC  {safe(change.source)}  {what}")

"""Showing how work without an engine gets on: a moving line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recrawl.cli.surface import err

_LINE_AFTER = 15.0


@contextmanager
def counting(*, silent: bool) -> Iterator[Callable[[str], None]]:
    """A function that is told, as often as one likes, how far the work has come."""
    console = err()
    told = time.monotonic()

    def later(text: str) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= _LINE_AFTER:
            told = now
            console.print(text)

    if silent:
        yield lambda _: None
    elif console.is_terminal:
        with console.status("") as status:
            yield status.update
    else:
        yield later

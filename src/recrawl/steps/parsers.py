"""Reading pages where the user wants it done: in this process, or in processes of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from recrawl.declare import Source, from_url
from recrawl.declare.load import load
from recrawl.model.fetched import Page
from recrawl.steps.read import Reading
from recrawl.steps.read import read as read_here
from recrawl.steps.tools import Tools

# Of a parser process: classes and functions of users do not travel, so each process loads the declaration by itself.
_source: Source | None = None


def prepare(origin: str, name: str) -> None:
    """Load the source called `name` from a file or a bare URL; runs once in each parser process."""
    global _source
    declared = [from_url(origin)] if "://" in origin else load(Path(origin))
    _source = next(source for source in declared if source.name == name)


def _read_there(page: Page) -> Reading:
    assert _source is not None
    return read_here(page, _source)


async def read(page: Page, tools: Tools) -> Reading:
    """Read one page."""
    if tools.parsers is None:
        return read_here(page, tools.source)
    return await asyncio.get_running_loop().run_in_executor(tools.parsers, _read_there, page)

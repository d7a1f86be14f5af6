"""URLs made of another source's rows.

The rows are read in the order of their keys and cut into documents of some hundred where a key's own hash says so:
thus a row that comes or goes changes one document and no other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from zlib import crc32

import orjson

from recrawl.declare import Derived
from recrawl.declare.finding import fields_of
from recrawl.discover.fill import filled
from recrawl.errors import Misuse
from recrawl.steps.documents import Stream, Trouble
from recrawl.steps.lists import take_list
from recrawl.store import derived

_READ = 1000
_USUAL = 500
_MOST = 2500


async def walk_rows(stream: Stream, finder: Derived) -> None:
    """Take in the pages that the other source's rows stand for; a source, table or column that is not there is told."""
    try:
        async for name, urls in _documents(stream, finder):
            await take_list(stream, name, "rows", urls)
    except Misuse as error:
        message = f"{error.problem}. {error.action}"
        stream.troubles.append(Trouble(finder.url, "no_rows", message, again=False))


async def _documents(stream: Stream, finder: Derived) -> AsyncIterator[tuple[str, list[str]]]:
    """The documents: each with its name, which is the key of the row before it, and its URLs."""
    start: tuple[Any, ...] | None = None
    urls: list[str] = []
    count = 0
    async for key, url in _urls(stream, finder):
        urls += [url] if url is not None else []
        count += 1
        if count == _MOST or crc32(_text(key)) % _USUAL == 0:
            yield _name(finder, start), urls
            start, urls, count = key, [], 0
    if count or start is None:
        yield _name(finder, start), urls


def _name(finder: Derived, start: tuple[Any, ...] | None) -> str:
    return f"rows:{finder.source}:{'' if start is None else _text(start).decode()}"


def _text(key: tuple[Any, ...]) -> bytes:
    return orjson.dumps(key)


async def _urls(stream: Stream, finder: Derived) -> AsyncIterator[tuple[tuple[Any, ...], str | None]]:
    """The keys of all rows in order, with the URL that each stands for; None: it stands for none."""
    tools = stream.tools
    columns, where = fields_of(finder.url), dict(finder.where or {})
    place = f"source.{stream.task.source}.find"
    rows = await tools.db(derived.rows_of, str(finder.source), finder.table, [*columns, *where], place=place)
    after: tuple[Any, ...] | None = None
    while found := await tools.db(derived.next_rows, rows, columns, where, after=after, most=_READ):
        for row in found:
            url = filled(finder.url, row.values)
            if url is None and None not in row.values.values():
                stream.count(bad_urls=1)
            yield row.key, url
        after = found[-1].key

"""recrawl behind a Scrapy spider: a pipeline that stores its items, and a middleware that spares it requests.

Both are told by the project's settings what to store and where: RECRAWL_SOURCE (a name in recrawl.toml, or a file that
declares one source) and RECRAWL_STORE (default: as for the command line). They need Scrapy's default
reactor, asyncio's.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Self
from uuid import UUID

import orjson
from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from recrawl.decide.envelope import ENVELOPE
from recrawl.decide.pushes import says_no_more
from recrawl.declare import Source
from recrawl.errors import Misuse
from recrawl.model.push import Backlog, Push
from recrawl.operate.sync import named
from recrawl.run.inbox import Inbox
from recrawl.run.wire import store_at, the_clock
from recrawl.store import migrate
from recrawl.store.accept import accept
from recrawl.store.database import Store
from recrawl.store.known import known

HINT = "recrawl"
"""The key of `Request.meta` under which a spider says what it knows of the record behind a request: a dict with `id`,
and `updated` (a time) or `version` (a text)."""

_TOGETHER = 500  # items that one transaction takes


class RecrawlPipeline:
    """An item pipeline. An item that has passed it is kept, whatever becomes of the process: Scrapy counts it as
    scraped after the commit. Items that arrive during one commit share the next. What they come to (new, changed,
    duplicates, regressions, dead) stands in the crawl's statistics under `recrawl/`."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None  # components are made after it
        self._stats = crawler.stats
        self._source, self._store = _opened(crawler)
        self._inbox = Inbox(self._store, {self._source.name: self._source}, the_clock().now, self._count)
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def open_spider(self) -> None:
        await asyncio.to_thread(self._inbox.prepare)

    async def process_item(self, item: Any) -> Any:
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((_line(ItemAdapter(item).asdict()), kept))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await kept
        return item

    async def close_spider(self) -> None:
        if self._writer is not None:
            await self._writer
        await asyncio.to_thread(self._clean_all)
        self._store.close()

    async def _write(self) -> None:
        while self._waiting:
            part, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
            try:
                await asyncio.to_thread(self._keep, tuple(line for line, _ in part))
            except Exception as error:  # each item that waits for it tells
                for kept in _awaited(part):
                    kept.set_exception(error)
            else:
                for kept in _awaited(part):
                    kept.set_result(None)

    def _keep(self, lines: tuple[bytes, ...]) -> None:
        while True:
            try:
                accept(self._store, Push(source=self._source.name, lines=lines), now=the_clock().now())
            except Backlog:
                if not self._inbox.take():
                    raise
            else:
                return

    def _clean_all(self) -> None:
        while self._inbox.take():
            pass

    def _count(self, counts: Counter[str]) -> None:
        for name, count in counts.items():
            if count:
                self._stats.inc_value(f"recrawl/{name}", count)


class SkipUnchanged:
    """A spider middleware: a request whose record is stored already, and of which the spider says that nothing is newer
    than what is stored, is not made. The spider says so by `Request.meta["recrawl"]`; other requests pass."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None  # components are made after it
        self._stats = crawler.stats
        self._source, self._store = _opened(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in self._left(start):
            yield one

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in self._left(result):
            yield one

    async def _left(self, given: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """What is given, but for requests that are spared. Hinted ones are looked up many at a time, and come last."""
        hinted: list[Request] = []
        async for one in given:
            if isinstance(one, Request) and HINT in one.meta:
                hinted.append(one)
            else:
                yield one
            if len(hinted) >= _TOGETHER:
                for left in await asyncio.to_thread(self._sift, hinted):
                    yield left
                hinted = []
        if hinted:
            for left in await asyncio.to_thread(self._sift, hinted):
                yield left

    def _sift(self, requests: list[Request]) -> Iterable[Request]:
        hints = [_hint(request) for request in requests]
        stored = known(self._store, self._source.name, [page for page, _, _ in hints])
        left, now = [], the_clock().now()
        for request, (page, version, updated) in zip(requests, hints, strict=True):
            held = stored.get(page)
            if held is None or not says_no_more((version, updated), (held.version, held.updated), now):
                left.append(request)
        if len(left) < len(requests):
            self._stats.inc_value("recrawl/skipped", len(requests) - len(left))
        return left


def _awaited(part: Iterable[tuple[bytes, asyncio.Future[None]]]) -> list[asyncio.Future[None]]:
    return [kept for _, kept in part if not kept.done()]


def _opened(crawler: Crawler) -> tuple[Source, Store]:
    name = crawler.settings.get("RECRAWL_SOURCE")
    if not name:
        action = "Write RECRAWL_SOURCE = 'name', a source of recrawl.toml, or a file that declares one."
        raise Misuse("no source is named", place="the settings of Scrapy", action=action)
    found = named([name])
    if len(found) != 1:
        names = ", ".join(one.source.name for one in found)
        raise Misuse(f"{name} declares {len(found)} sources", place="RECRAWL_SOURCE", action=f"Name one: {names}.")
    store = store_at(crawler.settings.get("RECRAWL_STORE"))
    migrate.ready(store)
    return found[0].source, store


def _line(item: dict[str, Any]) -> bytes:
    """An item as it is pushed, with the time it was found at, from which "3 hours ago" is counted."""
    enveloped = "data" in item and item.keys() <= ENVELOPE
    pushed = item if enveloped else {"data": item}
    told = {"fetched_at": the_clock().now(), **pushed}
    try:
        return orjson.dumps(told, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:  # integers beyond 64 bits, lone surrogates
        return json.dumps(told, default=_plain).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON: turn it into a text in the spider")


def _hint(request: Request) -> tuple[str, str | None, datetime | None]:
    """What the spider says of the record behind a request. A value that the site spoilt says nothing."""
    hint = request.meta[HINT]
    if not isinstance(hint, dict) or not hint.keys() <= {"id", "updated", "version"}:
        raise Misuse(
            f"{hint!r:.80} says nothing of a record",
            place=f"meta[{HINT!r}] of the request for {request.url}",
            action="Write {'id': ..., 'updated': ...} or {'id': ..., 'version': ...}.",
        )
    updated, version = hint.get("updated"), hint.get("version")
    if isinstance(updated, str):
        try:
            updated = datetime.fromisoformat(updated)
        except ValueError:
            updated = None
    if not isinstance(updated, datetime):
        updated = None
    elif updated.tzinfo is None:
        updated = updated.replace(tzinfo=UTC)
    return str(hint.get("id", "")), None if version is None else str(version), updated

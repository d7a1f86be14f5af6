"""Discovery alone, without the visits that follow it, and sites whose listings move while they are read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from datetime import UTC, datetime
from random import Random
from typing import Any, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import text

from recrawl.declare import Source
from recrawl.fetch.http import HttpClient
from recrawl.model.fetched import Answer, Request
from recrawl.run.wire import Declared, tools_for
from recrawl.steps.courtesy import Courtesy
from recrawl.steps.discover import discover, streams_of
from recrawl.steps.documents import LEASE, Trouble
from recrawl.steps.tools import Tools
from recrawl.store import claim, close, cycle, recordtables, sources
from recrawl.store.database import Store
from recrawl.store.leases import release

T = TypeVar("T")


def find(declared: Source, store: Store, network: InProcess | None = None) -> list[Trouble]:
    """One cycle of discovery from its begin to its close, and what went wrong on the way. What is found stays to be
    visited. With `network`, that answers in place of servers."""

    async def work() -> list[Trouble]:
        async with tools_for(Declared(declared, "test"), store) as tools:
            if network is not None:
                tools.client = cast(HttpClient, network)
                tools.writer = _AtOnce()
            return await _cycle(tools)

    return asyncio.run(work())


async def _cycle(tools: Tools) -> list[Trouble]:
    source, store = tools.source, tools.store
    sources.register(store, source.name, source.spec_hash, source.reader_hash)
    recordtables.ensure(store, source.records)
    opened = cycle.begin(store, source.name, await streams_of(tools), tools.clock.now())
    troubles: list[Trouble] = []
    courtesy = Courtesy(tools)
    now = tools.clock.now()
    # They come before every visit.
    tasks = claim.claim(
        store,
        len(source.finders),
        specs={source.name: source.spec_hash},
        owner=tools.owner,
        now=now,
        until=now + LEASE,
    )
    try:
        for task in tasks:
            troubles += await discover(task, tools, courtesy, lambda _: None)
    except BaseException:
        release(store, [(task.id, task.token) for task in tasks])
        raise
    close.close(store, source.name, opened.id, source.deletion, tools.clock.now())
    return troubles


def found(store: Store, source: str) -> set[str]:
    """The URLs of all pages that discovery has ever found."""
    return _urls(store, "SELECT url FROM pages WHERE source = :source", source)


def listed(store: Store, source: str) -> set[str]:
    """The URLs of pages that a document lists which was read in the last cycle."""
    return _urls(
        store,
        "SELECT p.url FROM pages p JOIN members m ON m.page = p.id JOIN documents d ON d.id = m.document "
        "WHERE p.source = :source AND m.dropped IS NULL "
        "AND d.cycle = (SELECT max(id) FROM cycles WHERE source = :source)",
        source,
    )


def missed(store: Store, source: str) -> set[str]:
    """The URLs of pages that were found once, and that no document of the last cycle lists."""
    return found(store, source) - listed(store, source)


def ended_whole(store: Store, source: str) -> bool:
    """Whether the last cycle reached the end of its one stream, so that absence means something."""
    with store.read() as connection:
        row = connection.execute(
            text(
                "SELECT c.exhaustive, c.ended_cycle = (SELECT max(id) FROM cycles WHERE source = :source) AS ended "
                "FROM cursors c WHERE c.source = :source"
            ),
            {"source": source},
        ).one()
        return bool(row.exhaustive) and bool(row.ended)


def _urls(store: Store, sql: str, source: str) -> set[str]:
    with store.read() as connection:
        return set(connection.execute(text(sql), {"source": source}).scalars())


class MovingList:
    """A listing, newest first, in which items come and go between any two requests, as chance has it.

    `rate` is how many items are added, and how many taken out, per request on average; `bumps` how many move to the
    top. `there` are the items that have been on the list since `watch`.
    """

    def __init__(self, chance: Random, count: int, per_page: int, *, rate: float = 0.0, bumps: float = 0.0) -> None:
        self.chance = chance
        self.per_page = per_page
        self.rate, self.bumps = rate, bumps
        self.items = list(range(count))[::-1]
        self.next = count
        self.there: set[int] = set()
        self.requests = 0
        self.on_request: Callable[[int], None] = lambda _: None

    def watch(self) -> None:
        self.there = set(self.items)

    def move(self, times: int = 1) -> None:
        for _ in range(times):
            if self.chance.random() < self.rate:
                self.items.insert(0, self.next)
                self.next += 1
            if self.items and self.chance.random() < self.rate:
                self.there.discard(self.items.pop(self.chance.randrange(len(self.items))))
            if self.items and self.chance.random() < self.bumps:
                self.items.insert(0, self.items.pop(self.chance.randrange(len(self.items))))

    def page(self, number: int) -> tuple[int, str]:
        """The answer for one page; then the list moves."""
        self.requests += 1
        self.on_request(self.requests)
        start = (number - 1) * self.per_page
        part = self.items[start : start + self.per_page]
        more = f'<a rel=next href="?page={number + 1}">next</a>' if start + self.per_page < len(self.items) else ""
        rows = "".join(f"<li><a href=/item/{item}>{item}</a>" for item in part)
        self.move()
        return (200, f"<!doctype html><ul>{rows}</ul>{more}") if part or number == 1 else (404, "no such page")


class _AtOnce(Executor):
    """Calls what it is given then and there: nothing waits for a thread."""

    def submit(self, call: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(call(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


class InProcess:
    """A listing at `/list?page=N`, answered in this process: what a client gives back, without a network."""

    def __init__(self, listing: MovingList) -> None:
        self._listing = listing

    async def fetch(self, request: Request, *, before_hop: object = None) -> Answer:
        asked = urlsplit(request.url)
        status, body = 404, "not here"
        if asked.path == "/list":
            status, body = self._listing.page(int(parse_qs(asked.query).get("page", ["1"])[0]))
        headers = (("content-type", "text/html; charset=utf-8"),)
        return Answer(request.url, request.url, status, headers, body.encode(), datetime.now(UTC), 0.0)

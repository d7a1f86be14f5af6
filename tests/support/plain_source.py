"""The declaration of the plain site, and one sync of it: what crash tests kill."""

from __future__ import annotations

import asyncio
import os
import signal

from sqlalchemy import event

from recrawl.declare import Record, Sitemap, Source, css
from recrawl.run.wire import Declared, store_at, sync_source
from recrawl.store.database import Store


class Part(Record, table="parts", key="code", history=True):
    code: str = css("b.code::text")
    title: str = css("h1::text")
    edition: int = css("i.edition::text")
    parts: list[str] = css("li.part::text")


def plain_source(base: str, **policies: object) -> Source:
    return Source("plain", find=Sitemap(f"{base}/sitemap.xml"), read=Part, forced_looks=0.0, **policies)  # type: ignore[arg-type]


def die_at(store: Store, kind: str, number: int) -> None:
    """Kill this process at the transaction of that number: at its `begin`, or just before its `commit`."""
    seen = 0

    @event.listens_for(store.engine, kind)
    def count(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)


def sync_once(address: str, base: str, point: str = "") -> str:
    """Sync the plain site; how many transactions that took. With `begin:N` or `commit:N` this process kills itself at
    the beginning, or just before the commit, of its transaction number N: no handler runs, nothing is flushed."""
    store = store_at(address)
    if point:
        kind, _, number = point.partition(":")
        die_at(store, kind, int(number))
    transactions = 0

    @event.listens_for(store.engine, "commit")
    def count(*_: object) -> None:
        nonlocal transactions
        transactions += 1

    asyncio.run(sync_source(Declared(plain_source(base), base), store, concurrency=8))
    return str(transactions)

"""The declaration of the plain site, and a program that syncs it once: what crash tests kill.

    python -m tests.support.plain_source STORE BASE [begin:N | commit:N]

With `begin:N` or `commit:N` the process kills itself at the beginning, or just before the commit, of its transaction
number N: no handler runs, nothing is flushed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

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


def main(address: str, base: str, point: str = "") -> int:
    store = store_at(address)
    if point:
        kind, _, number = point.partition(":")
        die_at(store, kind, int(number))
    transactions = 0

    @event.listens_for(store.engine, "commit")
    def count(*_: object) -> None:
        nonlocal transactions
        transactions += 1

    result = asyncio.run(sync_source(Declared(plain_source(base), base), store, concurrency=8))
    print(result.ending, transactions, sorted(result.progress.summary().items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""A program that pushes offers under keys, stores them, and can be killed at each of its transactions.

    python -m tests.support.push_worker STORE [begin:N | commit:N]

It pushes all of its chunks again each time it is started, as a client does that was not answered.
"""

from __future__ import annotations

import asyncio
import sys

from sqlalchemy import event

from recrawl.operate.work import work
from recrawl.store.database import open_store
from tests.support.plain_source import die_at
from tests.support.pushes import OFFERS, offer, push

PUSHES: dict[str, list[dict[str, object] | bytes]] = {
    "first": [offer("1", "a"), offer("2", "a"), offer("1", "b"), b"no json", b"{}"],
    "second": [offer("1", "a"), offer("3", "a"), offer("2", "a")],
    "third": [offer("3", "b"), offer("3", "a"), {"title": "no key"}],
}


def main(address: str, point: str = "") -> None:
    store = open_store(address)
    transactions = 0

    @event.listens_for(store.engine, "commit")
    def count(*_: object) -> None:
        nonlocal transactions
        transactions += 1

    if point:
        kind, _, number = point.partition(":")
        die_at(store, kind, int(number))
    for key, found in PUSHES.items():
        push(store, *found, key=key)
        asyncio.run(work(store, [OFFERS]))
    print(transactions)


if __name__ == "__main__":
    main(*sys.argv[1:])

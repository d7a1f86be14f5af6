"""A client that pushes offers under keys, and a worker that stores them, to be killed at each of their transactions."""

from __future__ import annotations

import asyncio

from recrawl.operate.work import work
from recrawl.store.database import open_store
from tests.support.plain_source import die_at
from tests.support.pushes import OFFERS, offer, push

PUSHES: dict[str, list[dict[str, object] | bytes]] = {
    "first": [offer("1", "a"), offer("2", "a"), offer("1", "b"), b"no json", b"{}"],
    "second": [offer("1", "a"), offer("3", "a"), offer("2", "a")],
    "third": [offer("3", "b"), offer("3", "a"), {"title": "no key"}],
}


def push_and_store(address: str, point: str = "") -> str:
    """Push all chunks, again each time, as a client does that was not answered, and store them."""
    store = open_store(address)
    if point:
        kind, _, number = point.partition(":")
        die_at(store, kind, int(number))
    for key, found in PUSHES.items():
        push(store, *found, key=key)
        asyncio.run(work(store, [OFFERS]))
    return "done"

"""recrawl's own way of pushed records: accept durably, then validate, dedup, order, store with history.

python -m benchmarks.peers.clean_recrawl DATABASE COUNT
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime

from benchmarks.offers import SOURCE, lines
from recrawl.model.push import Push
from recrawl.run.inbox import Inbox
from recrawl.store import migrate
from recrawl.store.accept import accept
from recrawl.store.database import open_store


def _now() -> datetime:
    return datetime.now(UTC)


def main(database: str, count: int) -> None:
    store = open_store(database)
    migrate.ready(store)
    inbox = Inbox(store, {SOURCE.name: SOURCE}, _now)
    inbox.prepare()
    found = tuple(lines(count))
    begun = time.perf_counter()
    accept(store, Push(source=SOURCE.name, lines=found), now=_now())
    accepted = time.perf_counter()
    while inbox.take():
        pass
    ended = time.perf_counter()
    print(json.dumps({"records": count, "seconds": ended - accepted, "with_accept": ended - begun}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

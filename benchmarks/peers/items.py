"""What all peers share: the list of pages, the clock, and, for those that store items, the database."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

_EVERY = 100

CONCURRENCY = 16


def urls_of(listing: str) -> list[str]:
    return Path(listing).read_text().split()


class Stopwatch:
    """From the first request to the last page; start-up and shut-down are left out."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._ended = 0.0

    def begin(self) -> None:
        """Called at every request; the first counts."""
        if self._began is None:
            self._began = time.perf_counter()

    def end(self) -> None:
        """Called whenever something is done; the last counts."""
        self._ended = time.perf_counter()

    def tell(self, pages: int) -> None:
        assert self._began is not None
        print(json.dumps({"pages": pages, "seconds": self._ended - self._began}))


class Items:
    """Items in SQLite, a commit for each hundred."""

    def __init__(self, path: str, watch: Stopwatch) -> None:
        self.count = 0
        self._watch = watch
        self._database = sqlite3.connect(path)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS items (url PRIMARY KEY, title, links, text)")

    def add(self, url: str, title: str | None, links: list[str], text: str) -> None:
        row = (url, title, json.dumps(links), text)
        self._database.execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?)", row)
        self.count += 1
        if self.count % _EVERY == 0:
            self._commit()

    def close(self) -> None:
        if self.count % _EVERY:
            self._commit()
        self._database.close()

    def _commit(self) -> None:
        self._database.commit()
        self._watch.end()

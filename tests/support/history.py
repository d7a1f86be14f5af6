"""A recorded history of a real site, served step by step, and a mirror of it that is synced on the virtual clock."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE, Popen
from sys import executable
from typing import Any

from sqlalchemy import text

from recrawl.declare import Api, Feed, Finder, Listing, Offset, Record, Sitemap, Source
from recrawl.operate.approve import held, let_through
from recrawl.run import wire
from recrawl.run.engine import Ending, Result
from recrawl.run.wire import Declared, sync_source
from recrawl.store.database import Store

GAP = timedelta(hours=6, minutes=1)
"""A little more than the time that has to lie between two confirmations."""
CYCLES = 4
"""After so many cycles, a gap apart, all that went is known: two to miss it, two to confirm."""

WAYS: dict[str, Callable[[str], list[Finder]]] = {
    "sitemap": lambda base: [Sitemap(f"{base}/sitemap.xml")],
    "listing": lambda base: [Listing(f"{base}/list", links="li a")],
    "api": lambda base: [
        Api(f"{base}/api/items", items="items", link="url", updated="updated", pages=Offset(total="total"))
    ],
    "feed+sitemap": lambda base: [Feed(f"{base}/feed.atom"), Sitemap(f"{base}/sitemap.xml")],
}
"""The ways in which the pages of the site can be found."""


class Job(Record, table="jobs", key="url"):
    url: str
    text: str


def read_job(page: Any) -> Iterator[Job]:
    """A page as it is: what is mirrored here is bytes."""
    yield Job(url=page.url, text=page.text)


class History:
    """The replaying server, at some step of the recorded history."""

    def __init__(self, base: str, steps: int) -> None:
        self.base = base
        self.steps = steps

    def go(self, step: int) -> None:
        self._ask(f"/__step/{step}", b"")

    def fault(self, kind: str) -> None:
        self._ask(f"/__fault/{kind}", b"")

    def truth(self) -> dict[str, str]:
        """The pages that are there now, by URL, with the SHA-256 of each."""
        return {f"{self.base}{path}": hashed for path, hashed in self._ask("/__truth").items()}

    def pages_served(self) -> int:
        return sum(count for kind, count in self._ask("/__stats").items() if kind.startswith("page "))

    def _ask(self, path: str, data: bytes | None = None) -> Any:
        with urllib.request.urlopen(f"{self.base}{path}", data=data) as answer:
            return json.load(answer)


@contextmanager
def served(folder: Path) -> Iterator[History]:
    """The server of the history in `folder`, as a process of its own."""
    command = [executable, str(folder / "serve_history.py"), str(folder / "remote_jobs.jsonl.gz")]
    with Popen(command, stdout=PIPE, text=True) as server:
        assert server.stdout is not None
        base, steps = server.stdout.readline().split()[:2]
        try:
            yield History(base.rstrip("/"), int(steps))
        finally:
            server.terminate()


class Mirror:
    """A database that follows the site. Whatever the site does, no page of it may be taken for deleted."""

    def __init__(self, history: History, store: Store, way: str = "sitemap") -> None:
        self.history = history
        self.store = store
        self.source = Source("jobs", find=WAYS[way](history.base), read=read_job, forced_looks=0.0)
        self.truth: dict[str, str] = {}
        self.removed: set[str] = set()
        self.back: set[str] = set()

    def move(self, step: int) -> set[tuple[str, str]]:
        """The site goes to another step; the versions, (url, kind), that tell what changed by it."""
        before, removed = self.truth, self.removed
        self.history.go(step)
        self.truth = now = self.history.truth()
        self.removed = (removed | before.keys()) - now.keys()
        self.back = removed & now.keys()
        changed = {(url, "updated") for url in now.keys() & before.keys() if now[url] != before[url]}
        new = {(url, "restored" if url in removed else "created") for url in now.keys() - before.keys()}
        return changed | new | {(url, "deleted") for url in before.keys() - now.keys()}

    def sync(self) -> Result:
        """Sync once, a gap after the last time. What the site has taken up again stays deleted until it is listed."""
        wire._VIRTUAL.ahead += GAP
        result = asyncio.run(sync_source(Declared(self.source, self.history.base), self.store, concurrency=8))
        lost = (self.pages("deleted") & self.truth.keys()) - self.back
        assert not lost, f"deleted, though the site has them: {sorted(lost)[:3]}"
        return result

    def follow(self, step: int) -> None:
        """Go to a step and sync until all is confirmed that went: then the mirror is the site."""
        expected, last = self.move(step), self._last_version()
        for _ in range(CYCLES):
            assert self.sync().ending is not Ending.APPROVAL, f"step {step}: the guard stopped what should go"
        self.compare(step)
        self._compare_versions(step, expected, last)

    def follow_with_approval(self, step: int) -> None:
        """Go to a step that removes too much at once: nothing goes before a person agrees, then all of it does."""
        expected, last = self.move(step), self._last_version()
        going = {url for url, kind in expected if kind == "deleted"}
        # A cycle may be left open where looks at what went have to wait: the next run closes it.
        endings = {self.sync().ending for _ in range(CYCLES)}
        assert endings - {Ending.WAITING, Ending.FAILURES, Ending.FINISHED} == {Ending.APPROVAL}, (
            f"step {step}: {endings}"
        )
        # Those that a look of their own found gone before the others were missed may be suspected: too few to stop.
        suspected = self.pages("suspected")
        most = self.source.deletion.max_vanish * len(self.truth | dict.fromkeys(going))
        assert suspected <= going
        assert len(suspected) <= most, f"step {step}: suspected in spite of the guard"
        assert self.pages("deleted") == self.removed - going
        assert {page.url for page in held(self.store, "jobs")} == going
        assert self.approve() == len(going)
        for _ in range(CYCLES):
            assert self.sync().ending is not Ending.APPROVAL
        self.compare(step)
        self._compare_versions(step, expected, last)

    def approve(self) -> int:
        """Agree to all that waits; how much that was."""
        return let_through(self.store, "jobs", held(self.store, "jobs"))

    def compare(self, step: int) -> None:
        """The active pages are the site, and the deleted ones are those that it has no more."""
        self.compare_active(step)
        deleted = self.pages("deleted")
        assert deleted == self.removed, f"step {step}: {sorted(deleted ^ self.removed)[:3]} are wrong"

    def compare_active(self, step: int) -> None:
        """Every page of the site is active, with its bytes."""
        with self.store.read() as connection:
            rows = connection.execute(text("SELECT url, raw_hash FROM pages WHERE status = 'active'"))
            stored = {row.url: row.raw_hash for row in rows}
        wrong = [url for url, hashed in self.truth.items() if stored.get(url) != hashed]
        assert not wrong, f"step {step}: {len(wrong)} pages differ from the site, {sorted(wrong)[:3]}"

    def pages(self, *states: str) -> set[str]:
        """The URLs of pages in these states."""
        with self.store.read() as connection:
            rows = connection.execute(text("SELECT url, status FROM pages"))
            return {row.url for row in rows if row.status in states}

    def _last_version(self) -> int:
        with self.store.read() as connection:
            return int(connection.execute(text("SELECT coalesce(max(seq), 0) FROM versions")).scalar_one())

    def _compare_versions(self, step: int, expected: set[tuple[str, str]], last: int) -> None:
        """Each change is one version, and there is no other. (A change of bytes need not be one of content.)"""
        with self.store.read() as connection:
            query = text("SELECT p.url, v.kind FROM versions v JOIN pages p ON p.id = v.page WHERE v.seq > :last")
            found = Counter((row.url, row.kind) for row in connection.execute(query, {"last": last}))
        assert max(found.values(), default=1) == 1, f"step {step}: a version twice, {found.most_common(3)}"
        assert found.keys() <= expected, f"step {step}: versions of no change, {sorted(found.keys() - expected)[:3]}"
        missing = {(url, kind) for url, kind in expected - found.keys() if kind != "updated"}
        assert not missing, f"step {step}: changes without a version, {sorted(missing)[:3]}"

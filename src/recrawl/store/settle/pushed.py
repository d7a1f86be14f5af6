"""The door for pushed records: whole chunks at a time, with one statement per table.

As for visits: pages are locked in the order of their ids, then tasks are fenced, then all is written, or nothing. What
the database refuses for its data is looked for by halving, under savepoints: the record at fault becomes a dead letter,
and the others become rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, insert, text, update
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from recrawl.decide.pushes import END, PushRules, judge_push
from recrawl.model.push import Cleaned, Pushed, Unusable
from recrawl.model.record import Json
from recrawl.model.settlement import PageFacts, Verdict
from recrawl.model.work import PageState, Stage, Task
from recrawl.store.database import Store
from recrawl.store.inbox import OUTCOMES
from recrawl.store.keys import identity_hash
from recrawl.store.rowset import packed, rowset
from recrawl.store.settle import Settled, events, pages, records, versions, yields
from recrawl.store.settle.letters import packed_raw
from recrawl.store.tables import dead_letters, pushes
from recrawl.store.tables import pages as page_table
from recrawl.store.types import Instant, instant
from recrawl.store.types import Json as JsonType

Stored = Mapping[tuple[str, str], Mapping[str, Json]]
"""The records of a page's last version, by (table, key)."""

Refine = Callable[[Pushed, Stored], Pushed]
"""Fits a record to what is stored of its page, before the two are compared."""


@dataclass(frozen=True, slots=True)
class PushedTo:
    """What settling has to know of a source. `refine` is there where its records must be fitted to what is stored;
    `pulled`: it finds pages by itself too, and visits those that were pushed."""

    rules: PushRules
    pulled: bool = False
    refine: Refine | None = None


class _Lost(Exception):
    """Leases were lost while the pages were locked: nothing of these tasks may be written."""

    def __init__(self, ids: frozenset[int]) -> None:
        super().__init__()
        self.ids = ids


def settle_pushed(
    store: Store, chunks: Sequence[Cleaned], *, to: Mapping[str, PushedTo], now: datetime, run: int | None = None
) -> Settled:
    """Write what claimed chunks came to, and end their tasks. `to` says how each source treats its pushes."""
    lost: frozenset[int] = frozenset()
    while True:
        kept = [chunk for chunk in chunks if chunk.task.id not in lost]
        if not kept:
            return Settled(lost=tuple(sorted(lost)))
        try:
            settled = store.write(partial(_settle, store, kept, to, now, run))
        except _Lost as error:
            lost |= error.ids
        else:
            return replace(settled, lost=tuple(sorted(lost)))


def _settle(
    store: Store,
    chunks: Sequence[Cleaned],
    to: Mapping[str, PushedTo],
    now: datetime,
    run: int | None,
    connection: Connection,
) -> Settled:
    return _Door(store, connection, to, now, run).settle(chunks)


@dataclass(frozen=True, slots=True)
class _Line:
    task: Task
    found: Pushed
    hashed: str  # of the page's identity


class _Door:
    """The work of one transaction. `facts` are the pages as they stand after all that was judged so far."""

    def __init__(
        self,
        store: Store,
        connection: Connection,
        to: Mapping[str, PushedTo],
        now: datetime,
        run: int | None,
    ) -> None:
        self._store, self._connection = store, connection
        self._to, self._now, self._run = to, now, run
        self._ids: dict[str, int] = {}  # by page hash
        self._facts: dict[int, PageFacts] = {}
        self._unwritten: set[int] = set()  # pages that nobody knew, until their first version is written
        self._last_at: dict[int, datetime] = {}
        self._stored: dict[int, Stored] = {}
        self._counts: dict[int, Counter[str]] = defaultdict(Counter)
        self._changed: list[tuple[str, str]] = []

    def settle(self, chunks: Sequence[Cleaned]) -> Settled:
        lines = [
            _Line(chunk.task, found, identity_hash(chunk.task.source, found.page_id))
            for chunk in chunks
            for found in chunk.lines
            if isinstance(found, Pushed)
        ]
        lines.sort(key=lambda line: line.found.observed)
        self._lock_pages(lines)
        self._end_tasks([chunk.task for chunk in chunks])
        self._write(lines)
        self._bury([(chunk.task, found) for chunk in chunks for found in chunk.lines if isinstance(found, Unusable)])
        if self._store.is_postgres:
            pages.give_back(self._connection, self._unwritten)
        self._receipts([chunk.task for chunk in chunks])
        by_source: dict[str, Counter[str]] = defaultdict(Counter)
        for chunk in chunks:
            by_source[chunk.task.source] += self._counts[chunk.task.id]
        return Settled(sum(by_source.values(), Counter()), changed=tuple(self._changed), by_source=by_source)

    def _lock_pages(self, lines: Sequence[_Line]) -> None:
        """Know the page of each line, and lock those that exist."""
        by_hash = {line.hashed: line for line in lines}
        self._load(by_hash)
        self._make([by_hash[hashed] for hashed in sorted(by_hash.keys() - self._ids.keys())])
        windowed = {name for name, to in self._to.items() if to.rules.window is not None}
        refined = {name for name, to in self._to.items() if to.refine is not None}
        known = [page for page in self._facts.values() if page.version]
        self._load_versions([page for page in known if page.source in windowed | refined])

    def _load(self, hashes: Iterable[str]) -> None:
        wanted = packed({"h": hashed} for hashed in sorted(hashes))
        if wanted == "[]":
            return
        lock = "ORDER BY p.id FOR UPDATE OF p" if self._store.is_postgres else ""
        statement = text(_PAGES.format(rows=rowset(self._store, {"h": "text"}), lock=lock)).columns(
            **{name: page_table.c[name].type for name in pages.NAMES}
        )
        for row in self._connection.execute(statement, {"rows": wanted}).mappings():
            values = dict(row)
            self._ids[values.pop("page_hash")] = values["id"]
            values["status"] = PageState(values["status"])
            self._facts[values["id"]] = PageFacts(**values)

    def _make(self, lines: Sequence[_Line]) -> None:
        """Facts of pages that nobody knows. On SQLite, with its one writer, their rows are written with their first
        version; on PostgreSQL they are taken at once, lest others do, and those that others took are loaded."""
        if not lines:
            return
        for page, line in zip(pages.draw_ids(self._store, self._connection, len(lines)), lines, strict=True):
            self._ids[line.hashed] = page
            self._unwritten.add(page)
            visited = line.found.host and self._to[line.task.source].pulled
            self._facts[page] = PageFacts(
                **_BLANK
                | {
                    "id": page,
                    "source": line.task.source,
                    "page_id": line.found.page_id,
                    "url": line.found.url,
                    "fetch_url": line.found.fetch_url,
                    "host": line.found.host,
                    "status": PageState.NEW,
                    "generation": 1,
                    # A page with an address is visited too, where the source visits pages.
                    "due_at": self._now if visited else None,
                }
            )
        if self._store.is_postgres:
            drawn = {self._ids[line.hashed]: line.hashed for line in lines}
            taken = pages.reserve(self._connection, [self._facts[page] for page in drawn], self._now)
            for page in drawn.keys() - taken:
                del self._facts[page]
                self._unwritten.discard(page)
            self._load(hashed for page, hashed in drawn.items() if page not in taken)

    def _load_versions(self, known: Sequence[PageFacts]) -> None:
        if not known:
            return
        kinds = {"page": "int", "version": "int"}
        statement = text(_LAST.format(rows=rowset(self._store, kinds))).columns(fetched_at=Instant(), data=JsonType)
        rows = packed({"page": page.id, "version": page.version} for page in known)
        for row in self._connection.execute(statement, {"rows": rows}):
            self._last_at[row.page] = row.fetched_at
            self._stored[row.page] = {(item["table"], item["key"]): item["data"] for item in row.data}

    def _end_tasks(self, ended: Sequence[Task]) -> None:
        """End the tasks, and see to it that all leases were still held. Raises _Lost."""
        kinds = {"id": "int", "token": "text"}
        statement = text(_END.format(rows=rowset(self._store, kinds))).bindparams(instant("now", self._now))
        rows = packed({"id": task.id, "token": task.token} for task in ended)
        held = {row.id for row in self._connection.execute(statement, {"rows": rows})}
        if lost := {task.id for task in ended} - held:
            raise _Lost(frozenset(lost))

    def _write(self, lines: Sequence[_Line]) -> None:
        """Judge lines in their order and write what they come to; what is refused is halved until it is found."""
        if not lines:
            return
        before = dict(self._facts), dict(self._last_at), dict(self._stored), len(self._changed)
        try:
            with self._connection.begin_nested():
                verdicts = [self._judge(line) for line in lines]
                self._write_verdicts(verdicts)
        except (DBAPIError, ValueError, OverflowError, TypeError) as error:
            if not _is_of_the_data(error):
                raise
            self._facts, self._last_at, self._stored = before[:3]
            del self._changed[before[3] :]
            if len(lines) == 1:
                said = str(getattr(error, "orig", error)).strip().splitlines()[0]
                found = lines[0].found
                reason = f"the database refuses it: {said}"
                at = found.fetched_at
                refused = Unusable(raw=found.raw, observed=found.observed, fetched_at=at, kind="refused", reason=reason)
                self._bury([(lines[0].task, refused)])
                return
            middle = len(lines) // 2
            self._write(lines[:middle])
            self._write(lines[middle:])
        else:
            self._unwritten -= {verdict.page.id for verdict in verdicts}
            for line, verdict in zip(lines, verdicts, strict=True):
                self._counts[line.task.id][verdict.count] += 1

    def _judge(self, line: _Line) -> Verdict:
        page = self._facts[self._ids[line.hashed]]
        to, found = self._to[page.source], line.found
        if to.refine is not None and page.id in self._stored:
            found = to.refine(found, self._stored[page.id])
        verdict = judge_push(page, found, rules=to.rules, last_at=self._last_at.get(page.id), now=self._now)
        self._facts[page.id] = verdict.page
        if verdict.version is not None:
            self._last_at[page.id] = found.fetched_at
            self._stored[page.id] = {(row.table, row.key): row.data for row in found.rows}
            self._changed.append((verdict.version.kind, verdict.page.url))
        return verdict

    def _write_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        store, connection = self._store, self._connection
        # Of several versions of one page only the last yields records.
        last = {verdict.page.id: verdict for verdict in verdicts if verdict.version is not None}
        refreshed = [verdict for verdict in verdicts if verdict.refresh and verdict.page.id not in last]
        standing = {verdict.page.id: verdict.page for verdict in verdicts if verdict.count != "regressions"}
        absent = set() if store.is_postgres else self._unwritten
        pages.add(connection, [page for page in standing.values() if page.id in absent], self._now)
        pages.write(connection, [page for page in standing.values() if page.id not in absent])
        versions.write(connection, verdicts, self._run)
        touched = yields.write(store, connection, last.values())
        records.show(store, connection, [*last.values(), *refreshed], touched, self._now)
        events.write(connection, verdicts, self._now)

    def _bury(self, dead: Sequence[tuple[Task, Unusable]]) -> None:
        rows = []
        for task, found in dead:
            self._counts[task.id]["dead"] += 1
            letter = {
                "signature": f"{Stage.CLEAN}:{found.kind}"[:500],
                "reason": found.reason,
                "errors": [
                    {"field": error.field, "kind": error.kind, "message": error.message, "value": error.value}
                    for error in found.errors
                ],
            }
            if task.replay_of is not None:
                self._connection.execute(update(dead_letters).where(dead_letters.c.id == task.replay_of).values(letter))
            else:
                rows.append(
                    {
                        "source": task.source,
                        "task_key": task.key,
                        "stage": Stage.CLEAN,
                        **letter,
                        **packed_raw(found.raw),
                        "observed": found.observed,
                        "fetched_at": found.fetched_at,
                        "created_at": self._now,
                    }
                )
        if rows:
            self._connection.execute(insert(dead_letters), rows)

    def _receipts(self, ended: Sequence[Task]) -> None:
        """Note what became of each chunk. Of each source the last one that was mostly good keeps its bytes: what begins
        to fail is compared with it."""
        rows = []
        samples: dict[str, int] = {}
        for task in ended:
            counts = self._counts[task.id]
            if task.replay_of is not None:
                self._replayed(task, counts)
            else:
                good = counts.total() - counts["dead"]
                if good > counts["dead"]:
                    samples[task.source] = task.id
            rows.append({"b_task": task.id} | {f"v_{name}": counts[name] for name in OUTCOMES})
        self._connection.execute(_RECEIPT, [row | {"v_now": self._now} for row in rows])
        for source, sample in sorted(samples.items()):
            self._connection.execute(_ONE_SAMPLE, {"source": source, "sample": sample})
        others = [{"b_task": task.id} for task in ended if task.id not in samples.values()]
        if others:
            self._connection.execute(_NO_SAMPLE, others)

    def _replayed(self, task: Task, counts: Counter[str]) -> None:
        """The letter is answered, unless it died again; in the account it is what it has become."""
        if counts["dead"]:
            counts["dead"] = 0
            return
        self._connection.execute(
            update(dead_letters)
            .where(dead_letters.c.id == task.replay_of, dead_letters.c.resolved_at.is_(None))
            .values(resolved_at=self._now, resolution="replayed")
        )
        counts["dead"] = -1


_BLANK: dict[str, Any] = {name: None if page_table.c[name].nullable else 0 for name in pages.NAMES}
_BLANK |= {"held": False, "approved": False}


def _is_of_the_data(error: Exception) -> bool:
    """Whether the rows themselves were refused, so that fewer of them may pass. A race for one identity is none."""
    if not isinstance(error, DBAPIError):
        return True
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        return isinstance(error, DataError | IntegrityError)
    return state[:2] in ("22", "23", "54") and state != "23505"


_PAGES = f"""
SELECT p.page_hash, {", ".join(f"p.{name}" for name in pages.NAMES)}
FROM {{rows}} CROSS JOIN pages p WHERE p.page_hash = r.h {{lock}}
"""
_LAST = """
SELECT v.page, v.fetched_at, v.data FROM {rows} CROSS JOIN versions v WHERE v.page = r.page AND v.version = r.version
"""
_END = f"""
UPDATE tasks SET state = '{END.state}', stage = '{END.stage}', ended_at = :now,
  lease_owner = NULL, lease_token = NULL, lease_until = NULL
WHERE state = 'running' AND id IN (SELECT r.id FROM {{rows}})
  AND EXISTS (SELECT 1 FROM {{rows}} WHERE r.id = tasks.id AND r.token = tasks.lease_token)
RETURNING id
"""
_RECEIPT = (
    update(pushes)
    .where(pushes.c.task == bindparam("b_task"))
    .values({name: bindparam(f"v_{name}") for name in OUTCOMES} | {"ended_at": bindparam("v_now")})
)
_NO_SAMPLE = update(pushes).where(pushes.c.task == bindparam("b_task")).values(data=None)
_ONE_SAMPLE = text(
    "UPDATE pushes SET data = NULL "
    "WHERE source = :source AND ended_at IS NOT NULL AND data IS NOT NULL AND task <> :sample"
)

"""The verb `replay`: dead letters become work again, with what came and the place that it had in the order.

Pushed records go back into the inbox, pages are read from the bytes that their letters keep. A letter that is under way
is not begun a second time; one that dies again stays the letter it was; what is newer by now is never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import uuid4

import zstandard
from sqlalchemy import Connection, insert, select, text

from recrawl.model.work import ASKED, NO_HOST, Stage, TaskKind, TaskState
from recrawl.store.database import Store
from recrawl.store.dead import Letter, Selection, letters
from recrawl.store.keys import task_key
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import dead_letters, pushes, tasks
from recrawl.store.types import instant
from recrawl.store.visits import busy, lock_pages

_CHUNK = 100
_LIFE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Replayed:
    """`pushed` records and `pages` that were begun; `busy` ones are under way already; the `rest` kept nothing that
    could be read again: they are fetched anew by `retry`, or by the next sync."""

    pushed: int = 0
    pages: int = 0
    busy: int = 0
    rest: int = 0

    def __add__(self, other: Replayed) -> Replayed:
        return Replayed(
            self.pushed + other.pushed, self.pages + other.pages, self.busy + other.busy, self.rest + other.rest
        )


def replay(
    store: Store, selection: Selection, *, now: datetime, change: Callable[[bytes], bytes] = lambda raw: raw
) -> Replayed:
    """Begin letters anew, a hundred a transaction. `change` is given the raw bytes of pushed records, and gives those
    to be cleaned."""
    total = Replayed()
    chunk: list[Letter] = []
    for letter in letters(store, selection):
        chunk.append(letter)
        if len(chunk) == _CHUNK:
            total += _begin(store, chunk, now, change)
            chunk = []
    return total + _begin(store, chunk, now, change) if chunk else total


def _begin(store: Store, chunk: Sequence[Letter], now: datetime, change: Callable[[bytes], bytes]) -> Replayed:
    readable = [letter for letter in chunk if letter.raw]
    pushed = [letter for letter in readable if letter.page is None and letter.stage == Stage.CLEAN]
    pages = [letter for letter in readable if letter.page is not None and letter.stage != Stage.FETCH]

    def work(connection: Connection) -> Replayed:
        lock_pages(store, connection, sorted({letter.page for letter in pages if letter.page is not None}))
        open_now = _unresolved(connection, [*pushed, *pages]) - _under_way(connection, pushed)
        begun = [letter for letter in pushed if letter.id in open_now]
        for letter in begun:
            _push_again(connection, letter, change(letter.raw or b""), now)
        read = _read_again(store, connection, [letter for letter in pages if letter.id in open_now], now)
        ready = len(pushed) + len(pages)
        return Replayed(len(begun), read, ready - len(begun) - read, len(chunk) - ready)

    return store.write(work)


def _unresolved(connection: Connection, chosen: Sequence[Letter]) -> set[int]:
    """The letters that nobody resolved meanwhile, locked in the order of their ids."""
    ids = [letter.id for letter in chosen]
    query = select(dead_letters.c.id).where(dead_letters.c.id.in_(ids), dead_letters.c.resolved_at.is_(None))
    return set(connection.execute(query.order_by(dead_letters.c.id).with_for_update()).scalars())


_UNDER_WAY = text(
    "SELECT replay_of FROM tasks WHERE source = :source AND kind = 'clean' AND replay_of IS NOT NULL "
    "AND state IN ('pending', 'running', 'failed')"
)


def _under_way(connection: Connection, chosen: Sequence[Letter]) -> set[int]:
    sources = {letter.source for letter in chosen}
    return {row for source in sources for row in connection.execute(_UNDER_WAY, {"source": source}).scalars()}


def _push_again(connection: Connection, letter: Letter, line: bytes, now: datetime) -> None:
    key = f"replay/{letter.id}/{uuid4()}"
    task = connection.execute(
        insert(tasks)
        .values(
            source=letter.source,
            key=task_key(key, 0),
            kind=TaskKind.CLEAN,
            state=TaskState.PENDING,
            stage=Stage.CLEAN,
            observed=letter.observed,
            due_at=now,
            host="",
            replay_of=letter.id,
        )
        .returning(tasks.c.id)
    ).scalar_one()
    # It was counted when it was received first.
    connection.execute(
        insert(pushes).values(
            source=letter.source,
            key=key,
            chunk=0,
            task=task,
            digest=sha256(line).hexdigest(),
            records=0,
            codec="zstd",
            data=zstandard.ZstdCompressor(level=3).compress(line),
            accepted_at=letter.fetched_at or letter.created_at,
        )
    )


# The newest letter of a page only: what came before it is history.
_READ = """
INSERT INTO tasks (source, key, kind, page, replay_of, state, stage, priority, due_at, expires_at, host, observed)
SELECT p.source, '[' || p.id || ',' || p.generation || ']', 'visit', p.id, d.id, 'pending', 'judge', {asked}, :now,
       :expires_at, '{no_host}', d.observed
FROM {rows} CROSS JOIN dead_letters d JOIN pages p ON p.id = d.page
WHERE d.id = r.id AND p.due_at IS NOT NULL
ON CONFLICT DO NOTHING RETURNING page
"""


def _read_again(store: Store, connection: Connection, chosen: Sequence[Letter], now: datetime) -> int:
    newest = {letter.page: letter.id for letter in sorted(chosen, key=lambda letter: (letter.observed, letter.id))}
    if not newest:
        return 0
    statement = text(_READ.format(rows=rowset(store, {"id": "int"}), asked=ASKED, no_host=NO_HOST)).bindparams(
        instant("now", now), instant("expires_at", now + _LIFE)
    )
    made = connection.execute(statement, {"rows": packed({"id": number} for number in sorted(newest.values()))})
    pages = [row.page for row in made]
    busy(store, connection, pages)
    return len(pages)

"""The verb `accept`: a durable inbox for pushed records.

The answer follows the commit, and that commit outlives a power cut: what was answered is never dropped. Records wait as
chunks, each with a task of kind `clean`, whose data are the accepted lines as they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any
from uuid import uuid4

import zstandard
from sqlalchemy import Connection, Table, bindparam, insert, select, text, update

from recrawl.decide.envelope import read_line
from recrawl.errors import Misuse
from recrawl.model.push import Accepted, Backlog, KeyReused, Push
from recrawl.model.work import Stage, TaskKind, TaskState
from recrawl.store.database import SPACING, Store, draw
from recrawl.store.keys import task_key
from recrawl.store.settle.letters import packed_raw
from recrawl.store.tables import dead_letters, pushes, tasks

CHUNK_RECORDS = 500
CHUNK_BYTES = 1_000_000
"""A chunk is closed at so many records or bytes, whichever comes first; a single record may be larger."""
LONGEST_LINE = 8_000_000
MOST_WAITING = 2_000
"""Chunks of one source that may wait; with more, a push is refused until some are settled."""
_LONGEST_KEY = 200
assert CHUNK_RECORDS < SPACING


@dataclass(slots=True)
class _Chunk:
    lines: list[bytes] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A push made ready outside of the transaction. `refused` are lines that are no JSON, with the reason."""

    push: Push
    key: str
    digest: str
    chunks: tuple[tuple[int, bytes], ...]  # how many records, and their lines, compressed
    refused: tuple[tuple[bytes, str], ...]


def accept(store: Store, push: Push, *, now: datetime, most_waiting: int = MOST_WAITING) -> Accepted:
    """Take records in; they are kept once this returns.

    Raises Backlog where too many wait (nothing is taken), KeyReused where the key stands for other records, and Misuse
    for a key that cannot be one.
    """
    (answer,) = accept_together(store, [push], now=now, most_waiting=most_waiting)
    if isinstance(answer, Exception):
        raise answer
    return answer


def accept_together(
    store: Store, given: Sequence[Push], *, now: datetime, most_waiting: int = MOST_WAITING
) -> list[Accepted | Backlog | KeyReused]:
    """Take in several pushes with one commit; each gets its own answer, or the reason why it was not taken.

    Raises Misuse for a key that cannot be one.
    """
    prepared = [_prepare(push) for push in given]

    def work(connection: Connection) -> list[Accepted | Backlog | KeyReused]:
        waiting: dict[str, int] = {}
        return [_accept(store, connection, one, now, waiting, most_waiting) for one in prepared]

    return store.write(work, durable=True)


def _prepare(push: Push) -> _Prepared:
    if push.key is not None and not (0 < len(push.key) <= _LONGEST_KEY and push.key.isprintable()):
        action = f"Send 1 to {_LONGEST_KEY} printable characters, for instance a UUID."
        raise Misuse("this is no Idempotency-Key", place=f"key {push.key[:40]!r}", action=action)
    sound: list[bytes] = []
    refused: list[tuple[bytes, str]] = []
    for line in push.lines:
        if not line.strip():
            continue
        reason = _refusal(line)
        if reason is None:
            # Line breaks in a JSON text stand between its tokens only.
            sound.append(line.translate(_ONE_LINE).strip())
        else:
            refused.append((line, reason))
    compressor = zstandard.ZstdCompressor(level=3)
    chunks = tuple((len(lines), compressor.compress(b"\n".join(lines))) for lines in _chunked(sound))
    digest = sha256(b"\n".join(push.lines)).hexdigest()
    return _Prepared(push, push.key or str(uuid4()), digest, chunks, tuple(refused))


_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def _refusal(line: bytes) -> str | None:
    if len(line) > LONGEST_LINE:
        return f"a record of {len(line):,} bytes, more than {LONGEST_LINE:,}"
    try:
        read_line(line)
    except ValueError as error:
        return f"this is no JSON: {error}"
    return None


def _chunked(lines: list[bytes]) -> Iterator[list[bytes]]:
    chunk = _Chunk()
    for line in lines:
        if chunk.lines and (len(chunk.lines) >= CHUNK_RECORDS or chunk.size + len(line) > CHUNK_BYTES):
            yield chunk.lines
            chunk = _Chunk()
        chunk.lines.append(line)
        chunk.size += len(line)
    if chunk.lines:
        yield chunk.lines


def _accept(
    store: Store,
    connection: Connection,
    prepared: _Prepared,
    now: datetime,
    waiting: dict[str, int],
    most_waiting: int,
) -> Accepted | Backlog | KeyReused:
    push = prepared.push
    first = {
        "source": push.source,
        "key": prepared.key,
        "chunk": 0,
        "digest": prepared.digest,
        "refused": len(prepared.refused),
        "accepted_at": now,
        "ended_at": now,
    }
    # Whoever pushes the same key at the same time waits here for the first, and then finds its answer.
    if connection.execute(_first(store.insert), first).one_or_none() is None:
        return _known(connection, prepared)
    if push.source not in waiting:
        waiting[push.source] = _waiting(connection, push.source, most_waiting)
    if prepared.chunks and waiting[push.source] >= most_waiting:
        connection.execute(pushes.delete().where(pushes.c.source == push.source, pushes.c.key == prepared.key))
        return Backlog(
            f"{waiting[push.source]:,} chunks of {push.source} wait to be cleaned, and no more are taken",
            place=f"source {push.source}",
            action=f"Push again in {Backlog.retry_after:.0f} seconds; see to it that a worker runs.",
        )
    if prepared.refused:
        _bury(connection, prepared, draw(store, connection), now)
    waiting[push.source] += len(prepared.chunks)
    ids = [
        _enqueue(connection, prepared, number, records, data, draw(store, connection), now)
        for number, (records, data) in enumerate(prepared.chunks)
    ]
    return Accepted(
        key=prepared.key,
        records=sum(records for records, _ in prepared.chunks),
        dead=len(prepared.refused),
        tasks=tuple(ids),
    )


def _known(connection: Connection, prepared: _Prepared) -> Accepted | KeyReused:
    where = (pushes.c.source == prepared.push.source) & (pushes.c.key == prepared.key)
    kept = connection.execute(
        select(pushes.c.digest, pushes.c.records, pushes.c.refused, pushes.c.task).where(where).order_by(pushes.c.chunk)
    ).all()
    if any(row.digest != prepared.digest for row in kept):
        return KeyReused(
            f"the key {prepared.key!r} was used for other records of {prepared.push.source}",
            place="Idempotency-Key",
            action="Use a fresh key for each push; the same one only to repeat the same push.",
        )
    return Accepted(
        key=prepared.key,
        records=sum(row.records for row in kept),
        dead=sum(row.refused for row in kept),
        tasks=tuple(row.task for row in kept if row.task is not None),
        repeated=True,
    )


# Counts no further than asked.
_WAITING = text(
    """
    SELECT count(*) FROM (SELECT 1 AS one FROM tasks WHERE source = :source AND kind = 'clean'
      AND state IN ('pending', 'running', 'failed') LIMIT :most) AS waiting
    """
)


def _waiting(connection: Connection, source: str, most: int) -> int:
    return int(connection.execute(_WAITING, {"source": source, "most": most}).scalar_one())


def _enqueue(
    connection: Connection, prepared: _Prepared, number: int, records: int, data: bytes, observed: int, now: datetime
) -> int:
    push = prepared.push
    row = {
        "source": push.source,
        "key": task_key(prepared.key, number),
        "kind": TaskKind.CLEAN,
        "state": TaskState.PENDING,
        "stage": Stage.CLEAN,
        "queue": push.queue,
        "priority": push.queue.priority,
        "observed": observed,
        "due_at": now,
        "expires_at": push.expires_at,
        "host": "",
    }
    task = connection.execute(_TASK, row).scalar_one()
    held = {"task": task, "records": records, "codec": "zstd", "data": data, "ended_at": None}
    if number == 0:
        connection.execute(_HOLD, held | {"b_source": push.source, "b_key": prepared.key})
    else:
        common = {"source": push.source, "key": prepared.key, "chunk": number, "digest": prepared.digest}
        connection.execute(_MORE, common | held | {"accepted_at": now})
    return int(task)


# Built once: building them takes longer than a row.
@lru_cache
def _first(build: Callable[[Table], Any]) -> Any:
    return build(pushes).on_conflict_do_nothing().returning(pushes.c.chunk)


_TASK = insert(tasks).returning(tasks.c.id)
_MORE = insert(pushes)
_HOLD = (
    update(pushes)
    .where(pushes.c.source == bindparam("b_source"), pushes.c.key == bindparam("b_key"), pushes.c.chunk == 0)
    .values({name: bindparam(name) for name in ("task", "records", "codec", "data", "ended_at")})
)


def _bury(connection: Connection, prepared: _Prepared, observed: int, now: datetime) -> None:
    rows = [
        {
            "source": prepared.push.source,
            "task_key": task_key(prepared.key, "refused", number),
            "stage": Stage.CLEAN,
            "signature": "clean:no_json" if len(line) <= LONGEST_LINE else "clean:line_too_long",
            "reason": reason,
            **packed_raw(line),
            "errors": [],
            "observed": observed,
            "fetched_at": now,
            "created_at": now,
        }
        for number, (line, reason) in enumerate(prepared.refused)
    ]
    connection.execute(insert(dead_letters), rows)

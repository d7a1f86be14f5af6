"""The inbox read back: what waits in it, and what became of all that was accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import zstandard
from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from recrawl.model.push import Chunk
from recrawl.model.work import Stage, Task
from recrawl.store.database import Store
from recrawl.store.settle.letters import packed_raw
from recrawl.store.tables import dead_letters, pushes

OUTCOMES = ("new", "changed", "duplicates", "regressions", "dead")


def lines_of(codec: str, data: bytes) -> tuple[bytes, ...]:
    """The lines of a chunk's stored form."""
    assert codec == "zstd", codec
    return tuple(zstandard.ZstdDecompressor().decompressobj().decompress(data).split(b"\n"))


def chunks_of(store: Store, tasks: Sequence[Task]) -> list[Chunk]:
    """The chunks of claimed tasks, in their order; those that another worker has settled meanwhile are left out."""
    wanted = {task.id: task for task in tasks}
    columns = (pushes.c.task, pushes.c.accepted_at, pushes.c.codec, pushes.c.data)
    with store.read() as connection:
        found = connection.execute(
            select(*columns).where(pushes.c.task.in_(wanted), pushes.c.ended_at.is_(None)).order_by(pushes.c.task)
        ).all()
    return [Chunk(wanted[row.task], row.accepted_at, lines_of(row.codec, row.data)) for row in found]


def sample(store: Store, source: str) -> tuple[bytes, ...]:
    """The lines of the last chunk of a source of which most became data."""
    wanted = select(pushes.c.codec, pushes.c.data).where(
        pushes.c.source == source, pushes.c.ended_at.is_not(None), pushes.c.data.is_not(None)
    )
    with store.read() as connection:
        return tuple(line for row in connection.execute(wanted) for line in lines_of(row.codec, row.data))


def bury_chunk(connection: Connection, task: Mapping[Any, Any], kind: str, reason: str, now: datetime) -> None:
    """Make dead letters of all records of an ended task's chunk."""
    wanted = select(pushes.c.accepted_at, pushes.c.codec, pushes.c.data, pushes.c.ended_at).where(
        pushes.c.task == task["id"]
    )
    kept = connection.execute(wanted).one_or_none()
    if kept is None or kept.data is None or kept.ended_at is not None:
        return
    lines = lines_of(kept.codec, kept.data)
    if task["replay_of"] is None:
        letters = [
            {
                "source": task["source"],
                "task_key": task["key"],
                "stage": Stage.CLEAN,
                "signature": f"{Stage.CLEAN}:{kind}",
                "reason": reason,
                **packed_raw(line),
                "errors": [],
                "observed": task["observed"] + place,
                "fetched_at": kept.accepted_at,
                "created_at": now,
            }
            for place, line in enumerate(lines)
        ]
        connection.execute(insert(dead_letters), letters)
    dead = len(lines) if task["replay_of"] is None else 0  # a replayed letter is there already
    connection.execute(update(pushes).where(pushes.c.task == task["id"]).values(data=None, ended_at=now, dead=dead))


@dataclass(frozen=True, slots=True)
class Account:
    """What became of all lines that were ever pushed to a source: `received` is the sum of the others.

    A dead letter that is replayed and becomes data moves from `dead` to where it belongs.
    """

    received: int
    new: int
    changed: int
    duplicates: int
    regressions: int
    dead: int
    waiting: int


def account(store: Store, source: str) -> Account:
    """Count a source's pushed records by what became of them; reads all of its receipts."""
    return _account(store, pushes.c.source == source)


def account_of_file(store: Store, source: str, name: str) -> Account:
    """The same for what was pushed under keys that begin with `name:`."""
    return _account(store, (pushes.c.source == source) & pushes.c.key.startswith(f"{name}:", autoescape=True))


def end_of_file(store: Store, source: str, name: str) -> int:
    """Where the last push under a key `name:START-END` ended; 0 where there is none."""
    where = (pushes.c.source == source) & pushes.c.key.startswith(f"{name}:", autoescape=True)
    with store.read() as connection:
        keys = connection.execute(select(pushes.c.key).where(where)).scalars()
        return max((int(key.rpartition("-")[2]) for key in keys), default=0)


def _account(store: Store, where: ColumnElement[bool]) -> Account:
    p = pushes.c
    sums = [func.coalesce(func.sum(p[name]), 0).label(name) for name in (*OUTCOMES, "records", "refused")]
    waiting = func.coalesce(func.sum(p.records).filter(p.ended_at.is_(None)), 0).label("waiting")
    with store.read() as connection:
        row = connection.execute(select(*sums, waiting).where(where)).mappings().one()
    counts = {name: int(row[name]) for name in OUTCOMES} | {"dead": int(row["dead"]) + int(row["refused"])}
    return Account(received=int(row["records"]) + int(row["refused"]), waiting=int(row["waiting"]), **counts)

"""What became of a task: while it waits, and, of pushed records, after its task has left the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select

from recrawl.store.database import Store
from recrawl.store.tables import pushes, tasks

_COUNTS = ("records", "new", "changed", "duplicates", "regressions", "dead")


@dataclass(frozen=True, slots=True)
class Receipt:
    """A task as it stands. `counts` say what became of the records of a chunk that was pushed."""

    id: int
    source: str
    kind: str
    state: str
    ended_at: datetime | None
    due_at: datetime | None = None
    error: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


def receipt(store: Store, task: int) -> Receipt | None:
    """What is known of a task, also of a chunk whose task was swept after it had ended."""
    with store.read() as connection:
        row = connection.execute(select(tasks).where(tasks.c.id == task)).one_or_none()
        chunk = connection.execute(select(pushes).where(pushes.c.task == task)).mappings().one_or_none()
    counts = {name: chunk[name] for name in _COUNTS} if chunk else {}
    if row is not None:
        return Receipt(row.id, row.source, row.kind, row.state, row.ended_at, row.due_at, row.error, counts)
    if chunk is not None:
        return Receipt(task, chunk["source"], "clean", "done", chunk["ended_at"], counts=counts)
    return None

"""The verb `retry`: an operator asks for a fresh attempt at what has no good end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from recrawl.decide.lifecycle import TaskEvent, task_after
from recrawl.model.work import TaskState
from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.types import instant
from recrawl.store.visits import lock_pages


@dataclass(frozen=True, slots=True)
class Retried:
    """Pages by why they were chosen (`failed`; `missing`, those of the former left out) and by what became of them:
    `due` at once, `hastened` as a task of theirs had waited, or `under_way` already. `streams` had waited, too."""

    failed: int = 0
    missing: int = 0
    due: int = 0
    hastened: int = 0
    under_way: int = 0
    streams: int = 0


_FAILED = text(
    """
    SELECT id FROM pages WHERE source = :source AND status = 'failing'
    UNION SELECT page FROM dead_letters WHERE source = :source AND resolved_at IS NULL AND page IS NOT NULL
    UNION SELECT page FROM tasks WHERE source = :source AND state = 'failed' AND page IS NOT NULL
    """
)
_MISSING = text(
    "SELECT id FROM pages WHERE source = :source AND status IN ('new', 'failing', 'suspected') AND version = 0"
)
_DUE = """
UPDATE pages SET due_at = :now, failures = 0
WHERE due_at IS NOT NULL AND id IN (SELECT page FROM {rows}) RETURNING id
"""
_HASTEN = """
UPDATE tasks SET state = :state, attempt = 0, due_at = :now
WHERE state = 'failed' AND page IN (SELECT page FROM {rows}) RETURNING id
"""
_STREAMS = text(
    """
    UPDATE tasks SET state = :state, attempt = 0, due_at = :now
    WHERE source = :source AND kind = 'discover' AND state = 'failed' RETURNING id
    """
)


def retry(store: Store, source: str, *, failed: bool, missing: bool, now: datetime) -> Retried:
    """Give pages of a source a fresh attempt at the next run, all in one transaction. Asking twice changes nothing.

    `failed`: pages whose last look ended without data, that have a dead letter, or whose task waits to be tried again,
    and streams that wait so. `missing`: pages that were sighted and never read well, but for those that robots.txt
    keeps closed. A page whose task is open gets no second one.
    """

    def work(connection: Connection) -> Retried:
        of = {"source": source}
        chosen = set(connection.execute(_FAILED, of).scalars()) if failed else set()
        more = set(connection.execute(_MISSING, of).scalars()) - chosen if missing else set()
        ids = sorted(chosen | more)
        lock_pages(store, connection, ids)
        pending = task_after(TaskState.FAILED, TaskEvent.RETRY)
        table, rows = rowset(store, {"page": "int"}), {"rows": packed({"page": page} for page in ids)}
        due = connection.execute(text(_DUE.format(rows=table)).bindparams(instant("now", now)), rows)
        hastened = connection.execute(
            text(_HASTEN.format(rows=table)).bindparams(instant("now", now)), rows | {"state": pending}
        )
        pages, tasks = len(due.all()), len(hastened.all())
        streams = 0
        if failed:
            waiting = connection.execute(_STREAMS.bindparams(instant("now", now)), of | {"state": pending})
            streams = len(waiting.all())
        return Retried(len(chosen), len(more), pages, tasks, len(ids) - pages - tasks, streams)

    return store.write(work)

"""The verb `reap`: what waited becomes claimable again, what waited too long or killed its workers ends, and what ended
long ago is forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, text, update

from recrawl.decide.lifecycle import PageEvent, page_after
from recrawl.model.work import PageState, TaskKind, TaskState
from recrawl.store.database import Store
from recrawl.store.inbox import bury_chunk
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import dead_letters, pages, tasks
from recrawl.store.types import instant
from recrawl.store.visits import lock_pages

MOST_CRASHES = 5
"""A task whose worker died this often while it held it is taken for the killer, and is not tried again."""

KEPT = timedelta(hours=24)
"""How long the row of an ended task stays: what must be remembered of it stands on its page."""


@dataclass(frozen=True, slots=True)
class Reaped:
    ripe: int = 0  # waited long enough: claimable again
    recovered: int = 0  # their worker died
    expired: int = 0  # waited too long
    killers: int = 0  # their workers died again and again
    forgotten: int = 0  # ended long ago


_RIPEN = text("UPDATE tasks SET state = 'pending' WHERE state = 'failed' AND due_at <= :now")
_RECOVER = """
UPDATE tasks SET state = 'pending', crashes = crashes + 1, lease_token = NULL, lease_owner = NULL, lease_until = NULL
WHERE state = 'running' AND (lease_until < :now OR lease_owner IN (SELECT owner FROM {gone}))
"""
_OVERDUE = text("SELECT id, page FROM tasks WHERE state IN ('pending', 'failed') AND expires_at <= :now")
_KILLERS = text("SELECT id, page FROM tasks WHERE state = 'pending' AND crashes >= :most AND crashes > 0")

# In portions, since no worker should wait for long.
_FORGET = text(
    "DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE ended_at < :before ORDER BY ended_at, id LIMIT 5000) "
    "RETURNING id"
)
_UNLINK = "DELETE FROM batch_tasks WHERE task IN (SELECT id FROM {gone})"


def reap(store: Store, now: datetime, gone: Sequence[str] = ()) -> Reaped:
    """Make due `failed` tasks and those of dead workers claimable again; end those that waited too long, and those
    that outlived too many workers, with a dead letter; let some of those go that ended longer than KEPT ago.

    `gone` names workers that are known to be dead, whose leases need not run out first.
    """

    def work(connection: Connection) -> Reaped:
        overdue = connection.execute(_OVERDUE.bindparams(instant("now", now))).all()
        killers = connection.execute(_KILLERS, {"most": MOST_CRASHES}).all()
        lock_pages(store, connection, sorted({row.page for row in (*overdue, *killers) if row.page is not None}))
        expired = [_end(connection, row.id, TaskState.EXPIRED, now) for row in overdue]
        killed = [_end(connection, row.id, TaskState.DEAD, now) for row in killers]
        for task in expired + killed:
            if task is not None and task["page"] is not None:
                _free(connection, task, now)
        for task in expired:
            if task is not None and task["kind"] == TaskKind.CLEAN:
                reason = f"it waited longer than it was good for, until {task['expires_at']:%Y-%m-%d %H:%M:%S} UTC"
                bury_chunk(connection, task, "expired", reason, now)
        for task in killed:
            if task is not None:
                _bury(connection, task, now)
        ripe = connection.execute(_RIPEN.bindparams(instant("now", now))).rowcount
        recovered = connection.execute(
            text(_RECOVER.format(gone=rowset(store, {"owner": "text"}, "gone"))).bindparams(instant("now", now)),
            {"gone": packed({"owner": owner} for owner in gone)},
        ).rowcount
        forgotten = connection.execute(_FORGET.bindparams(instant("before", now - KEPT))).scalars().all()
        if forgotten:
            statement = text(_UNLINK.format(gone=rowset(store, {"id": "int"}, "gone")))
            connection.execute(statement, {"gone": packed({"id": task} for task in forgotten)})
        return Reaped(ripe, recovered, sum(map(bool, expired)), sum(map(bool, killed)), len(forgotten))

    return store.write(work)


def _end(connection: Connection, task: int, state: TaskState, now: datetime) -> Mapping[Any, Any] | None:
    """End a task that is still waiting; its row, or None if a worker was quicker."""
    return (
        connection.execute(
            update(tasks)
            .where(tasks.c.id == task, tasks.c.state.in_([TaskState.PENDING, TaskState.FAILED]))
            .values(state=state, ended_at=now)
            .returning(tasks)
        )
        .mappings()
        .one_or_none()
    )


def _free(connection: Connection, task: Mapping[Any, Any], now: datetime) -> None:
    """A page whose task has ended is due again, or it would be forgotten."""
    page = connection.execute(select(pages.c.status).where(pages.c.id == task["page"])).one()
    status = PageState(page.status)
    if task["state"] == TaskState.DEAD:
        status = page_after(status, PageEvent.FAIL)
    connection.execute(
        update(pages)
        .where(pages.c.id == task["page"])
        .values(status=status, generation=pages.c.generation + 1, due_at=now)
    )


def _bury(connection: Connection, task: Mapping[Any, Any], now: datetime) -> None:
    reason = f"{task['crashes']} workers died while they held this task; it is not tried again by itself"
    if task["kind"] == TaskKind.CLEAN:
        bury_chunk(connection, task, "killed_workers", reason, now)
        return
    connection.execute(
        insert(dead_letters).values(
            source=task["source"],
            task_key=task["key"],
            page=task["page"],
            stage=task["stage"] or "fetch",
            signature=f"{task['stage']}:killed_workers",
            reason=reason,
            errors=[],
            observed=task["observed"] or 0,
            created_at=now,
        )
    )

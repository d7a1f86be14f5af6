"""Leases: the verbs `renew` and `release`, and the fence that every write of a worker passes.

A lease is a token on a running task, with an end. Whoever no longer holds it can write nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, case, select, text, update

from recrawl.errors import Transient
from recrawl.model.settlement import TaskEnd
from recrawl.model.work import TaskState
from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import tasks
from recrawl.store.types import instant


class LeaseLost(Transient):
    """Another worker has this task now; what was found is dropped."""


def fence(connection: Connection, task: int, token: str, *, until: datetime | None = None) -> None:
    """Pass only while the lease is held, and extend it to `until`. Progress of this kind also forgives past attempts.

    Raises LeaseLost.
    """
    values: dict[str, object] = {"attempt": 1}
    if until is not None:
        values["lease_until"] = until
    held = connection.execute(
        update(tasks)
        .where(tasks.c.id == task, tasks.c.lease_token == token, tasks.c.state == TaskState.RUNNING)
        .values(values)
    )
    if held.rowcount != 1:
        raise LeaseLost(f"the lease of task {task} is held by another worker")


def end_task(store: Store, task: int, token: str, end: TaskEnd, now: datetime) -> None:
    """End a task that has no page of its own, fenced. Raises LeaseLost."""

    def work(connection: Connection) -> None:
        held = connection.execute(
            update(tasks)
            .where(tasks.c.id == task, tasks.c.lease_token == token, tasks.c.state == TaskState.RUNNING)
            .values(
                state=end.state,
                stage=end.stage,
                attempt=tasks.c.attempt - int(end.refund),
                due_at=end.due_at or now,
                error_class=end.error_class,
                error=end.error,
                ended_at=None if end.state is TaskState.FAILED else now,
                lease_owner=None,
                lease_token=None,
                lease_until=None,
            )
        )
        if held.rowcount != 1:
            raise LeaseLost(f"the lease of task {task} is held by another worker")

    store.write(work)


def renew(store: Store, leases: Sequence[tuple[int, str]], until: datetime) -> list[int]:
    """Extend leases; the ids of those that are lost."""

    def work(connection: Connection) -> list[int]:
        kept = {
            row.id
            for row in connection.execute(
                text(
                    "UPDATE tasks SET lease_until = :until WHERE state = 'running' AND EXISTS ("
                    f"SELECT 1 FROM {rowset(store, {'id': 'int', 'token': 'text'})} "
                    "WHERE r.id = tasks.id AND r.token = tasks.lease_token) "
                    f"AND id IN (SELECT id FROM {rowset(store, {'id': 'int'})}) RETURNING id"
                ).bindparams(instant("until", until)),
                {"rows": packed({"id": task, "token": token} for task, token in leases)},
            )
        }
        return [task for task, _ in leases if task not in kept]

    return store.write(work)


def release(store: Store, leases: Sequence[tuple[int, str]]) -> None:
    """Give tasks back, uncounted: nothing was tried."""

    def work(connection: Connection) -> None:
        for task, token in sorted(leases):
            connection.execute(
                update(tasks)
                .where(tasks.c.id == task, tasks.c.lease_token == token, tasks.c.state == TaskState.RUNNING)
                .values(
                    state=TaskState.PENDING,
                    attempt=case((tasks.c.attempt > 0, tasks.c.attempt - 1), else_=0),
                    lease_token=None,
                    lease_owner=None,
                    lease_until=None,
                )
            )

    store.write(work)


def owners(store: Store) -> list[str]:
    """The workers that hold leases."""
    with store.read() as connection:
        rows = connection.execute(
            select(tasks.c.lease_owner).distinct().where(text("state = 'running'"), tasks.c.lease_owner.is_not(None))
        )
        return [row.lease_owner for row in rows]

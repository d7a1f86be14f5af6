"""Leases: the verbs `renew`, `release` and `reap`, and the fence that every write of a worker passes.

A lease is a token on a running task, with an end. Whoever no longer holds it can write nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Reaped:
    ripe: int = 0  # waited long enough: claimable again
    recovered: int = 0  # their worker died
    expired: int = 0  # waited too long


def owners(store: Store) -> list[str]:
    """The workers that hold leases."""
    with store.read() as connection:
        rows = connection.execute(
            select(tasks.c.lease_owner).distinct().where(text("state = 'running'"), tasks.c.lease_owner.is_not(None))
        )
        return [row.lease_owner for row in rows]


_RIPEN = text("UPDATE tasks SET state = 'pending' WHERE state = 'failed' AND due_at <= :now")
_RECOVER = """
UPDATE tasks SET state = 'pending', crashes = crashes + 1, lease_token = NULL, lease_owner = NULL, lease_until = NULL
WHERE state = 'running' AND (lease_until < :now OR lease_owner IN (SELECT owner FROM {gone}))
"""
_EXPIRE = text(
    "UPDATE tasks SET state = 'expired', ended_at = :now "
    "WHERE state IN ('pending', 'failed') AND expires_at <= :now RETURNING page"
)
_FREE = """
UPDATE pages SET generation = generation + 1, due_at = :now WHERE id IN (SELECT page FROM {pages})
"""


def reap(store: Store, now: datetime, gone: Sequence[str] = ()) -> Reaped:
    """Make due `failed` tasks and those of dead workers claimable again; end those that waited too long.

    `gone` names workers that are known to be dead, whose leases need not run out first.
    """

    def work(connection: Connection) -> Reaped:
        ripe = connection.execute(_RIPEN.bindparams(instant("now", now))).rowcount
        recovered = connection.execute(
            text(_RECOVER.format(gone=rowset(store, {"owner": "text"}, "gone"))).bindparams(instant("now", now)),
            {"gone": packed({"owner": owner} for owner in gone)},
        ).rowcount
        expired = [row.page for row in connection.execute(_EXPIRE.bindparams(instant("now", now)))]
        pages = sorted(page for page in expired if page is not None)
        if pages:
            connection.execute(
                text(_FREE.format(pages=rowset(store, {"page": "int"}))).bindparams(instant("now", now)),
                {"rows": packed({"page": page} for page in pages)},
            )
        return Reaped(ripe, recovered, len(expired))

    return store.write(work)

"""Tasks on their way out: fenced first, ended last; and the next task of a page whose hint moved meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, null, text, update

from recrawl.model.settlement import Settlement, Verdict
from recrawl.model.work import NO_HOST, TaskState
from recrawl.store.database import Store
from recrawl.store.keys import task_key
from recrawl.store.many import execute_many
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import hosts, tasks
from recrawl.store.types import instant
from recrawl.store.visits import busy

_FENCE = """
SELECT t.id FROM {rows} CROSS JOIN tasks t
WHERE t.id = r.id AND t.lease_token = r.token AND t.state = 'running' {lock}
"""


def fenced(store: Store, connection: Connection, settlements: Sequence[Settlement]) -> set[int]:
    """The tasks whose lease is still held, locked until the transaction ends."""
    lock = "ORDER BY t.id FOR UPDATE OF t" if store.is_postgres else ""
    statement = text(_FENCE.format(rows=rowset(store, {"id": "int", "token": "text"}), lock=lock))
    rows = packed({"id": s.task.id, "token": s.task.token} for s in settlements)
    return {row.id for row in connection.execute(statement, {"rows": rows})}


_END = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_id"))
    .values(
        {
            "state": bindparam("v_state"),
            "stage": bindparam("v_stage"),
            "attempt": tasks.c.attempt - bindparam("v_refund"),
            "due_at": bindparam("v_due_at"),
            "error_class": bindparam("v_error_class"),
            "error": bindparam("v_error"),
            "ended_at": bindparam("v_ended_at"),
            "lease_owner": null(),
            "lease_token": null(),
            "lease_until": null(),
        }
    )
)


_ENDED = ("b_id", "v_state", "v_stage", "v_refund", "v_due_at", "v_error_class", "v_error", "v_ended_at")


def end(connection: Connection, verdicts: Mapping[int, Verdict], now: datetime) -> None:
    values: list[tuple[Any, ...]] = []
    for task, verdict in sorted(verdicts.items()):
        end = verdict.end
        ended_at = None if end.state is TaskState.FAILED else now
        due_at = end.due_at or now
        values.append((task, end.state, end.stage, int(end.refund), due_at, end.error_class, end.error, ended_at))
    execute_many(connection, _END, _ENDED, values)


_NEXT = """
INSERT INTO tasks (source, key, kind, page, body_hash, observed, state, stage, priority, due_at, expires_at, host)
SELECT t.source, r.key, 'visit', t.page, CASE WHEN p.taken_at IS NULL THEN NULL ELSE p.hint END,
       CASE WHEN p.taken_at IS NULL THEN NULL ELSE p.hint_observed END, 'pending',
       CASE WHEN p.taken_at IS NULL THEN 'fetch' ELSE 'judge' END, t.priority, :now, t.expires_at,
       CASE WHEN p.taken_at IS NULL THEN p.host ELSE '{no_host}' END
FROM {rows} CROSS JOIN tasks t CROSS JOIN pages p WHERE t.id = r.id AND p.id = t.page
ON CONFLICT DO NOTHING RETURNING id, page
"""
_RELINK = """
UPDATE batch_tasks SET task = :new
WHERE task = :old AND batch IN (SELECT id FROM batches WHERE observed > :observed)
"""


def go_on(
    store: Store,
    connection: Connection,
    kept: Sequence[Settlement],
    verdicts: Mapping[int, Verdict],
    now: datetime,
) -> None:
    """A hint that moved after a task had been claimed is not answered by it: its page is visited once more at once,
    and the batches that brought the hint wait for that visit."""
    stale = [
        s
        for s in kept
        if verdicts[s.task.id].page.hint_observed > s.task.observed
        and verdicts[s.task.id].end.state is not TaskState.FAILED
    ]
    if not stale:
        return
    pages = {verdicts[s.task.id].page.id: s.task for s in stale}
    given = rowset(store, {"id": "int", "key": "text"})
    statement = text(_NEXT.format(no_host=NO_HOST, rows=given)).bindparams(instant("now", now))
    rows = packed(
        {"id": s.task.id, "key": task_key(verdicts[s.task.id].page.id, verdicts[s.task.id].page.generation)}
        for s in stale
    )
    for row in connection.execute(statement, {"rows": rows}).all():
        old = pages[row.page]
        connection.execute(text(_RELINK), {"new": row.id, "old": old.id, "observed": old.observed})
    busy(store, connection, list(pages))


def hold_hosts(
    store: Store, connection: Connection, kept: Sequence[Settlement], verdicts: Mapping[int, Verdict]
) -> None:
    """Keep every worker off a host that asked to wait."""
    until: dict[str, float] = {}
    for settlement in kept:
        verdict = verdicts[settlement.task.id]
        if verdict.host_backoff is not None:
            host = settlement.task.host
            until[host] = max(until.get(host, 0.0), verdict.host_backoff.timestamp())
    for host, seconds in sorted(until.items()):
        connection.execute(
            store.insert(hosts)
            .values(host=host, backoff_until=seconds)
            .on_conflict_do_update(
                index_elements=[hosts.c.host],
                set_={"backoff_until": seconds},
                where=hosts.c.backoff_until < seconds,
            )
        )

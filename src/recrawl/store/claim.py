"""The verb `claim`: take work, atomically.

`pending` means claimable now, so nothing is filtered by time. Hosts take turns, beginning after the worker's own last
one; within a host the more urgent, then the older work goes first. A task that was running when its worker died is
claimed by itself, so that one that kills its worker takes no other with it for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from secrets import token_hex
from typing import Any

from sqlalchemy import Connection, text

from recrawl.model.fetched import Validators
from recrawl.model.work import PageState, PageView, Task, TaskKind
from recrawl.store.database import Store, draw
from recrawl.store.rowset import packed, rowset
from recrawl.store.types import Instant, instant

# A skip scan: each step finds the next host by one index probe, however many tasks the hosts have.
_HOSTS = """
WITH RECURSIVE ready(host) AS (
  SELECT min(host) FROM tasks WHERE state = 'pending' AND crashes = 0 AND host > :after
  UNION ALL
  SELECT (SELECT min(t.host) FROM tasks t WHERE t.state = 'pending' AND t.crashes = 0 AND t.host > ready.host)
  FROM ready WHERE ready.host IS NOT NULL
)
SELECT ready.host FROM ready LEFT JOIN hosts h ON h.host = ready.host
WHERE ready.host IS NOT NULL AND coalesce(h.backoff_until, 0) <= :seconds AND coalesce(h.next_at, 0) <= :horizon
LIMIT :most
"""
# `source || ''` keeps both databases from reading all tasks of a source. Materialised, so that PostgreSQL looks for
# tasks once: as a plain subquery it may be run again for each row it meets.
_TAKE = """
WITH taken AS MATERIALIZED (
  SELECT id FROM tasks WHERE state = 'pending' AND {which} AND (source || '') IN (SELECT source FROM {sources})
  ORDER BY {order} LIMIT :most {skip}
)
UPDATE tasks SET state = 'running', attempt = attempt + 1, lease_owner = :owner, lease_token = :token,
  lease_until = :until,
  observed = CASE WHEN kind <> 'clean' AND coalesce(body_hash, CAST(replay_of AS text)) IS NULL THEN :observed
             ELSE coalesce(observed, :observed) END
WHERE id IN (SELECT id FROM taken) RETURNING id
"""
_VIEW = """
SELECT t.*, p.page_id, p.url, p.fetch_url, p.status, p.version, p.etag, p.last_modified, p.raw_hash, p.content_hash,
       p.structure_hash, p.reader_hash, p.content_type, p.failures,
       p.hint IS NOT NULL AND p.hint_observed <= p.observed AS hint_stayed, b.hash AS stored
FROM {rows} CROSS JOIN tasks t LEFT JOIN pages p ON p.id = t.page LEFT JOIN bodies b ON b.hash = p.raw_hash
WHERE t.id = r.id ORDER BY t.priority DESC, t.due_at, t.id
"""
# A host whose next free slot is further away than this has enough work handed out already.
HORIZON = 5.0


def claim(
    store: Store,
    count: int,
    *,
    specs: Mapping[str, str],
    owner: str,
    now: datetime,
    until: datetime,
    after: str = "",
    floor: int | None = None,
) -> list[Task]:
    """Take up to `count` tasks, under one new token, with a lease to `until`; their attempt is counted here.

    `specs` maps each source that this worker serves to the spec hash of the declaration it holds; a source that the
    database knows with another one is left to workers that hold that. `floor` leaves aside what is less urgent.
    """
    token = token_hex(16)

    def work(connection: Connection) -> list[Task]:
        served = _served(connection, specs)
        if not served:
            return []
        sources = packed({"source": name} for name in served)
        common = {"owner": owner, "token": token, "sources": sources}
        observed: int | None = None
        taken: list[int] = []
        for which, order, most in _places(connection, count, now, after, served):
            observed = observed or draw(store, connection)
            statement = text(
                _TAKE.format(
                    which=("crashes > 0 AND host <> ''" if which is None else "crashes = 0 AND host = :host")
                    + ("" if floor is None else f" AND priority >= {floor:d}"),
                    order=order,
                    sources=rowset(store, {"source": "text"}, "sources"),
                    skip="FOR UPDATE SKIP LOCKED" if store.is_postgres else "",
                )
            ).bindparams(instant("until", until))
            values: dict[str, Any] = {**common, "observed": observed, "most": min(most, count - len(taken))}
            if which is not None:
                values["host"] = which
            taken += [row.id for row in connection.execute(statement, values)]
            if len(taken) >= count or (which is None and taken):
                break
        return _views(store, connection, taken)

    return store.write(work)


# Each half is one probe of a small index.
_ANY_CHUNK = text(
    """
    SELECT 1 FROM (SELECT id FROM tasks WHERE state = 'pending' AND crashes = 0 AND host = '' LIMIT 1) AS first
    UNION ALL
    SELECT 1 FROM (SELECT id FROM tasks WHERE state = 'pending' AND crashes > 0 AND host = '' LIMIT 1) AS again
    """
)


def claim_chunks(
    store: Store, count: int, *, specs: Mapping[str, str], owner: str, now: datetime, until: datetime
) -> list[Task]:
    """Take up to `count` chunks of pushed records, which have no host, as `claim` takes the rest."""
    token = token_hex(16)

    with store.read() as connection:
        if connection.execute(_ANY_CHUNK).first() is None:
            return []  # seen without a lock that would hold up a writer

    def work(connection: Connection) -> list[Task]:
        served = _served(connection, specs)
        sources = packed({"source": name} for name in served)
        for which, order, most in (
            ("crashes > 0 AND host = ''", "id", 1),
            ("crashes = 0 AND host = ''", "priority DESC, due_at, id", count),
        ):
            statement = text(
                _TAKE.format(
                    which=which,
                    order=order,
                    sources=rowset(store, {"source": "text"}, "sources"),
                    skip="FOR UPDATE SKIP LOCKED" if store.is_postgres else "",
                )
            ).bindparams(instant("until", until))
            values = {"owner": owner, "token": token, "sources": sources, "observed": None, "most": most}
            taken = [row.id for row in connection.execute(statement, values)] if served else []
            if taken:
                return _views(store, connection, taken)
        return []

    return store.write(work)


def _served(connection: Connection, specs: Mapping[str, str]) -> list[str]:
    rows = connection.execute(text("SELECT name, spec_hash FROM sources WHERE NOT paused"))
    return [row.name for row in rows if specs.get(row.name) == row.spec_hash]


# Ordered by id, so that both databases read the small index of such tasks, and not all of a source's.
_CRASHED = text("SELECT source FROM tasks WHERE state = 'pending' AND crashes > 0 AND host <> '' ORDER BY id LIMIT 100")


def _places(
    connection: Connection, count: int, now: datetime, after: str, served: Sequence[str]
) -> Iterator[tuple[str | None, str, int]]:
    """Where to take from, in turn: a task that crashed its worker (None), then ready hosts with equal shares.

    Hosts may have tasks of other sources only, so the scan goes on for as long as it is asked to.
    """
    if any(row.source in served for row in connection.execute(_CRASHED)):
        yield None, "id", 1
    seconds = now.timestamp()
    share = 0
    for start, end in ((after, None), ("", after)) if after else (("", None),):
        last = start
        while True:
            values = {"after": last, "seconds": seconds, "horizon": seconds + HORIZON, "most": count}
            found = [row.host for row in connection.execute(text(_HOSTS), values)]
            share = share or -(-count // max(1, len(found)))
            for host in found:
                if end is not None and host > end:
                    return
                yield host, "priority DESC, due_at, id", share
            if len(found) < count:
                break
            last = found[-1]


def _views(store: Store, connection: Connection, ids: Sequence[int]) -> list[Task]:
    if not ids:
        return []
    statement = text(_VIEW.format(rows=rowset(store, {"id": "int"}))).columns(lease_until=Instant())
    rows = connection.execute(statement, {"rows": packed({"id": task} for task in ids)})
    return [_task(row) for row in rows.mappings()]


def page_view(row: Mapping[Any, Any]) -> PageView:
    """A page as a visit needs it, of a row whose `page` is its id."""
    return PageView(
        id=row["page"],
        page_id=row["page_id"],
        url=row["url"],
        fetch_url=row["fetch_url"],
        status=PageState(row["status"]),
        version=row["version"],
        validators=Validators(row["etag"], row["last_modified"]),
        raw_hash=row["raw_hash"],
        content_hash=row["content_hash"],
        structure_hash=row["structure_hash"],
        reader_hash=row["reader_hash"],
        content_type=row["content_type"],
        has_body=row["stored"] is not None,
        failures=row["failures"],
        hint_stayed=bool(row["hint_stayed"]),
    )


def _task(row: Mapping[Any, Any]) -> Task:
    return Task(
        id=row["id"],
        token=row["lease_token"],
        source=row["source"],
        kind=TaskKind(row["kind"]),
        key=row["key"],
        host=row["host"],
        attempt=row["attempt"],
        crashes=row["crashes"],
        observed=row["observed"],
        lease_until=row["lease_until"],
        forced=bool(row["forced"]),
        body_hash=row["body_hash"],
        stream=row["stream"],
        cycle=row["cycle"],
        page=page_view(row) if row["page"] is not None else None,
        replay_of=row["replay_of"],
    )

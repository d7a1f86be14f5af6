"""The verb `plan`: tasks for pages that are due, and for pages whose rules have changed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, text

from recrawl.store.database import Store
from recrawl.store.see import busy
from recrawl.store.types import instant

MOST = 2000

# A page that comes with its sighting is never fetched: what is due of it is the body in hand, and absence is no concern
# of a visit.
_DUE = """
INSERT INTO tasks (source, key, kind, page, body_hash, observed, state, stage, priority, due_at, expires_at, host)
SELECT p.source, '[' || p.id || ',' || p.generation || ']', 'visit', p.id,
       CASE WHEN p.taken_at IS NULL THEN NULL ELSE p.hint END,
       CASE WHEN p.taken_at IS NULL THEN NULL ELSE p.hint_observed END, 'pending',
       CASE WHEN p.taken_at IS NULL THEN 'fetch' ELSE 'judge' END, 0, :now, :expires_at, p.host
FROM pages p WHERE p.source = :source AND p.due_at IS NOT NULL AND p.due_at <= :until
  AND (p.taken_at IS NULL OR p.status NOT IN ('suspected', 'deleted') AND EXISTS (
    SELECT 1 FROM bodies b WHERE b.hash = p.hint))
ORDER BY p.due_at, p.id LIMIT :most {skip}
ON CONFLICT DO NOTHING RETURNING page
"""
_REREAD = """
INSERT INTO tasks (source, key, kind, page, body_hash, state, stage, priority, due_at, expires_at, host, observed)
SELECT p.source, '[' || p.id || ',' || p.generation || ']', 'visit', p.id, b.hash, 'pending',
       CASE WHEN b.hash IS NULL THEN 'fetch' ELSE 'judge' END, 5, :now, :expires_at, p.host,
       CASE WHEN b.hash IS NULL THEN NULL ELSE p.observed END
FROM pages p LEFT JOIN bodies b ON b.hash = p.raw_hash
WHERE p.source = :source AND p.due_at IS NOT NULL AND (p.reader_hash < :reader OR p.reader_hash > :reader)
  AND p.status IN ('active', 'failing', 'suspected') AND (p.taken_at IS NULL OR b.hash IS NOT NULL)
ORDER BY p.id LIMIT :most {skip}
ON CONFLICT DO NOTHING RETURNING page
"""


def plan(store: Store, source: str, *, until: datetime, now: datetime, expires_at: datetime) -> int:
    """Make a visit for pages of a source that were due at `until`, at most 2,000 at a time; how many were made."""
    statement = text(_DUE.format(skip="FOR UPDATE OF p SKIP LOCKED" if store.is_postgres else "")).bindparams(
        instant("now", now), instant("until", until), instant("expires_at", expires_at)
    )
    return _insert(store, statement.bindparams(source=source, most=MOST))


def plan_rereads(store: Store, source: str, reader: str, *, now: datetime, expires_at: datetime) -> int:
    """Make a task for pages that were read by other rules than `reader`: from the stored body where there is one,
    else by one visit without validators. At most 2,000 at a time; how many were made."""
    statement = text(_REREAD.format(skip="FOR UPDATE OF p SKIP LOCKED" if store.is_postgres else "")).bindparams(
        instant("now", now), instant("expires_at", expires_at)
    )
    return _insert(store, statement.bindparams(source=source, reader=reader, most=MOST))


def _insert(store: Store, statement: object) -> int:
    def work(connection: Connection) -> int:
        made = [row.page for row in connection.execute(statement)]  # type: ignore[call-overload]
        busy(store, connection, made)
        return len(made)

    return store.write(work)

"""The verb `plan`: tasks for pages that are due, and for pages whose rules have changed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, TextClause, text

from recrawl.model.work import ASKED, NO_HOST
from recrawl.store.database import Store
from recrawl.store.see import busy
from recrawl.store.types import instant

MOST = 2000

_DUE = """
INSERT INTO tasks (source, key, kind, page, state, stage, priority, due_at, expires_at, host)
SELECT source, '[' || id || ',' || generation || ']', 'visit', id, 'pending', 'fetch', 0, :now, :expires_at, host
FROM pages WHERE source = :source AND due_at IS NOT NULL AND due_at <= :until
ORDER BY due_at, id LIMIT :most {skip}
ON CONFLICT DO NOTHING RETURNING page
"""
# The last thing that came of a failing page stands in its newest dead letter, if it was read at all. Only what must be
# fetched waits for its host.
_REREAD = """
INSERT INTO tasks
  (source, key, kind, page, body_hash, replay_of, state, stage, priority, due_at, expires_at, host, observed)
SELECT p.source, '[' || p.id || ',' || p.generation || ']', 'visit', p.id,
       CASE WHEN d.id IS NULL THEN b.hash END, d.id, 'pending',
       CASE WHEN coalesce(b.hash, d.stage) IS NULL THEN 'fetch' ELSE 'judge' END, {priority}, :now, :expires_at,
       CASE WHEN coalesce(b.hash, d.stage) IS NULL THEN p.host ELSE '{no_host}' END,
       CASE WHEN d.id IS NOT NULL THEN d.observed WHEN b.hash IS NOT NULL THEN p.observed END
FROM pages p LEFT JOIN bodies b ON b.hash = p.raw_hash
LEFT JOIN dead_letters d ON d.stage IN ('extract', 'clean') AND d.raw IS NOT NULL AND d.id = (
  SELECT l.id FROM dead_letters l WHERE p.status = 'failing' AND l.page = p.id AND l.resolved_at IS NULL
  ORDER BY l.observed DESC, l.id DESC LIMIT 1)
WHERE p.source = :source AND p.due_at IS NOT NULL AND {which}
  AND p.status IN ('active', 'failing', 'suspected')
LIMIT :most {skip}
ON CONFLICT DO NOTHING RETURNING page
"""
_BY_OTHER_RULES = "(p.reader_hash < :reader OR p.reader_hash > :reader)"
_MARKED = "p.reader_hash = ''"


def plan(store: Store, source: str, *, until: datetime, now: datetime, expires_at: datetime) -> int:
    """Make a visit for pages of a source that were due at `until`, at most 2,000 at a time; how many were made."""
    statement = text(_DUE.format(skip="FOR UPDATE SKIP LOCKED" if store.is_postgres else "")).bindparams(
        instant("now", now), instant("until", until), instant("expires_at", expires_at)
    )
    return _insert(store, statement.bindparams(source=source, most=MOST))


def plan_rereads(store: Store, source: str, reader: str, *, now: datetime, expires_at: datetime) -> int:
    """Make a task for pages that were read by other rules than `reader`: from the stored body where there is one, or
    from what a dead letter keeps, else by one visit without validators. At most 2,000 at a time; how many were made."""
    return _insert(store, _rereads(store, _BY_OTHER_RULES, 5, source, now, expires_at).bindparams(reader=reader))


def plan_marked(store: Store, source: str, *, now: datetime, expires_at: datetime) -> int:
    """Make a task for pages that `reparse.mark` marked; at most 2,000 at a time; how many were made."""
    return _insert(store, _rereads(store, _MARKED, ASKED, source, now, expires_at))


def _rereads(store: Store, which: str, priority: int, source: str, now: datetime, expires_at: datetime) -> TextClause:
    skip = "FOR UPDATE OF p SKIP LOCKED" if store.is_postgres else ""
    return text(_REREAD.format(which=which, priority=priority, no_host=NO_HOST, skip=skip)).bindparams(
        instant("now", now), instant("expires_at", expires_at), source=source, most=MOST
    )


def _insert(store: Store, statement: object) -> int:
    def work(connection: Connection) -> int:
        made = [row.page for row in connection.execute(statement)]  # type: ignore[call-overload]
        busy(store, connection, made)
        return len(made)

    return store.write(work)

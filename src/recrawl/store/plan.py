"""The verb `plan`: tasks for pages that are due, and for pages whose rules have changed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, text

from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.see import busy
from recrawl.store.types import instant

MOST = 2000
_WINDOW = 5 * MOST
"""So many due pages are looked through for those of hosts that still have room."""

# A skip scan, as in `claim`, for the hosts that have enough to do already.
_LADEN = text(
    """
    WITH RECURSIVE waiting(host) AS (
      SELECT min(host) FROM tasks WHERE state = 'pending' AND crashes = 0
      UNION ALL
      SELECT (SELECT min(t.host) FROM tasks t WHERE t.state = 'pending' AND t.crashes = 0 AND t.host > waiting.host)
      FROM waiting WHERE waiting.host IS NOT NULL
    )
    SELECT host FROM waiting WHERE host IS NOT NULL AND (
      SELECT t.id FROM tasks t WHERE t.state = 'pending' AND t.crashes = 0 AND t.host = waiting.host
      ORDER BY t.priority DESC, t.due_at, t.id LIMIT 1 OFFSET :share - 1) IS NOT NULL
    """
)
_DUE = """
INSERT INTO tasks (source, key, kind, page, state, stage, priority, due_at, expires_at, host)
SELECT :source, '[' || id || ',' || generation || ']', 'visit', id, 'pending', 'fetch', 0, :now, :expires_at, host
FROM (
  SELECT id, generation, host, due_at, row_number() OVER (PARTITION BY host ORDER BY due_at, id) AS place
  FROM (
    SELECT id, generation, host, due_at FROM pages
    WHERE source = :source AND due_at IS NOT NULL AND due_at <= :until ORDER BY due_at, id LIMIT :window {skip}
  ) AS due
  WHERE host NOT IN (SELECT host FROM {laden})
) AS ranked
WHERE place <= :share ORDER BY due_at, id LIMIT :most
ON CONFLICT DO NOTHING RETURNING page
"""
_ANY_DUE = text(
    "SELECT 1 FROM pages WHERE source = :source AND due_at IS NOT NULL AND due_at <= :until ORDER BY due_at LIMIT 1"
)
_REREAD = """
INSERT INTO tasks (source, key, kind, page, body_hash, state, stage, priority, due_at, expires_at, host, observed)
SELECT p.source, '[' || p.id || ',' || p.generation || ']', 'visit', p.id, b.hash, 'pending',
       CASE WHEN b.hash IS NULL THEN 'fetch' ELSE 'judge' END, 5, :now, :expires_at, p.host,
       CASE WHEN b.hash IS NULL THEN NULL ELSE p.observed END
FROM pages p LEFT JOIN bodies b ON b.hash = p.raw_hash
WHERE p.source = :source AND p.due_at IS NOT NULL AND (p.reader_hash < :reader OR p.reader_hash > :reader)
  AND p.status IN ('active', 'failing', 'suspected')
ORDER BY p.id LIMIT :most {skip}
ON CONFLICT DO NOTHING RETURNING page
"""


def plan(
    store: Store,
    source: str,
    *,
    until: datetime,
    now: datetime,
    expires_at: datetime,
    share: int = MOST,
    most: int = MOST,
) -> int:
    """Make a visit for pages of a source that were due at `until`, the most due first, at most 2,000 at a time; how
    many were made.

    A host that has `share` tasks to be taken up gets no more of them, and at most as many at once. `most` is what a
    budget still allows. What is left out stays due.
    """
    skip = "FOR UPDATE SKIP LOCKED" if store.is_postgres else ""
    due = text(_DUE.format(skip=skip, laden=rowset(store, {"host": "text"}, "laden"))).bindparams(
        instant("now", now), instant("until", until), instant("expires_at", expires_at)
    )
    limits = {"source": source, "share": share, "most": min(most, MOST), "window": _WINDOW}

    def work(connection: Connection) -> int:
        laden = packed({"host": row.host} for row in connection.execute(_LADEN, {"share": share}))
        made = [row.page for row in connection.execute(due, limits | {"laden": laden})]
        busy(store, connection, made)
        return len(made)

    return store.write(work)


def anything_due(store: Store, source: str, until: datetime) -> bool:
    """Whether a page of a source was due at `until` and has no task yet."""
    with store.read() as connection:
        return connection.execute(_ANY_DUE.bindparams(instant("until", until)), {"source": source}).first() is not None


def plan_rereads(store: Store, source: str, reader: str, *, now: datetime, expires_at: datetime) -> int:
    """Make a task for pages that were read by other rules than `reader`: from the stored body where there is one,
    else by one visit without validators. At most 2,000 at a time; how many were made."""
    statement = text(_REREAD.format(skip="FOR UPDATE OF p SKIP LOCKED" if store.is_postgres else "")).bindparams(
        instant("now", now), instant("expires_at", expires_at)
    )

    def work(connection: Connection) -> int:
        values = {"source": source, "reader": reader, "most": MOST}
        made = [row.page for row in connection.execute(statement, values)]
        busy(store, connection, made)
        return len(made)

    return store.write(work)

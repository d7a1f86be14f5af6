"""The verb `plan`: tasks for pages that are due, and for pages whose rules have changed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, TextClause, text

from recrawl.model.work import ASKED, NO_HOST
from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.types import instant
from recrawl.store.visits import busy

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
# A page that comes with its sighting is never fetched: what is due of it is the body in hand.
_DUE = """
INSERT INTO tasks (source, key, kind, page, body_hash, observed, state, stage, priority, due_at, expires_at, host)
SELECT :source, '[' || id || ',' || generation || ']', 'visit', id, body,
       CASE WHEN body IS NOT NULL THEN hint_observed END, 'pending',
       CASE WHEN body IS NULL THEN 'fetch' ELSE 'judge' END, 0, :now, :expires_at,
       CASE WHEN body IS NULL THEN host ELSE '{no_host}' END
FROM (
  SELECT due.*, row_number() OVER (PARTITION BY host ORDER BY due_at, id) AS place
  FROM (
    SELECT id, generation, host, due_at, hint_observed, CASE WHEN taken_at IS NOT NULL THEN hint END AS body FROM pages
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
# The last thing that came of a failing page stands in its newest dead letter, if it was read at all. Only what must be
# fetched waits for its host. That a page must be due some time is written so that no planner goes through all that are.
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
WHERE p.source = :source AND {which} AND coalesce(p.due_at, p.first_seen_at) = p.due_at
  AND p.status IN ('active', 'failing', 'suspected') AND (p.taken_at IS NULL OR coalesce(b.hash, d.stage) IS NOT NULL)
LIMIT :most {skip}
ON CONFLICT DO NOTHING RETURNING page
"""
_BY_OTHER_RULES = "(p.reader_hash < :reader OR p.reader_hash > :reader)"
_MARKED = "p.reader_hash = ''"


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
    due = text(_DUE.format(skip=skip, no_host=NO_HOST, laden=rowset(store, {"host": "text"}, "laden"))).bindparams(
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


def _insert(store: Store, statement: TextClause) -> int:
    def work(connection: Connection) -> int:
        made = [row.page for row in connection.execute(statement)]
        busy(store, connection, made)
        return len(made)

    return store.write(work)

"""Random pages of a source, and tasks to look at them."""

from __future__ import annotations

from datetime import datetime
from random import Random

from sqlalchemy import Connection, text

from recrawl.model.work import ASKED, TaskKind
from recrawl.store.database import Store
from recrawl.store.keys import task_key
from recrawl.store.rowset import packed, rowset
from recrawl.store.types import instant
from recrawl.store.visits import busy, lock_pages

_FEW = 20_000
_DRAWN = 5_000
_MOST_DRAWS = 2_000

# What comes with its sighting cannot be fetched: there is nothing to hold it against.
_SOME = text(
    "SELECT id FROM (SELECT id FROM pages WHERE source = :source AND status = 'active' AND taken_at IS NULL "
    "LIMIT :most) AS s ORDER BY id"
)
_HIT = """
SELECT p.id FROM {rows} CROSS JOIN pages p
WHERE p.id = r.id AND p.source = :source AND p.status = 'active' AND p.taken_at IS NULL
"""


def sample(store: Store, source: str, count: int, chance: Random) -> list[int]:
    """Up to `count` active pages of a source, each as likely as any other.

    Of a source with many pages numbers are drawn until enough of them hit a page: so nothing is sorted, and nothing is
    read but what is drawn.
    """
    with store.read() as connection:
        some = list(connection.execute(_SOME, {"source": source, "most": _FEW + 1}).scalars())
        if len(some) <= _FEW:
            return chance.sample(some, min(count, len(some)))
        last = int(connection.execute(text("SELECT max(id) FROM pages")).scalar_one())
        statement = text(_HIT.format(rows=rowset(store, {"id": "int"})))
        found: dict[int, None] = {}
        for _ in range(_MOST_DRAWS):
            drawn = [chance.randint(1, last) for _ in range(_DRAWN)]
            rows = packed({"id": number} for number in sorted(set(drawn)))
            hits = set(connection.execute(statement, {"rows": rows, "source": source}).scalars())
            found |= dict.fromkeys(number for number in drawn if number in hits)
            if len(found) >= count:
                break
    return list(found)[:count]


_FREE = "SELECT p.id, p.generation, p.host FROM {rows} CROSS JOIN pages p WHERE p.id = r.id AND p.due_at IS NOT NULL"
_ADD = """
INSERT INTO tasks (source, key, kind, page, forced, state, stage, priority, due_at, expires_at, host)
SELECT :source, r.key, :kind, r.page, true, 'pending', 'fetch', :priority, :now, :expires_at, r.host
FROM {rows} WHERE true
ON CONFLICT DO NOTHING RETURNING page
"""


def plan_audits(store: Store, source: str, pages: list[int], *, now: datetime, expires_at: datetime) -> list[int]:
    """A task to look at each of these pages without validators; the pages that got one. One that is being worked at is
    looked at anyway, and gets none."""

    def work(connection: Connection) -> list[int]:
        lock_pages(store, connection, sorted(pages))
        wanted = packed({"id": page} for page in sorted(pages))
        free = connection.execute(text(_FREE.format(rows=rowset(store, {"id": "int"}))), {"rows": wanted}).all()
        rows = packed({"key": task_key(row.id, row.generation), "page": row.id, "host": row.host} for row in free)
        statement = text(_ADD.format(rows=rowset(store, {"key": "text", "page": "int", "host": "text"})))
        values = {"rows": rows, "source": source, "kind": TaskKind.AUDIT, "priority": ASKED}
        times = instant("now", now), instant("expires_at", expires_at)
        added = [row.page for row in connection.execute(statement.bindparams(*times), values)]
        busy(store, connection, added)
        return added

    return store.write(work)

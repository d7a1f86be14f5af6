"""A database's content in a form that two databases can be compared by.

Left out, because two runs that come to the same differ in them: times; attempts, crashes, tokens, leases and owners;
run ids; row numbers, which are replaced by what they stand for; `observed` and the orders made of it; how often a
document was read (a reading that was cut short is begun anew, which also repeats batches); runs themselves; and what
was learned by the way of how good pages look and whom to trust, of which a killed run loses the last bit.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import inspect, text

from recrawl.store.database import Store

_LEFT_OUT = {
    "pages": {"id", "page_hash", "observed", "order_key", "hint_observed", "moved_to", "first_seen_at",
              "last_fetched_at", "last_changed_at", "change_rate", "gone_at", "due_at"},
    "aliases": {"url_hash", "page"},
    "documents": {"id", "url_hash", "cycle", "reading", "parent", "parent_reading"},
    "members": {"document", "page", "reading", "dropped"},
    "versions": {"seq", "page", "fetched_at", "observed", "order_key", "run", "xid"},
    "yields": {"page", "observed", "order_key"},
    "tasks": {"id", "key", "cycle", "page", "attempt", "crashes", "observed", "due_at", "expires_at", "lease_owner",
              "lease_token", "lease_until", "ended_at"},
    "batches": {"id", "ordinal", "observed", "start", "sighted", "cycle"},
    "batch_tasks": {"batch", "task"},
    "cursors": {"committed_at", "ended_cycle"},
    "cycles": {"id", "started_at", "finished_at"},
    "dead_letters": {"id", "task_key", "page", "observed", "order_key", "created_at", "fetched_at",
                     "resolved_at", "raw"},
    "events": {"seq", "page", "at"},
    "hosts": {"next_at", "backoff_until", "troubles", "delay", "latency", "robots_at"},
}  # fmt: skip
_SKIPPED = {
    "runs",
    "budgets",
    "profiles",
    "trust",
    "counters",
    "alembic_version",
    "bodies",
    "sources",
    "sqlite_sequence",
    "sqlite_stat1",
}
_NAMES = {
    "pages": "(SELECT m.page_id FROM pages m WHERE m.id = t.moved_to)",
    "aliases": "(SELECT p.page_id FROM pages p WHERE p.id = t.page)",
    "documents": "(SELECT d.url FROM documents d WHERE d.id = t.parent)",
    "members": "(SELECT d.url FROM documents d WHERE d.id = t.document) || ' ' || "
    "(SELECT p.page_id FROM pages p WHERE p.id = t.page) || CASE WHEN t.dropped IS NULL THEN '' ELSE ' dropped' END",
    "versions": "(SELECT p.page_id FROM pages p WHERE p.id = t.page)",
    "yields": "(SELECT p.page_id FROM pages p WHERE p.id = t.page)",
    "tasks": "(SELECT p.page_id FROM pages p WHERE p.id = t.page)",
    "batch_tasks": "(SELECT p.page_id FROM tasks k JOIN pages p ON p.id = k.page WHERE k.id = t.task)",
    "dead_letters": "(SELECT p.page_id FROM pages p WHERE p.id = t.page)",
    "events": "(SELECT p.page_id FROM pages p WHERE p.id = t.page)",
}


def dump(store: Store, base: str) -> dict[str, list[str]]:
    """Every table's rows as sorted texts, each distinct one once; the site's address is replaced."""
    tables: dict[str, list[str]] = {}
    with store.read() as connection:
        for table in sorted(set(inspect(connection).get_table_names()) - _SKIPPED):
            name = _NAMES.get(table, "NULL")
            rows = connection.execute(text(f'SELECT t.*, {name} AS stands_for FROM "{table}" t')).mappings()
            left_out = _LEFT_OUT.get(table, {"_updated_at"})
            seen = {_line({key: row[key] for key in row if key not in left_out}, base) for row in rows}
            tables[table] = sorted(seen)
        hashes = connection.execute(text("SELECT hash, size FROM bodies ORDER BY hash"))
        tables["bodies"] = [f"{row.hash} {row.size}" for row in hashes]
    return tables


def _line(row: dict[str, Any], base: str) -> str:
    plain = {key: _unnumbered(json.loads(value) if _is_json(value) else value) for key, value in row.items()}
    return json.dumps(plain, sort_keys=True, default=str, ensure_ascii=False).replace(base, "http://site")


def _unnumbered(value: Any) -> Any:
    """A point of a stream without the number of its cycle: a sequence may have skipped one."""
    return {key: part for key, part in value.items() if key != "cycle"} if isinstance(value, dict) else value


def _is_json(value: object) -> bool:
    return isinstance(value, str) and value[:1] in ("{", "[") and value[-1:] in ("}", "]")

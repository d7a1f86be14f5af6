"""What the last pass over a source says, beside what is stored: for `reconcile`."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from recrawl.store.database import Store


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the store stood before a pass: the last page, the last batch, and whether a pass is open."""

    page: int
    batch: int
    open: bool


@dataclass(frozen=True, slots=True)
class Pages:
    """So many pages, and the addresses of the first of them."""

    count: int = 0
    urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """`unlisted` is None where nothing can be told: no stream lists everything, or one was not read to its end."""

    new: Pages
    differing: Pages
    unlisted: Pages | None


_MARK = text(
    """
    SELECT coalesce((SELECT max(id) FROM pages), 0) AS page, coalesce((SELECT max(id) FROM batches), 0) AS batch,
      EXISTS (SELECT 1 FROM cycles WHERE source = :source AND state = 'open') AS open
    """
)
_CYCLE = text("SELECT id, complete FROM cycles WHERE source = :source ORDER BY id DESC LIMIT 1")
_EXHAUSTIVE = text("SELECT count(*) FROM cursors WHERE source = :source AND exhaustive AND ended_cycle = :cycle")

_NEW = "SELECT p.id, p.url FROM pages p WHERE p.source = :source AND p.id > :page"
_DIFFERING = """
SELECT DISTINCT p.id, p.url FROM batches b JOIN batch_tasks bt ON bt.batch = b.id JOIN tasks t ON t.id = bt.task
JOIN pages p ON p.id = t.page
WHERE b.id > :batch AND b.source = :source AND p.hint_observed = b.observed AND p.id <= :page
"""
_UNLISTED = """
SELECT p.id, p.url FROM pages p
WHERE p.source = :source AND p.status IN ('active', 'failing', 'suspected') AND p.id <= :page AND NOT EXISTS (
  SELECT 1 FROM members m JOIN documents d ON d.id = m.document
  JOIN cursors c ON c.source = d.source AND c.stream = d.stream
  WHERE m.page = p.id AND m.dropped IS NULL AND c.exhaustive AND d.cycle = :cycle)
"""


def mark(store: Store, source: str) -> Mark:
    with store.read() as connection:
        row = connection.execute(_MARK, {"source": source}).one()
        return Mark(row.page, row.batch, bool(row.open))


def compare(store: Store, source: str, since: Mark, most: int) -> Compared:
    """What the pass that began after `since` found, with at most `most` addresses of each kind."""
    with store.read() as connection:
        of: dict[str, object] = {"source": source, "page": since.page, "batch": since.batch, "most": most}
        cycle = connection.execute(_CYCLE, of).one()
        of["cycle"] = cycle.id
        whole = cycle.complete and connection.execute(_EXHAUSTIVE, of).scalar_one()
        return Compared(
            new=_pages(connection, _NEW, of),
            differing=_pages(connection, _DIFFERING, of),
            unlisted=_pages(connection, _UNLISTED, of) if whole else None,
        )


def _pages(connection: Connection, query: str, of: dict[str, object]) -> Pages:
    count = connection.execute(text(f"SELECT count(*) FROM ({query}) AS q"), of).scalar_one()
    urls = connection.execute(text(f"SELECT url FROM ({query}) AS q ORDER BY id LIMIT :most"), of).scalars()
    return Pages(count, tuple(urls))

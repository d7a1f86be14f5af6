"""Pages that can vouch for their host: active ones, with nothing against them."""

from __future__ import annotations

from sqlalchemy import text

from recrawl.model.work import PageView
from recrawl.store.claim import page_view
from recrawl.store.database import Store

# Some pages of the host from a point on, in the order of one index; those that nothing speaks against come first.
_SOME = text(
    """
    SELECT p.id AS page, p.page_id, p.url, p.fetch_url, p.status, p.version, p.etag, p.last_modified, p.raw_hash,
           p.content_hash, p.structure_hash, p.reader_hash, p.content_type, p.failures,
           false AS hint_stayed, b.hash AS stored
    FROM (SELECT id, misses, gone_at FROM pages
          WHERE source = :source AND status = 'active' AND host = :host AND id >= :start ORDER BY id LIMIT 50) AS near
    JOIN pages p ON p.id = near.id LEFT JOIN bodies b ON b.hash = p.raw_hash
    ORDER BY near.gone_at IS NOT NULL, near.misses, p.id LIMIT :most
    """
)
_LAST = text("SELECT max(id) FROM pages")


def pages_of_host(store: Store, source: str, host: str, *, most: int, draw: float) -> list[PageView]:
    """Up to `most` active pages of a host, from a place that `draw` in [0, 1) chooses."""
    with store.read() as connection:
        last = connection.execute(_LAST).scalar_one() or 0
        found: dict[int, PageView] = {}
        for start in (int(draw * last), 0):
            values = {"source": source, "host": host, "start": start, "most": most}
            rows = connection.execute(_SOME, values).mappings()
            found |= {row["page"]: page_view(row) for row in rows}
            if len(found) >= most:
                break
        return list(found.values())[:most]

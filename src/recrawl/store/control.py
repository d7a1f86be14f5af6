"""Pages that can vouch for their host: active ones, with nothing against them."""

from __future__ import annotations

from itertools import zip_longest

from sqlalchemy import text

from recrawl.model.work import PageView
from recrawl.store.claim import page_view
from recrawl.store.database import Store

# Some pages of the host from a point on, in the order of one index; those that nothing speaks against come first.
_SOME = text(
    """
    SELECT p.id AS page, p.page_id, p.url, p.fetch_url, p.status, p.version, p.etag, p.last_modified, p.raw_hash,
           p.content_hash, p.structure_hash, p.reader_hash, p.content_type, p.failures,
           false AS taken, false AS hinted, false AS hint_stayed, b.hash AS stored,
           near.gone_at IS NOT NULL OR near.misses > 0 AS doubted
    FROM (SELECT id, misses, gone_at FROM pages
          WHERE source = :source AND status = 'active' AND host = :host AND id >= :start
            AND taken_at IS NULL ORDER BY id LIMIT 50) AS near
    JOIN pages p ON p.id = near.id LEFT JOIN bodies b ON b.hash = p.raw_hash
    ORDER BY near.gone_at IS NOT NULL, near.misses, p.id LIMIT :most
    """
)
_LAST = text("SELECT max(id) FROM pages")


_PLACES = 4


def pages_of_host(store: Store, source: str, host: str, *, most: int, draw: float) -> list[PageView]:
    """Up to `most` active pages of a host, those first that nothing speaks against. Pages that came together may go
    together, so they are taken from several places in turn, the first of which `draw` in [0, 1) chooses."""
    with store.read() as connection:
        last = connection.execute(_LAST).scalar_one() or 0
        places = []
        for start in (*(int((draw + place / _PLACES) % 1 * last) for place in range(_PLACES)), 0):
            values = {"source": source, "host": host, "start": start, "most": most}
            places.append(connection.execute(_SOME, values).mappings().all())
    in_turn = [row for rows in zip_longest(*places) for row in rows if row is not None]
    found = {row["page"]: page_view(row) for row in sorted(in_turn, key=lambda row: bool(row["doubted"]))}
    return list(found.values())[:most]

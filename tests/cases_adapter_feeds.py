"""How the shared checks reach the public functions for sitemaps, feeds and dates."""

from __future__ import annotations

from recrawl.discover.dates import rfc_date
from recrawl.discover.feed import read_feed
from recrawl.discover.sitemap import read_sitemap

__all__ = ["feed", "rfc_date", "sitemap"]


def sitemap(data: bytes, url: str, content_type: str | None) -> list[tuple[str, str | None]]:
    document = read_sitemap(data, url, content_type)
    return [(entry.url, entry.modified) for entry in (*document.entries, *document.children)]


def feed(data: bytes, url: str) -> list[dict[str, str | None]]:
    return [
        {"id": entry.id, "link": entry.url, "updated": entry.updated, "published": entry.published}
        for entry in read_feed(data, url).entries
    ]

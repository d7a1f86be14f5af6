"""From one document to what it lists: sitemaps, indexes and feeds in one form.

A document is read as what it is, whatever the finder hoped for: an index under a sitemap's URL, a feed used as a
sitemap, a plain list of URLs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from recrawl.discover.feed import read_feed
from recrawl.discover.sitemap import iter_sitemap

BATCH = 1000


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of a document: an address as found, and what the document says of its time (None: nothing)."""

    url: str
    hint: str | None
    id: str | None = None


@dataclass(slots=True)
class Listing:
    """A document being read. `kind`, `complete` and `problems` are final once `batches` is used up."""

    kind: str
    complete: bool = True
    problems: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    next: str | None = None  # the page of a feed with older entries
    batches: Iterator[list[Listed]] = field(default_factory=lambda: iter(()))


def read_document(data: bytes, url: str, content_type: str | None, *, zone: str, feed: bool) -> Listing:
    """Begin to read a document; `feed` says that a feed is expected, so that its own ids count."""
    return _feed(data, url, content_type, zone) if feed else _sitemap(data, url, content_type, zone)


def _sitemap(data: bytes, url: str, content_type: str | None, zone: str) -> Listing:
    reading = iter_sitemap(data, url, content_type, size=BATCH, zone=zone)
    listing = Listing(kind=reading.kind)

    def batches() -> Iterator[list[Listed]]:
        for batch in reading.batches():
            listing.children += [child.url for child in batch.children]
            if batch.entries:
                yield [Listed(entry.url, entry.modified) for entry in batch.entries]
        listing.complete = reading.complete
        listing.problems = list(reading.problems)

    listing.batches = batches()
    return listing


def _feed(data: bytes, url: str, content_type: str | None, zone: str) -> Listing:
    found = read_feed(data, url, content_type, zone)
    entries = [
        Listed(entry.url, entry.updated or entry.published, entry.id)
        for entry in found.entries
        if entry.url and entry.url.lower().startswith(("http://", "https://"))
    ]
    whole = [entries[start : start + BATCH] for start in range(0, len(entries), BATCH)]
    return Listing(found.kind, found.complete, list(found.problems), next=found.next, batches=iter(whole))

"""A store that knows all items of the site already, as a sync of them leaves it, without minutes of visiting them.

What is written is what a later sync reads: pages with their hints, sitemaps as documents, and their members. Bodies,
versions and records, which no lastmod comparison looks at, are left out.

python -m benchmarks.known DATABASE SITEMAP ROOT
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from sqlalchemy import Connection, insert

from recrawl.declare import Source
from recrawl.declare.load import load
from recrawl.discover.sitemap import read_sitemap
from recrawl.model.work import PageState
from recrawl.steps.identify import identify
from recrawl.store import migrate
from recrawl.store.database import open_store
from recrawl.store.keys import identity_hash
from recrawl.store.tables import documents, members, pages

_DECLARATION = Path(__file__).with_name("reader_items.py")
_READ_AT = datetime(2026, 11, 1, tzinfo=UTC)
_NOT_DUE = timedelta(days=365)


def main(database: str, sitemap: str, root: str) -> None:
    """Make known what the index `sitemap` and its sitemaps list, whose files lie in the folder `root`."""
    (source,) = load(_DECLARATION)
    store = open_store(database)
    migrate.ready(store)
    store.write(lambda connection: _write(connection, source, sitemap, Path(root)))
    store.close()


def _write(connection: Connection, source: Source, sitemap: str, root: Path) -> None:
    stream = source.finders[0].stream
    numbers = count(1)
    waiting = [sitemap]
    for document in count(1):
        if not waiting:
            return
        url = waiting.pop(0)
        listed = read_sitemap((root / url.rpartition("/")[2]).read_bytes(), url)
        waiting += (child.url for child in listed.children)
        parent = {"parent": 1, "parent_reading": 1} if document > 1 else {}
        row = _document(source, stream, url) | parent | {"id": document, "kind": listed.kind}
        connection.execute(insert(documents).values(row))
        found = [_page(source, entry.url, entry.modified) | {"id": next(numbers)} for entry in listed.entries]
        if found:
            connection.execute(insert(pages), found)
            rows = [{"document": document, "page": page["id"], "reading": 1} for page in found]
            connection.execute(insert(members), rows)


def _document(source: Source, stream: str, url: str) -> dict[str, object]:
    return {
        "source": source.name,
        "stream": stream,
        "url": url,
        "url_hash": identity_hash(source.name, f"{stream}\0{url}"),
        "hash": "of another edition",
        "validators": {"spec": source.spec_hash},
        "reading": 1,
        "complete": True,
    }


def _page(source: Source, url: str, modified: str | None) -> dict[str, object]:
    sighting = identify(source, url, modified)
    return {
        "source": source.name,
        "page_id": sighting.page_id,
        "page_hash": identity_hash(source.name, sighting.page_id),
        "url": sighting.url,
        "fetch_url": sighting.fetch_url,
        "host": sighting.host,
        "status": PageState.ACTIVE,
        "version": 1,
        "reader_hash": source.reader_hash,
        "hint": sighting.hint,
        "first_seen_at": _READ_AT,
        "last_fetched_at": _READ_AT,
        "last_changed_at": _READ_AT,
        "due_at": datetime.now(UTC) + _NOT_DUE,
        "generation": 1,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])

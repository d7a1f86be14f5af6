"""Stored bodies as a web archive: WARC 1.1 (ISO 28500:2017), one gzip member per record, as archive tools want it.

recrawl keeps the bytes of a page, not the header of its answer: each body is a `resource` record. Bytes that were
written before are a `revisit` record that refers to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, BinaryIO

from sqlalchemy import select

from recrawl.errors import Misuse
from recrawl.store.contents import plain
from recrawl.store.database import Store
from recrawl.store.tables import bodies, pages, versions
from recrawl.version import __version__

_CHUNK = 50
_DEFAULT_TYPE = "application/octet-stream"


def export_warc(store: Store, out: BinaryIO, *, source: str | None = None) -> int:
    """Write the stored body behind each version, oldest first; how many records there were.

    Raises Misuse where warcio is not installed.
    """
    try:
        from warcio.warcwriter import WARCWriter
    except ImportError:
        action = "Install it: pip install 'recrawl[export]'."
        raise Misuse("WARC needs warcio, which is not installed", place="--format", action=action) from None
    writer = WARCWriter(out, gzip=True, warc_version="1.1")
    about = {"software": f"recrawl {__version__}", "format": "WARC File Format 1.1"}
    writer.write_record(writer.create_warcinfo_record(None, about))
    written: dict[str, tuple[str, str]] = {}
    count = 0
    for row in _bodies(store, source):
        url, at = row.final_url or row.url, _date(row.fetched_at)
        headers = {"WARC-Date": at, "WARC-Payload-Digest": f"sha256:{row.raw_hash}"}
        if row.raw_hash in written:
            record = writer.create_revisit_record(
                url, f"sha256:{row.raw_hash}", *written[row.raw_hash], warc_headers_dict=headers
            )
        else:
            written[row.raw_hash] = url, at
            record = writer.create_warc_record(
                url,
                "resource",
                payload=BytesIO(plain(row.codec, row.size, row.data)),
                length=row.size,
                warc_content_type=row.content_type or _DEFAULT_TYPE,
                warc_headers_dict=headers,
            )
        writer.write_record(record)
        count += 1
    return count


def _bodies(store: Store, source: str | None) -> Iterator[Any]:
    query = (
        select(
            pages.c.url,
            versions.c.final_url,
            versions.c.fetched_at,
            versions.c.content_type,
            versions.c.raw_hash,
            bodies.c.codec,
            bodies.c.size,
            bodies.c.data,
        )
        .join(pages, pages.c.id == versions.c.page)
        .join(bodies, bodies.c.hash == versions.c.raw_hash)
        .order_by(versions.c.seq)
    )
    if source is not None:
        query = query.where(pages.c.source == source)
    with store.read() as connection:
        yield from connection.execution_options(yield_per=_CHUNK).execute(query)


def _date(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""Reading back what is stored of one page: bodies and versions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import zstandard
from sqlalchemy import select

from recrawl.model.record import Json
from recrawl.store.database import Store
from recrawl.store.settle.letters import MOST_RAW
from recrawl.store.tables import bodies, dead_letters, pages, versions


@dataclass(frozen=True, slots=True)
class StoredLook:
    body: bytes
    fetched_at: datetime
    final_url: str | None
    content_type: str | None


def plain(codec: str, size: int, data: bytes) -> bytes:
    """The bytes of a stored body."""
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=size) if codec == "zstd" else data


def body(store: Store, raw_hash: str) -> bytes | None:
    with store.read() as connection:
        row = connection.execute(
            select(bodies.c.codec, bodies.c.size, bodies.c.data).where(bodies.c.hash == raw_hash)
        ).one_or_none()
        return plain(*row) if row else None


def last_look(store: Store, page: int, raw_hash: str) -> StoredLook | None:
    """The stored body of a page with what must be known to read it as it was read first; None if it was pruned."""
    with store.read() as connection:
        kept = connection.execute(
            select(bodies.c.codec, bodies.c.size, bodies.c.data).where(bodies.c.hash == raw_hash)
        ).one_or_none()
        if kept is None:
            return None
        known = connection.execute(select(pages).where(pages.c.id == page)).one()
        last = connection.execute(
            select(versions.c.fetched_at, versions.c.final_url)
            .where(versions.c.page == page, versions.c.raw_hash == raw_hash)
            .order_by(versions.c.seq.desc())
            .limit(1)
        ).one_or_none()
    content_type = known.content_type or ("application/json" if known.taken_at else None)
    if known.taken_at is not None and raw_hash == known.hint != known.raw_hash:
        return StoredLook(plain(*kept), known.taken_at, known.fetch_url, content_type)
    fetched_at = last.fetched_at if last else known.last_fetched_at or known.taken_at
    return StoredLook(plain(*kept), fetched_at, last.final_url if last else known.fetch_url, content_type)


def buried_look(store: Store, letter: int) -> StoredLook | None:
    """What a dead letter keeps of a look; None where it keeps nothing, or not the whole."""
    columns = ("raw", "raw_codec", "fetched_at", "created_at", "final_url", "content_type")
    with store.read() as connection:
        row = connection.execute(
            select(*(dead_letters.c[name] for name in columns)).where(dead_letters.c.id == letter)
        ).one_or_none()
    if row is None or row.raw is None:
        return None
    raw = plain(row.raw_codec, MOST_RAW, row.raw)
    if len(raw) >= MOST_RAW:
        return None
    return StoredLook(raw, row.fetched_at or row.created_at, row.final_url, row.content_type)


def records_of(store: Store, page: int, version: int) -> dict[tuple[str, str], dict[str, Json]]:
    """The records of a version, by (table, key)."""
    with store.read() as connection:
        data = connection.execute(
            select(versions.c.data).where(versions.c.page == page, versions.c.version == version)
        ).scalar_one_or_none()
    return {(item["table"], item["key"]): item["data"] for item in data or ()}


def recent_json(store: Store, source: str, most: int) -> list[bytes]:
    """The JSON bodies of pages of a source that were found first not long ago and are read well."""
    query = (
        select(bodies.c.codec, bodies.c.size, bodies.c.data)
        .join(pages, pages.c.raw_hash == bodies.c.hash)
        .where(pages.c.source == source, pages.c.status == "active", pages.c.content_type.like("%json%"))
        .order_by(pages.c.id.desc())
        .limit(most)
    )
    with store.read() as connection:
        return [plain(*row) for row in connection.execute(query)]

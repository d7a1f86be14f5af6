"""Pages that come with their sighting: items of an API that are whole records."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

import zstandard

from recrawl.decide.urls import host_of, wire_url
from recrawl.declare import Api, Source
from recrawl.declare.api import holds_items
from recrawl.discover.api import Item, dumped, order_of
from recrawl.extract.jsontext import read_json
from recrawl.model.outcome import Body
from recrawl.model.sighting import InHand, Sighting
from recrawl.steps.settling import ZSTD_LEVEL
from recrawl.steps.tools import Tools
from recrawl.store import bodies

_SMALL = 256  # bytes that compression would not make fewer


async def taken(items: Sequence[Item], api: Api, at: datetime, tools: Tools) -> list[Sighting]:
    """Sightings of items that were answered at that instant, each with its body; off the event loop, for there may be
    many."""
    written = await asyncio.to_thread(_written, items)
    stored = await tools.db(bodies.kept, [hashed for _, _, hashed in written])
    return await asyncio.to_thread(_sightings, written, stored, api, at)


def _written(items: Sequence[Item]) -> list[tuple[str, bytes, str]]:
    """The ids of items, their bodies and the hashes of these."""
    found = []
    for item in items:
        if item.id is not None:
            data = dumped(item.value)
            found.append((item.id, data, sha256(data).hexdigest()))
    return found


def _sightings(
    written: Sequence[tuple[str, bytes, str]], stored: Collection[str], api: Api, at: datetime
) -> list[Sighting]:
    host = host_of(wire_url(api.url))
    compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
    found = []
    for item, data, hashed in written:
        url = api.url_of(item)
        if api.wants(url):
            body = None if hashed in stored else _packed(hashed, data, compressor)
            found.append(Sighting(item, url, url, host, hashed, InHand(hashed, at, body)))
    return found


def _packed(hashed: str, data: bytes, compressor: zstandard.ZstdCompressor) -> Body:
    if len(data) < _SMALL:
        return Body(hashed, "plain", len(data), data)
    return Body(hashed, "zstd", len(data), compressor.compress(data))


@dataclass(frozen=True, slots=True)
class Told:
    """What the source says of the order of an item's states."""

    version: str | None = None
    updated: datetime | None = None


_NOTHING = Told()


def told_of(url: str, body: bytes, source: Source) -> Told:
    """The version and the time of an item, by the declaration of the API that it came from."""
    if source.order == "observed" or "#" not in url:
        return _NOTHING
    home = url.partition("#")[0]
    for finder in source.finders:
        if isinstance(finder, Api) and holds_items(finder) and finder.url.partition("#")[0] == home:
            return Told(*order_of(read_json(body.decode()), finder, source.zone))
    return _NOTHING

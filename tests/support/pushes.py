"""Makers for tests of pushed records: a source that waits for them, pushes, and a worker that takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import orjson

from recrawl import Moment, Price, Record, Source, Volatile, jmes, names
from recrawl.model.push import Accepted, Cleaned, Push, Queue
from recrawl.model.work import Task
from recrawl.run.inbox import Inbox
from recrawl.steps.clean import clean_chunk
from recrawl.store import claim, leases
from recrawl.store.accept import accept
from recrawl.store.database import Store
from recrawl.store.inbox import chunks_of
from tests.support.stores import NOW, rows


class Offer(Record, table="offers", key="sku", history=True, updated="changed"):
    sku: str
    title: str | None
    price: Price | None = names("price", "salePrice")
    changed: Moment | None
    seller: str | None = jmes("shop.name")
    viewers: Volatile[int | None]


def an_offer_source(**options: Any) -> Source:
    """A source without a finder: it waits for offers. It is called `offers`."""
    given: dict[str, Any] = {"read": Offer, "currency": "EUR"} | options
    return Source("offers", **given)


OFFERS = an_offer_source()


def offer(sku: str, title: str = "one", **more: object) -> dict[str, object]:
    return {"sku": sku, "title": title} | more


def push(
    store: Store,
    *found: Mapping[str, object] | bytes,
    at: datetime = NOW,
    queue: Queue = Queue.DEFAULT,
    expires_at: datetime | None = None,
    key: str | None = None,
    source: str = "offers",
) -> Accepted:
    """Push records, as bytes or as what is to be written as JSON."""
    lines = tuple(one if isinstance(one, bytes) else orjson.dumps(one) for one in found)
    return accept(store, Push(source=source, lines=lines, key=key, queue=queue, expires_at=expires_at), now=at)


def an_inbox(store: Store, *sources: Source, at: datetime = NOW, owner: str = "worker") -> Inbox:
    """A worker that is ready to take pushes, at a time that stands still."""
    inbox = Inbox(store, {source.name: source for source in sources or (OFFERS,)}, lambda: at, owner=owner)
    inbox.prepare()
    return inbox


def serve(store: Store, *sources: Source, at: datetime = NOW) -> Counter[str]:
    """Take all that waits; what it came to."""
    counts: Counter[str] = Counter()
    inbox = an_inbox(store, *sources, at=at)
    inbox.told = counts.update
    while inbox.take():
        pass
    return +counts


def claimed(store: Store) -> list[Task]:
    """What waits, claimed by a worker that does nothing with it yet."""
    specs = {OFFERS.name: OFFERS.spec_hash}
    held = claim.claim_chunks(store, 100, specs=specs, owner="other", now=NOW, until=later(minutes=1))
    assert held
    return held


def claimed_chunk(store: Store) -> Cleaned:
    """The only chunk that waits, claimed and cleaned."""
    (chunk,) = chunks_of(store, claimed(store))
    return clean_chunk(chunk, OFFERS)[0]


@contextmanager
def held_back(store: Store) -> Iterator[list[Task]]:
    """Another worker holds what waits now, and gives it back at the end."""
    an_inbox(store)
    held = claimed(store)
    yield held
    leases.release(store, [(task.id, task.token) for task in held])


def versions_of(store: Store, page_id: str) -> list[Mapping[str, Any]]:
    """The versions of a page, the oldest first."""
    sql = "SELECT v.* FROM versions v JOIN pages p ON p.id = v.page WHERE p.page_id = :id ORDER BY v.version"
    return [dict(row) for row in rows(store, sql, id=page_id)]


def titles(store: Store, sku: str) -> list[str]:
    """The titles that the versions of an offer had, the oldest first."""
    return [_data(version)[0]["data"]["title"] for version in versions_of(store, sku)]


def _data(version: Mapping[str, Any]) -> Any:
    data = version["data"]
    return orjson.loads(data) if isinstance(data, str) else data


def later(**span: float) -> datetime:
    return NOW + timedelta(**span)

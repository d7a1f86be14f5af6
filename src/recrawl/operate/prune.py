"""Retention: letting go of old versions, bodies and events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recrawl.store import prune
from recrawl.store.database import Store
from recrawl.store.prune import Pruned, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long what is kept; None keeps all. `keep` is a number of versions of each page."""

    versions: timedelta | None = None
    keep: int | None = None
    bodies: timedelta | None = None
    events: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Let:
    """What went by kind, and the space of a SQLite file; in a dry run, what would go."""

    pruned: dict[str, Pruned] = field(default_factory=dict)
    space: Space | None = None


def let_go(
    store: Store,
    retention: Retention,
    now: datetime,
    *,
    dry_run: bool = False,
    told: Callable[[str, Pruned], None] = lambda _kind, _sum: None,
) -> Let:
    """Prune by kind: versions first, since bodies that only they needed go with them. `told` hears how it gets on.

    In a dry run such bodies are not counted, so that more may go than was said.
    """
    found: dict[str, Pruned] = {}

    def take(kind: str, parts: Iterable[Pruned]) -> None:
        found[kind] = Pruned()
        for part in parts:
            found[kind] += part
            told(kind, found[kind])

    if retention.versions is not None or retention.keep is not None:
        before = now - retention.versions if retention.versions is not None else None
        take("versions", prune.prune_versions(store, before=before, keep=retention.keep, dry_run=dry_run))
    if retention.bodies is not None:
        take("bodies", prune.prune_bodies(store, before=now - retention.bodies, dry_run=dry_run))
    if retention.events is not None:
        take("events", prune.prune_events(store, before=now - retention.events, dry_run=dry_run))
        take("receipts", prune.prune_receipts(store, before=now - retention.events, dry_run=dry_run))
    return Let(found, None if dry_run else prune.give_back(store))

"""Whether a source may be worked at, and the switch for it."""

from __future__ import annotations

from recrawl.errors import Permanent
from recrawl.store import queries, sources
from recrawl.store.database import Store


def working(store: Store, name: str) -> None:
    """Raise Permanent for a source that the database does not know, or that is paused."""
    _known(store, name)
    known = sources.standing(store, name)
    if known.paused:
        reason = f": {known.paused_reason}" if known.paused_reason else ""
        raise Permanent(f"{name} is paused{reason}", place=store.place, action=f"First `recrawl resume {name}`.")


def _known(store: Store, name: str) -> None:
    if name not in queries.source_names(store):
        action = f"Begin with `recrawl sync {name}`."
        raise Permanent(f"nothing of {name!r} is stored yet", place=store.place, action=action)


def pause(store: Store, name: str, reason: str | None = None) -> None:
    """Stop all work at a source until `resume`. Raises Permanent for one that the database does not know."""
    _known(store, name)
    sources.pause(store, name, reason)


def resume(store: Store, name: str) -> None:
    """Let work at a source go on. Raises Permanent for one that the database does not know."""
    _known(store, name)
    sources.resume(store, name)

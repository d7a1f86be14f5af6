"""Whether a source may be worked at, and the switch for it."""

from __future__ import annotations

from recrawl.errors import Permanent
from recrawl.store import queries, sources
from recrawl.store.database import Store


def working(store: Store, name: str) -> None:
    """Raise Permanent for a source that the database does not know, or that is paused."""
    if name not in queries.source_names(store):
        raise Permanent(
            f"nothing of {name!r} is stored yet", place=store.place, action=f"Begin with `recrawl sync {name}`."
        )
    known = sources.standing(store, name)
    if known.paused:
        reason = f": {known.paused_reason}" if known.paused_reason else ""
        raise Permanent(f"{name} is paused{reason}", place=store.place, action=f"First `recrawl resume {name}`.")

"""Letting go what the guard holds back: a person looks at the list, and agrees to exactly that."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from recrawl.declare.checks import suggestion
from recrawl.errors import Misuse
from recrawl.store import close, queries
from recrawl.store.close import Held
from recrawl.store.database import Store


def held(store: Store, source: str) -> list[Held]:
    """The pages of a source that wait for approval. Raises Misuse for a source that the database does not know."""
    names = queries.source_names(store)
    if source not in names:
        problem = f"{source!r} is no source of this database"
        raise Misuse(problem, place=store.place, action=suggestion(source, names))
    return close.held(store, source)


def let_through(store: Store, source: str, shown: Sequence[Held]) -> int:
    """Approve the pages that were shown, and none besides; how many of them were still held."""
    return close.approve(store, source, shown, datetime.now(UTC))

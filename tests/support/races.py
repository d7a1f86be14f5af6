"""Two workers on PostgreSQL, in the one order in which they could harm each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from sqlalchemy import event

from recrawl.store.database import Store
from tests.support.stores import one


@contextmanager
def meanwhile(store: Store, statement: str, work: Callable[[], object]) -> Iterator[None]:
    """Another worker does `work` just before the first statement that begins with `statement`, which is executed when
    that worker has ended, or waits for a lock."""
    other = Thread(target=work)

    @event.listens_for(store.engine, "before_cursor_execute")
    def begin(_c: Any, _k: Any, given: str, *_: Any) -> None:
        if other.ident is None and given.startswith(statement):
            other.start()
            while other.is_alive() and not one(store, "SELECT count(*) FROM pg_locks WHERE NOT granted"):
                other.join(0.01)

    yield
    event.remove(store.engine, "before_cursor_execute", begin)
    assert other.ident is not None, f"nothing began with {statement}"
    other.join()

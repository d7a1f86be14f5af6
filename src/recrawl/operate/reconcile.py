"""A full comparison of what a source lists with what is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recrawl.operate.standing import working
from recrawl.run.engine import Engine, Result
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source, the_clock
from recrawl.store import compare, notes, retry
from recrawl.store.compare import Pages
from recrawl.store.database import Store

MOST = 100
"""So many addresses of each kind are told."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a source lists and what is stored, held against each other.

    `new` pages were unknown here, `unread` ones known but never read well: both were looked at. Of `differing` ones
    the source told another version. `unlisted` ones are kept here, and the source lists them no more; None where no
    stream lists everything or one was not read to its end.
    """

    new: Pages
    unread: int
    differing: Pages
    unlisted: Pages | None
    result: Result


async def reconcile_source(
    declared: Declared,
    store: Store,
    *,
    prepare: Callable[[Engine, Progress, int | None], None] = lambda _engine, _progress, _total: None,
) -> Reconciled:
    """Read all streams of a source wholly, believing neither validators nor hashes of documents, and compare.

    What is missing is fetched. What is not listed is judged as after any pass: it never leads to a deletion by itself.
    Raises Permanent for a source that was never synced, or is paused.
    """
    name = declared.source.name
    working(store, name)

    def watched(engine: Engine, progress: Progress) -> None:
        prepare(engine, progress, None)

    if compare.mark(store, name).open:
        # What an interrupted pass has read already would be left out of this one.
        await sync_source(declared, store, prepare=watched)
    since = compare.mark(store, name)
    now = the_clock().now()
    unread = retry.retry(store, name, failed=False, missing=True, now=now).missing
    result = await sync_source(declared, store, full=True, prepare=watched)
    found = compare.compare(store, name, since, MOST)
    told = {
        "new": found.new.count,
        "unread": unread,
        "differing": found.differing.count,
        "unlisted": found.unlisted.count if found.unlisted else None,
    }
    notes.note(store, name, "reconciled", dict(told), the_clock().now())
    return Reconciled(found.new, unread, found.differing, found.unlisted, result)

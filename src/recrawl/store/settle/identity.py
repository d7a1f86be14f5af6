"""Identity learned by reading: a page found by its address is renamed to its business id, and leaves an alias."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, select, update

from recrawl.decide.lifecycle import PageEvent, page_after
from recrawl.model.record import Json
from recrawl.model.settlement import PageFacts, Verdict
from recrawl.store.database import Store
from recrawl.store.keys import identity_hash
from recrawl.store.tables import aliases, pages


def rename(store: Store, connection: Connection, verdicts: dict[int, Verdict]) -> None:
    """Give pages the ids that were read out of them, and note their canonical addresses as aliases.

    Where another page has the id already, this address is one more way to that page: it counts as moved to it, and
    what was read here is not stored twice.
    """
    for task, verdict in sorted(verdicts.items()):
        if verdict.version is None:
            continue
        page = verdict.page
        if verdict.canonical and verdict.canonical != page.url:
            _name(store, connection, page, verdict.canonical)
        if verdict.learned_id is None or verdict.learned_id == page.page_id:
            continue
        hashed = identity_hash(page.source, verdict.learned_id)
        other = connection.execute(select(pages.c.id).where(pages.c.page_hash == hashed)).scalar_one_or_none()
        if other is None:
            connection.execute(
                update(pages).where(pages.c.id == page.id).values(page_id=verdict.learned_id, page_hash=hashed)
            )
            _name(store, connection, page, page.url)
            verdicts[task] = replace(verdict, page=replace(page, page_id=verdict.learned_id))
        elif page.version > 1:
            # It stood for something of its own before: what it shows now is its next version, whatever that is called.
            told: dict[str, Json] = {"id": verdict.learned_id, "page": other}
            verdicts[task] = replace(verdict, event=("id_conflict", told))
        else:
            verdicts[task] = _fold(store, connection, verdict, other)


def hand_on(store: Store, connection: Connection, old: PageFacts, new: PageFacts) -> tuple[PageFacts, PageFacts]:
    """Both pages after the id of the old one, if it has one of its own, went to the new one, which has none."""
    if old.page_id == old.url or new.page_id != new.url:
        return old, new
    addressed = identity_hash(old.source, old.url)
    if connection.execute(select(pages.c.id).where(pages.c.page_hash == addressed)).first():
        return old, new
    left, given = replace(old, page_id=old.url), replace(new, page_id=old.page_id)
    for page, hashed in ((left, addressed), (given, identity_hash(old.source, given.page_id))):
        connection.execute(update(pages).where(pages.c.id == page.id).values(page_id=page.page_id, page_hash=hashed))
    _name(store, connection, given, given.url)
    return left, given


def _name(store: Store, connection: Connection, page: PageFacts, url: str) -> None:
    """An alias, unless that address is another page or another page's alias already."""
    hashed = identity_hash(page.source, url)
    taken = connection.execute(
        select(pages.c.id).where(pages.c.page_hash == hashed, pages.c.id != page.id)
    ).scalar_one_or_none()
    if taken is None:
        connection.execute(
            store.insert(aliases)
            .values(url_hash=hashed, source=page.source, url=url, page=page.id)
            .on_conflict_do_nothing()
        )


def _fold(store: Store, connection: Connection, verdict: Verdict, other: int) -> Verdict:
    """This address shows what another page stands for."""
    page = verdict.page
    connection.execute(
        store.insert(aliases)
        .values(url_hash=identity_hash(page.source, page.url), source=page.source, url=page.url, page=other)
        .on_conflict_do_update(index_elements=[aliases.c.url_hash], set_={"page": other})
    )
    told: dict[str, Json] = {"id": verdict.learned_id, "page": other}
    folded = replace(
        page,
        version=0,
        content_hash=None,
        raw_hash=None,
        status=page_after(page.status, PageEvent.MOVE),
        moved_to=other,
    )
    return replace(
        verdict, page=folded, version=None, rows=None, count="moved", event=("same_id", told), learned_id=None
    )

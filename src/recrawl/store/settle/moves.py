"""Moved pages: the target is a page from then on, and takes over the records and the content of the old address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from recrawl.model.outcome import Moved
from recrawl.model.settlement import PageFacts, Settlement, Verdict
from recrawl.model.work import OPEN_STATES, PageState, TaskKind, TaskState
from recrawl.store.database import Store
from recrawl.store.keys import identity_hash, task_key
from recrawl.store.settle import identity
from recrawl.store.settle.yields import Ref
from recrawl.store.tables import aliases, batch_tasks, pages, tasks, versions, yields
from recrawl.store.visits import busy


@dataclass(frozen=True, slots=True)
class Target:
    id: int
    created: bool


def prepare_targets(
    store: Store, connection: Connection, moves: Sequence[Settlement], now: datetime
) -> dict[int, Target]:
    """The page that each moved task points to, by task; made where it is not known yet."""
    targets: dict[int, Target] = {}
    made: set[int] = set()
    for settlement in sorted(moves, key=lambda s: s.task.id):
        moved = settlement.outcome
        assert isinstance(moved, Moved)
        source = settlement.task.source
        hashed = identity_hash(source, moved.page_id)
        known = connection.execute(select(pages.c.id).where(pages.c.page_hash == hashed)).scalar_one_or_none()
        if known is None:
            known = connection.execute(
                select(aliases.c.page).where(aliases.c.url_hash == identity_hash(source, moved.url))
            ).scalar_one_or_none()
        if known is None:
            created = connection.execute(
                store.insert(pages)
                .values(
                    source=source,
                    page_id=moved.page_id,
                    page_hash=hashed,
                    url=moved.url,
                    fetch_url=moved.fetch_url,
                    host=moved.host,
                    status=PageState.NEW,
                    first_seen_at=now,
                    generation=1,
                )
                .on_conflict_do_nothing()
                .returning(pages.c.id)
            ).scalar_one_or_none()
            if created is not None:
                made.add(created)
            known = created or connection.execute(select(pages.c.id).where(pages.c.page_hash == hashed)).scalar_one()
        targets[settlement.task.id] = Target(known, known in made)
    return targets


def forget_targets(connection: Connection, targets: Mapping[int, Target], held: Set[int]) -> None:
    """Take back the pages that were made for moves whose lease turned out to be lost."""
    wanted = {target.id for task, target in targets.items() if task in held}
    unwanted = {target.id for target in targets.values() if target.created} - wanted
    if unwanted:
        connection.execute(pages.delete().where(pages.c.id.in_(unwanted)))


def hand_over(
    store: Store,
    connection: Connection,
    kept: Sequence[Settlement],
    verdicts: dict[int, Verdict],
    facts: dict[int, PageFacts],
    targets: Mapping[int, Target],
    now: datetime,
    run: int | None,
) -> set[Ref]:
    """Point moved pages at their targets, with an alias; the records that changed hands.

    A target that has no content yet begins with the id and the content of the old address, so that moving makes no
    false change. One that has keeps its own, and what only the old address yielded is gone. A page that moved to itself
    is left alone.
    """
    touched: set[Ref] = set()
    judged = {verdict.page.id: task for task, verdict in verdicts.items()}
    for settlement in kept:
        target = targets.get(settlement.task.id)
        if target is None:
            continue
        verdict = verdicts[settlement.task.id]
        old = verdict.page
        if target.id == old.id:
            # The identity folds both addresses into one page: fetch the new one from now on.
            moved = settlement.outcome
            assert isinstance(moved, Moved)
            connection.execute(update(pages).where(pages.c.id == old.id).values(fetch_url=moved.fetch_url))
            due = replace(old, status=facts[old.id].status, due_at=now)
            verdicts[settlement.task.id] = replace(verdict, page=due)
            continue
        # Nothing is known of its content any more: should it be read again, that is news, and yields records anew.
        gone = replace(old, moved_to=target.id, raw_hash=None, content_hash=None, overruled=None)
        _alias(store, connection, old.source, old.url, target.id)
        # The target may have been looked at in the same batch, or be the target of another move in it.
        beside = judged.get(target.id)
        new = facts[target.id] if beside is None else verdicts[beside].page
        taken, refs = _take_over(connection, old, new, now, run)
        touched |= refs
        if new.version == 0:
            gone, taken = identity.hand_on(store, connection, gone, taken)
        verdicts[settlement.task.id] = replace(verdict, page=gone)
        facts[target.id] = taken
        if beside is not None:
            verdicts[beside] = replace(verdicts[beside], page=taken)
        if new.status in (PageState.MOVED, PageState.DELETED) and new.due_at is not None:
            # It seemed to have gone, and is pointed to again: look.
            taken = replace(taken, due_at=now)
            connection.execute(update(pages).where(pages.c.id == new.id).values(due_at=now))
            facts[target.id] = taken
        if target.created:
            _visit(store, connection, taken, settlement.task.id, now)
    return touched


def _alias(store: Store, connection: Connection, source: str, url: str, page: int) -> None:
    connection.execute(
        store.insert(aliases)
        .values(url_hash=identity_hash(source, url), source=source, url=url, page=page)
        .on_conflict_do_update(index_elements=[aliases.c.url_hash], set_={"page": page})
    )


def _take_over(
    connection: Connection, old: PageFacts, new: PageFacts, now: datetime, run: int | None
) -> tuple[PageFacts, set[Ref]]:
    """The new page as it is after the handing over, and the records that changed hands."""
    rows = connection.execute(select(yields).where(yields.c.page == old.id)).all()
    touched = {(row.source, row.table, row.key) for row in rows}
    connection.execute(yields.delete().where(yields.c.page == old.id))
    if old.version == 0 or new.version > 0:
        return new, touched
    last = connection.execute(
        select(versions).where(versions.c.page == old.id, versions.c.version == old.version)
    ).one()
    copied = {
        name: getattr(last, name)
        for name in ("content_hash", "raw_hash", "reader_hash", "content_type", "source_updated_at", "order_key")
    }
    connection.execute(
        insert(versions).values(
            page=new.id,
            version=1,
            kind="moved",
            final_url=new.url,
            fetched_at=now,
            observed=old.observed,
            data=last.data,
            run=run,
            **copied,
        )
    )
    carried: dict[str, Any] = {
        "version": 1,
        "content_hash": old.content_hash,
        "overruled": old.overruled,
        "structure_hash": old.structure_hash,
        "reader_hash": old.reader_hash,
        "order_key": old.order_key,
        "observed": max(old.observed, new.observed),
        "last_changed_at": now,
        "change_rate": old.change_rate,
        "status": PageState.MOVED if new.status is PageState.MOVED else PageState.ACTIVE,
    }
    connection.execute(update(pages).where(pages.c.id == new.id).values(carried))
    if rows:
        connection.execute(
            insert(yields),
            [
                {
                    "page": new.id,
                    "table": row.table,
                    "key": row.key,
                    "source": row.source,
                    "version": 1,
                    "order_key": row.order_key,
                    "observed": row.observed,
                }
                for row in rows
            ],
        )
    return replace(new, **carried), touched


def _visit(store: Store, connection: Connection, target: PageFacts, task: int, now: datetime) -> None:
    """The target is visited at once; the batches that wait for the old address wait for it as well."""
    expires_at = connection.execute(select(tasks.c.expires_at).where(tasks.c.id == task)).scalar_one()
    connection.execute(
        store.insert(tasks)
        .values(
            source=target.source,
            key=task_key(target.id, target.generation),
            kind=TaskKind.VISIT,
            page=target.id,
            state=TaskState.PENDING,
            stage="fetch",
            priority=10,
            due_at=now,
            expires_at=expires_at,
            host=target.host,
        )
        .on_conflict_do_nothing()
    )
    visit = select(tasks.c.id).where(tasks.c.page == target.id, tasks.c.state.in_(OPEN_STATES)).scalar_subquery()
    waiting = select(batch_tasks.c.batch, visit).where(batch_tasks.c.task == task)
    connection.execute(store.insert(batch_tasks).from_select(["batch", "task"], waiting).on_conflict_do_nothing())
    busy(store, connection, [target.id])

"""The verbs `close` and `approve`: the only door to suspicion and deletion.

One transaction with the end of the cycle. What it costs grows with what is missed, not with what there is: pages that
something speaks against, and members that documents have dropped, stand in small indexes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, text, update

from recrawl.decide.deletion import Standing, Step, enough, step, stopped, vanishings
from recrawl.declare.policies import Deletion, seconds
from recrawl.model.record import Json
from recrawl.model.work import PageState, TaskKind
from recrawl.store import absence, removal
from recrawl.store.database import Store
from recrawl.store.tables import cycles, events, pages, tasks
from recrawl.store.visits import lock_pages


@dataclass(frozen=True, slots=True)
class Closed:
    """How a cycle ended. `complete`: every exhaustive stream reached its end without error. `deleted` has URLs.

    `held`: pages that wait for a person's word, since too many of `standing` would vanish at once.
    """

    complete: bool
    suspected: int = 0
    acquitted: int = 0
    deleted: tuple[str, ...] = ()
    held: int = 0
    standing: int = 0


def close(
    store: Store, source: str, cycle: int, policy: Deletion, now: datetime, *, longest: float = 2_592_000.0
) -> Closed | None:
    """End a cycle whose discover tasks have all ended, and judge absence; None if one has not.

    Whoever closes a cycle first judges it. A deleted page is looked at again after `longest` seconds.
    """

    def work(connection: Connection) -> Closed | None:
        if _unfinished(connection, source, cycle):
            return None
        streams = absence.exhaustive_streams(connection, source, cycle)
        complete = all(stream.ended for stream in streams)
        began = connection.execute(
            update(cycles)
            .where(cycles.c.id == cycle, cycles.c.state == "open")
            .values(state="closed", finished_at=now, complete=complete)
            .returning(cycles.c.started_at)
        ).scalar_one_or_none()
        if began is None:
            return Closed(bool(connection.scalar(select(cycles.c.complete).where(cycles.c.id == cycle))))
        missed: set[int] = set()
        if complete:
            for stream in streams:
                absence.retire_documents(connection, source, stream.name, cycle)
            missed = absence.missed(store, connection, source, [stream.name for stream in streams], began)
        found = _standings(store, connection, source, missed, began)
        plan = _guarded(connection, source, found, policy)
        closed = _act(store, connection, source, plan, policy, now, longest, complete)
        if complete:
            absence.forget_drops(connection, source)
        counts = {name: getattr(closed, name) for name in ("suspected", "acquitted", "held")}
        counts["deleted"] = len(closed.deleted)
        connection.execute(update(cycles).where(cycles.c.id == cycle).values(counts=counts))
        return closed

    return store.write(work)


def _unfinished(connection: Connection, source: str, cycle: int) -> bool:
    # Written out, so that both databases find the small index of open tasks.
    is_open = text("tasks.state IN ('pending', 'running', 'failed')")
    found = select(tasks.c.id).where(
        tasks.c.source == source, tasks.c.kind == TaskKind.DISCOVER, tasks.c.cycle == cycle, is_open
    )
    return connection.execute(found.limit(1)).first() is not None


def _standings(store: Store, connection: Connection, source: str, missed: set[int], began: datetime) -> list[Standing]:
    """The pages that something speaks against, or did, locked, and with this cycle's misses counted."""
    ids = missed | absence.watched(connection, source)
    for some in absence.in_chunks(ids):
        lock_pages(store, connection, some)
    found: list[Standing] = []
    moved: dict[str, list[int]] = {"up": [], "down": [], "since": [], "clear": []}
    for row in absence.load(store, connection, ids):
        page = _standing(row, row["id"] in missed, began)
        found.append(page)
        if page.misses != row["misses"]:
            moved["up" if page.misses else "down"].append(page.id)
        if page.absent_since != row["absent_since"]:
            moved["since" if page.absent_since else "clear"].append(page.id)
    removal.assign(store, connection, moved["up"], "misses = misses + 1")
    removal.assign(store, connection, moved["down"], "misses = 0")
    removal.assign(store, connection, moved["since"], "absent_since = :began", began=began)
    removal.assign(store, connection, moved["clear"], "absent_since = NULL")
    return found


def _standing(row: Mapping[Any, Any], missed: bool, began: datetime) -> Standing:
    misses = 0 if row["listed"] else row["misses"] + missed
    against = misses > 0 or row["gone_at"] is not None
    return Standing(
        id=row["id"],
        status=PageState(row["status"]),
        version=row["version"],
        listed=bool(row["listed"]),
        misses=misses,
        gone_at=row["gone_at"],
        confirms=row["confirms"],
        failures=row["failures"],
        absent_since=(row["absent_since"] or began) if against else None,
        held=bool(row["held"]),
        approved=bool(row["approved"]),
        taken=bool(row["taken"]),
    )


@dataclass(slots=True)
class _Plan:
    """What is to be done to which pages, once the guard has had its say."""

    steps: dict[Step, list[Standing]]
    hold: list[int] = field(default_factory=list)  # newly to wait for a person's word
    let_go: list[int] = field(default_factory=list)  # no longer to wait
    settled: list[int] = field(default_factory=list)  # approved, and nothing speaks against them any more
    held: int = 0
    standing: int = 0


def _guarded(connection: Connection, source: str, found: Sequence[Standing], policy: Deletion) -> _Plan:
    steps: dict[Step, list[Standing]] = {each: [] for each in Step}
    stop, standing = _stops(connection, source, found, policy)
    plan = _Plan(steps, standing=standing)
    for page in found:
        wanted = step(page, policy)
        ending = wanted in (Step.SUSPECT, Step.DELETE)
        suspected = page.status is PageState.SUSPECTED and wanted is not Step.ACQUIT
        waits = stop and not page.approved and (ending or suspected)
        steps[Step.KEEP if waits and ending else wanted].append(page)
        plan.held += waits
        if waits and not page.held:
            plan.hold.append(page.id)
        if page.held and not waits:
            plan.let_go.append(page.id)
        if page.approved and not ending and not suspected:
            plan.settled.append(page.id)
    return plan


def _stops(connection: Connection, source: str, found: Sequence[Standing], policy: Deletion) -> tuple[bool, int]:
    """Whether too many would vanish at once, and of how many pages.

    Pages are counted only up to where their number no longer matters.
    """
    approved = sum(page.approved and page.status is PageState.ACTIVE for page in found)
    for vanishing in vanishings(found, policy):
        most = enough(vanishing.pages, policy) + approved
        active = absence.standing(connection, source, vanishing.since, most) - approved
        if stopped(vanishing.pages, active + vanishing.suspected, policy):
            return True, active + vanishing.suspected
    return False, 0


def _act(
    store: Store,
    connection: Connection,
    source: str,
    plan: _Plan,
    policy: Deletion,
    now: datetime,
    longest: float,
    complete: bool,
) -> Closed:
    suspects, acquitted = plan.steps[Step.SUSPECT], plan.steps[Step.ACQUIT]
    removal.assign(store, connection, plan.hold, "held = true")
    removal.assign(store, connection, plan.let_go, "held = false")
    removal.assign(store, connection, plan.settled, "approved = false")
    removal.acquit(store, connection, source, acquitted, now)
    removal.suspect(connection, source, suspects, timedelta(seconds=seconds(policy.confirm_gap)), now)
    again = now + timedelta(seconds=longest)
    urls = removal.delete(store, connection, source, plan.steps[Step.DELETE], again, now)
    if plan.hold:
        told: dict[str, Json] = {"held": plan.held, "of": plan.standing, "max_vanish": policy.max_vanish}
        connection.execute(insert(events).values(source=source, kind="guard", data=told, at=now))
    return Closed(complete, len(suspects), len(acquitted), tuple(urls), plan.held, plan.standing)


# Approval


@dataclass(frozen=True, slots=True)
class Held:
    """A page that waits for a person's word before it may be suspected, or deleted."""

    id: int
    page_id: str
    url: str
    status: str
    misses: int
    gone_at: datetime | None


def held(store: Store, source: str) -> list[Held]:
    """The pages of a source that the guard holds."""
    columns = (pages.c.id, pages.c.page_id, pages.c.url, pages.c.status, pages.c.misses, pages.c.gone_at)
    where = (pages.c.source == source, absence.IS_WATCHED, pages.c.held)
    with store.read() as connection:
        return [Held(*row) for row in connection.execute(select(*columns).where(*where).order_by(pages.c.id))]


def approve(store: Store, source: str, shown: Sequence[Held], now: datetime) -> int:
    """Let these pages go on at the next close, and none besides; how many are still held and so were let through."""

    def work(connection: Connection) -> int:
        through = 0
        for some in absence.in_chunks(page.id for page in shown):
            lock_pages(store, connection, some)
            through += connection.execute(
                update(pages)
                .where(pages.c.source == source, pages.c.id.in_(some), pages.c.held)
                .values(approved=True, held=False)
            ).rowcount
        told: dict[str, Json] = {"pages": through}
        connection.execute(insert(events).values(source=source, kind="approved", data=told, at=now))
        return through

    return store.write(work)

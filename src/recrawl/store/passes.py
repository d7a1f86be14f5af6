"""What the database knows of a source's passes, and of the hosts that hold them up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import func, select

from recrawl.decide.health import Passes
from recrawl.model.work import OPEN_STATES
from recrawl.store.budgets import Spent, host_scope, source_scope, spent
from recrawl.store.database import Store
from recrawl.store.sources import standing
from recrawl.store.tables import cycles, hosts, tasks


def passes(store: Store, source: str) -> Passes:
    """The passes over a source so far."""
    of_source = select(cycles).where(cycles.c.source == source)
    with store.read() as connection:
        first = connection.execute(of_source.order_by(cycles.c.id).limit(1)).first()
        last = connection.execute(of_source.order_by(cycles.c.id.desc()).limit(1)).first()
        whole = of_source.where(cycles.c.complete.is_(True)).order_by(cycles.c.id.desc()).limit(1)
        complete = connection.execute(whole).first()
    if first is None or last is None:
        return Passes()
    ended = complete.finished_at if complete is not None else None
    return Passes(first.started_at, last.started_at, last.state == "open", ended)


@dataclass(frozen=True, slots=True)
class Held:
    """A host that is left alone until then, for the `troubles`th time in a row (0: it asked for it, or its budget is
    used up), and how many tasks of the source wait for it."""

    host: str
    until: datetime
    troubles: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a source is gone through next, and what holds it up. `every`: seconds between two passes; None where it is
    only gone through when somebody asks for it."""

    every: float | None
    next_pass: datetime | None
    budgets: list[Spent]
    held: list[Held]


def schedule(store: Store, source: str, now: datetime) -> Schedule:
    """A registered source's schedule as it stands."""
    every = standing(store, source).every
    due = passes(store, source).due(every) if every is not None else None
    with store.read() as connection:
        asked = connection.execute(select(tasks.c.host).where(tasks.c.source == source).distinct()).scalars()
        scopes = [source_scope(source), *map(host_scope, asked)]
    return Schedule(every, due, spent(store, scopes, now), held_hosts(store, source, now))


def held_hosts(store: Store, source: str, now: datetime) -> list[Held]:
    """The hosts that work of a source waits for, those with the most of it first."""
    statement = (
        select(hosts.c.host, hosts.c.backoff_until, hosts.c.troubles, func.count().label("tasks"))
        .join(tasks, tasks.c.host == hosts.c.host)
        .where(tasks.c.source == source, tasks.c.state.in_(OPEN_STATES), hosts.c.backoff_until > now.timestamp())
        .group_by(hosts.c.host, hosts.c.backoff_until, hosts.c.troubles)
        .order_by(func.count().desc(), hosts.c.host)
    )
    with store.read() as connection:
        return [
            Held(row.host, datetime.fromtimestamp(row.backoff_until, UTC), row.troubles, row.tasks)
            for row in connection.execute(statement)
        ]

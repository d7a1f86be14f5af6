"""Budgets: how many requests were taken out of what is declared, counted for all workers together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, select

from recrawl.decide.budget import Limit
from recrawl.store.database import Store
from recrawl.store.tables import budgets


def source_scope(name: str) -> str:
    return f"source {name}"


def host_scope(name: str) -> str:
    return f"host {name}"


@dataclass(frozen=True, slots=True)
class Spending:
    """How many requests are granted; where that is none, when there will be more."""

    granted: int
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """A budget as it stands: `used` of `most` in an hour or day of `span` seconds."""

    scope: str
    span: int
    most: int
    used: int


def spend(store: Store, scope: str, limits: Sequence[Limit], count: int, now: datetime) -> Spending:
    """Take up to `count` requests out of every one of these budgets, or none out of any."""
    seconds = now.timestamp()

    def work(connection: Connection) -> Spending:
        used = {limit: _used(store, connection, scope, limit, seconds) for limit in limits}
        spending = _granted(used, count, seconds)
        for limit in limits if spending.granted else ():
            connection.execute(
                budgets.update()
                .where(budgets.c.scope == scope, budgets.c.span == limit.span)
                .values(most=limit.most, began=limit.began(seconds), used=used[limit] + spending.granted)
            )
        return spending

    return store.write(work)


def _granted(used: Mapping[Limit, int], count: int, seconds: float) -> Spending:
    granted = min(count, *(limit.most - used[limit] for limit in used))
    if granted > 0:
        return Spending(granted)
    until = max(limit.ends(seconds) for limit in used if used[limit] >= limit.most)
    return Spending(0, datetime.fromtimestamp(until, UTC))


def _used(store: Store, connection: Connection, scope: str, limit: Limit, seconds: float) -> int:
    """What was taken in the present hour or day; the row is made where there is none, and locked."""
    first = {"scope": scope, "span": limit.span, "most": limit.most, "began": limit.began(seconds), "used": 0}
    connection.execute(store.insert(budgets).values(**first).on_conflict_do_nothing())
    row = connection.execute(
        select(budgets.c.began, budgets.c.used)
        .where(budgets.c.scope == scope, budgets.c.span == limit.span)
        .with_for_update()
    ).one()
    return int(row.used) if row.began >= limit.began(seconds) else 0


def left(store: Store, scope: str, limits: Sequence[Limit], count: int, now: datetime) -> Spending:
    """What `spend` would grant, which takes nothing."""
    used = {one.span: one.used for one in spent(store, [scope], now)}
    return _granted({limit: used.get(limit.span, 0) for limit in limits}, count, now.timestamp())


def spent(store: Store, scopes: Sequence[str], now: datetime) -> list[Spent]:
    """These budgets as they stand."""
    seconds = now.timestamp()
    with store.read() as connection:
        rows = connection.execute(
            select(budgets).where(budgets.c.scope.in_(scopes)).order_by(budgets.c.scope, budgets.c.span)
        )
        return [Spent(row.scope, row.span, row.most, row.used if seconds < row.began + row.span else 0) for row in rows]

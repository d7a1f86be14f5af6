"""Hosts: the verb `reserve`, and what is remembered of a host for all workers together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, select, text, update

from recrawl.decide.trouble import left_alone
from recrawl.store.database import Store
from recrawl.store.tables import hosts


@dataclass(frozen=True, slots=True)
class Host:
    """What is known of a host. `robots` is the text that applies; `robots_at` and the others are seconds since 1970."""

    host: str
    backoff_until: float = 0.0
    troubles: int = 0
    latency: float | None = None
    robots: str | None = None
    robots_at: float | None = None


def host(store: Store, name: str) -> Host:
    with store.read() as connection:
        row = connection.execute(
            select(hosts.c.backoff_until, hosts.c.troubles, hosts.c.latency, hosts.c.robots, hosts.c.robots_at).where(
                hosts.c.host == name
            )
        ).one_or_none()
        return Host(name, *row) if row else Host(name)


_RESERVE = text(
    """
    INSERT INTO hosts (host, next_at, delay) VALUES (:host, :now + :span, :delay)
    ON CONFLICT (host) DO UPDATE SET delay = excluded.delay,
      next_at = CASE WHEN hosts.next_at > :now THEN hosts.next_at ELSE :now END + :span
    RETURNING next_at, backoff_until
    """
)


def reserve(store: Store, name: str, count: int, delay: float, now: datetime) -> list[float]:
    """The next `count` request slots of a host, `delay` seconds apart, as seconds since 1970.

    One statement hands them out, so that all workers together keep the pace.
    """
    span = count * delay

    def work(connection: Connection) -> list[float]:
        row = connection.execute(_RESERVE, {"host": name, "now": now.timestamp(), "span": span, "delay": delay}).one()
        first = max(row.next_at - span, row.backoff_until)
        return [first + index * delay for index in range(count)]

    return store.write(work)


def remember_robots(store: Store, name: str, robots: str, now: datetime) -> None:
    """Keep the robots.txt text that applies to a host, and when it was asked for."""
    values = {"robots": robots, "robots_at": now.timestamp()}

    def work(connection: Connection) -> None:
        connection.execute(
            store.insert(hosts)
            .values(host=name, **values)
            .on_conflict_do_update(index_elements=[hosts.c.host], set_=values)
        )

    store.write(work)


def hold(store: Store, name: str, until: datetime) -> None:
    """Keep every worker off a host until then."""
    seconds = until.timestamp()

    def work(connection: Connection) -> None:
        connection.execute(store.insert(hosts).values(host=name).on_conflict_do_nothing())
        connection.execute(
            update(hosts).where(hosts.c.host == name, hosts.c.backoff_until < seconds).values(backoff_until=seconds)
        )

    store.write(work)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Until when a host is left alone, and how often in a row that has been so."""

    until: datetime
    troubles: int


def trouble(store: Store, name: str, now: datetime, draw: float) -> Trouble:
    """Leave a host alone that is in trouble, longer each time; where another worker has just done so, as it did."""

    def work(connection: Connection) -> Trouble:
        connection.execute(store.insert(hosts).values(host=name).on_conflict_do_nothing())
        row = connection.execute(
            select(hosts.c.backoff_until, hosts.c.troubles).where(hosts.c.host == name).with_for_update()
        ).one()
        if row.troubles and row.backoff_until > now.timestamp():
            return Trouble(datetime.fromtimestamp(row.backoff_until, UTC), row.troubles)
        until = max(now + left_alone(row.troubles, draw), datetime.fromtimestamp(row.backoff_until, UTC))
        values = {"backoff_until": until.timestamp(), "troubles": row.troubles + 1}
        connection.execute(update(hosts).where(hosts.c.host == name).values(values))
        return Trouble(until, row.troubles + 1)

    return store.write(work)


def recover(store: Store, name: str) -> None:
    """A host in trouble has answered well again."""

    def work(connection: Connection) -> None:
        connection.execute(update(hosts).where(hosts.c.host == name, hosts.c.troubles > 0).values(troubles=0))

    store.write(work)


def remember_latency(store: Store, name: str, latency: float) -> None:
    def work(connection: Connection) -> None:
        connection.execute(
            store.insert(hosts)
            .values(host=name, latency=latency)
            .on_conflict_do_update(index_elements=[hosts.c.host], set_={"latency": latency})
        )

    store.write(work)

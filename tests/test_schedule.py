"""When pages are looked at again: the rule by itself, the rule against fixed intervals, and the rule in the store."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.decide.schedule import after_look, first_rate, interval, next_look
from recrawl.store import plan
from recrawl.store.database import Store
from recrawl.store.tables import pages
from tests.support.stores import (
    NOW,
    SOURCE,
    a_changed_outcome,
    a_moved_outcome,
    a_page,
    an_unchanged_outcome,
    one,
    put,
    rows,
    sight,
    take,
    take_one,
    visited,
)

HOUR, DAY = 3600.0, 86_400.0

rates = st.floats(1e-6, 1e6)
spans = st.floats(0, 1e9)
bounds = st.tuples(st.floats(0, 30 * DAY), st.floats(0, 3650 * DAY)).map(sorted)
draws = st.floats(0, 1, exclude_max=True)


# The rule


@given(rate=rates, within=bounds, draw=draws, hinted=st.booleans())
def test_a_page_is_due_within_the_bounds_of_its_source(
    rate: float, within: list[float], draw: float, hinted: bool
) -> None:
    shortest, longest = within
    due = next_look(NOW, rate=rate, shortest=shortest, longest=longest, hinted=hinted, draw=draw)
    assert shortest - 1e-3 <= (due - NOW).total_seconds() <= longest + 1e-3


@given(rate=rates, elapsed=spans, within=bounds)
def test_a_change_never_makes_the_interval_longer_and_none_never_shorter(
    rate: float, elapsed: float, within: list[float]
) -> None:
    shortest, longest = within

    def wait(rate: float) -> float:
        return interval(rate, shortest=shortest, longest=longest)

    assert wait(after_look(rate, elapsed, changed=True)) <= wait(rate)
    assert wait(after_look(rate, elapsed, changed=False)) >= wait(rate)


@given(slow=rates, fast=rates, within=bounds)
def test_of_two_pages_the_one_that_changes_more_often_is_never_looked_at_later(
    slow: float, fast: float, within: list[float]
) -> None:
    slow, fast = sorted((slow, fast))
    shortest, longest = within
    assert interval(fast, shortest=shortest, longest=longest) <= interval(slow, shortest=shortest, longest=longest)


@given(younger=spans, older=spans, shortest=st.floats(0, 30 * DAY))
def test_of_two_new_pages_the_older_one_is_never_looked_at_sooner(
    younger: float, older: float, shortest: float
) -> None:
    younger, older = sorted((younger, older))

    def wait(age: float) -> float:
        return interval(first_rate(shortest=shortest, age=age), shortest=shortest, longest=365 * DAY)

    assert wait(younger) <= wait(older)


@given(looks=st.lists(st.booleans(), max_size=200), within=bounds, draw=draws)
def test_no_history_of_looks_makes_a_page_starve(looks: list[bool], within: list[float], draw: float) -> None:
    shortest, longest = within
    rate = first_rate(shortest=shortest, age=0)
    for changed in looks:
        rate = after_look(rate, interval(rate, shortest=shortest, longest=longest), changed=changed)
    due = next_look(NOW, rate=rate, shortest=shortest, longest=longest, hinted=False, draw=draw)
    assert due <= NOW + timedelta(seconds=longest + 1e-3)


def test_a_page_that_begins_to_change_after_years_is_looked_at_often_within_a_few_looks() -> None:
    rate = first_rate(shortest=HOUR, age=3 * 365 * DAY)
    waits = []
    for _ in range(8):
        waits.append(interval(rate, shortest=HOUR, longest=30 * DAY))
        rate = after_look(rate, waits[-1], changed=True)
    assert waits[0] > 6 * DAY
    assert waits[-1] < DAY


def test_pages_that_were_looked_at_together_come_due_apart() -> None:
    chance = Random(1)
    dues = [
        next_look(NOW, rate=None, shortest=0, longest=30 * DAY, hinted=True, draw=chance.random()) for _ in range(1000)
    ]
    a_day = [sum(due.date() == (NOW + timedelta(days=day)).date() for due in dues) for day in range(31)]
    assert max(a_day) < 250, "they spread over six days"


def test_without_a_shortest_interval_a_page_is_due_at_once_whatever_is_known_of_it() -> None:
    for rate in (1e-6, 1.0, 1e6):
        assert next_look(NOW, rate=rate, shortest=0, longest=30 * DAY, hinted=False, draw=0.9) == NOW


# The rule against fixed intervals


def _changes(chance: Random, a_day: float, days: float) -> list[float]:
    times, at = [], chance.expovariate(a_day)
    while at < days:
        times.append(at)
        at += chance.expovariate(a_day)
    return times


def _fresh(changes: list[float], looks: list[float], since: float, days: float) -> float:
    """The share of the time from `since` on in which the copy of the last look was what the page said."""
    stale = 0.0
    for look, following in zip(looks, [*looks[1:], days], strict=True):
        place = bisect_right(changes, look)
        if place < len(changes) and changes[place] < following:
            stale += max(0.0, following - max(changes[place], since))
    return 1 - stale / (days - since)


def _looks(changes: list[float], days: float, chance: Random) -> list[float]:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    at, looks, rate = 0.0, [0.0], first_rate(shortest=6 * HOUR, age=0)
    while True:
        due = next_look(start, rate=rate, shortest=6 * HOUR, longest=30 * DAY, hinted=False, draw=chance.random())
        wait = (due - start).total_seconds() / DAY
        changed = bisect_right(changes, at + wait) > bisect_right(changes, at)
        at += wait
        if at >= days:
            return looks
        looks.append(at)
        rate = after_look(rate, wait * DAY, changed=changed)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pages_are_fresher_than_with_a_fixed_interval_that_makes_as_many_requests(seed: int) -> None:
    """300 pages, most of which change now and then and some every hour (lognormal), over 120 days; scored on the
    second half, when the rule has learned."""
    chance, days, pages = Random(seed), 120.0, 300
    histories = [_changes(chance, 0.1 * exp(chance.gauss(0, 2) - 2), days) for _ in range(pages)]
    adaptive = [_looks(history, days, chance) for history in histories]
    requests = sum(look >= days / 2 for looks in adaptive for look in looks)
    every = pages * days / 2 / requests
    fixed = [number * every for number in range(int(days / every) + 1)]
    fresh = sum(map(_fresh, histories, adaptive, [days / 2] * pages, [days] * pages)) / pages
    plain = sum(_fresh(history, fixed, days / 2, days) for history in histories) / pages
    assert 1 - fresh < 0.8 * (1 - plain), f"stale {1 - fresh:.4f}, with a fixed interval {1 - plain:.4f}"


# The rule in the store


def _due_in(store: Store, page_id: str, now: datetime) -> float:
    """Seconds until a page is due."""
    with store.read() as connection:
        due = connection.execute(pages.select().where(pages.c.page_id == page_id)).one().due_at
    return float((due - now).total_seconds())


def _planned(store: Store, now: datetime) -> int:
    return plan.plan(store, SOURCE, until=now, now=now, expires_at=now + timedelta(days=7))


def test_looks_that_find_nothing_new_grow_further_apart_and_one_that_does_brings_them_together(store: Store) -> None:
    visited(store, (a_page("a"), "one"))
    now, waits = NOW, [_due_in(store, "a", NOW)]
    for _ in range(4):
        now += timedelta(seconds=waits[-1])
        assert _planned(store, now) == 1
        task = take_one(store, now=now)
        put(store, (task, an_unchanged_outcome(task, at=now)), now=now)
        waits.append(_due_in(store, "a", now))
    assert waits == sorted(waits)
    assert waits[-1] > 1.5 * waits[0]
    now += timedelta(seconds=waits[-1])
    _planned(store, now)
    task = take_one(store, now=now)
    put(store, (task, a_changed_outcome(task, "two", at=now)), now=now)
    assert _due_in(store, "a", now) < waits[-1]


def test_a_page_that_its_source_dates_long_ago_is_due_later_than_a_recent_one(store: Store) -> None:
    sight(store, a_page("old"), a_page("recent"), a_page("undated"))
    ages = {"old": timedelta(days=2000), "recent": timedelta(hours=1), "undated": None}
    for task in take(store):
        assert task.page is not None
        age = ages[task.page.page_id]
        put(store, (task, a_changed_outcome(task, updated=NOW - age if age else None)), order="updated")
    old, recent, undated = (_due_in(store, name, NOW) for name in ("old", "recent", "undated"))
    assert undated <= recent < old
    assert old > 5 * DAY


def test_a_page_with_a_hint_is_left_until_the_longest_interval_is_nearly_over(store: Store) -> None:
    visited(store, (a_page("a", "monday"), "one"))
    assert 24 * DAY <= _due_in(store, "a", NOW) <= 30 * DAY


def test_what_was_learned_of_a_page_goes_with_it_when_it_moves(store: Store) -> None:
    visited(store, (a_page("a"), "one"))
    _planned(store, NOW + timedelta(days=1))
    task = take_one(store)
    known = one(store, "SELECT change_rate FROM pages WHERE page_id = 'a'")
    put(store, (task, a_moved_outcome(task, "b")))
    assert one(store, "SELECT change_rate FROM pages WHERE page_id = 'b'") == known


def test_reading_stored_bytes_again_teaches_nothing_about_changes(store: Store) -> None:
    visited(store, (a_page("a"), "one"))
    known = rows(store, "SELECT change_rate FROM pages")
    assert plan.plan_rereads(store, SOURCE, "reader-2", now=NOW, expires_at=NOW + timedelta(days=7)) == 1
    task = take_one(store)
    unchanged = an_unchanged_outcome(task)
    put(store, (task, replace(unchanged, look=replace(unchanged.look, requests=0))))
    assert rows(store, "SELECT change_rate FROM pages") == known

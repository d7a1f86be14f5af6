"""Hosts in trouble: left alone, while others go on and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.decide.trouble import in_trouble, left_alone
from recrawl.declare import Record, Sitemap, Source, Urls, css
from recrawl.run import wire
from recrawl.run.engine import Ending, Result
from recrawl.run.wire import Declared, sync_source
from recrawl.store import hosts
from recrawl.store.database import Store
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import HOST, NOW, one, rows


class Thing(Record, table="things", key="sku"):
    sku: str = css("b::text")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSite]:
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")
    monkeypatch.setenv("RECRAWL_SEED", "1")
    with ScriptedSite() as running:
        yield running


_skus = count()


def good() -> Reply:
    return Reply(f"<b>{next(_skus)}</b>")


def sync(source: Source, store: Store) -> Result:
    return asyncio.run(sync_source(Declared(source, "test"), store))


def later(**span: float) -> None:
    """Let the virtual clock go on."""
    wire._VIRTUAL.ahead += timedelta(**span)


def dead_site() -> str:
    """The address of a site at which nothing listens any more."""
    with ScriptedSite() as gone:
        return gone.url


# The rule


@given(st.lists(st.booleans(), max_size=60))
def test_a_host_is_in_trouble_if_its_last_five_ends_or_over_half_of_its_last_twenty_were_bad(ends: list[bool]) -> None:
    five = len(ends) >= 5 and all(ends[-5:])
    half = len(ends) >= 20 and sum(ends[-20:]) > 10
    assert in_trouble(ends) is (five or half)


@given(times=st.integers(0, 10_000), draw=st.floats(0, 1, exclude_max=True))
def test_it_is_left_alone_longer_each_time_and_for_an_hour_at_most(times: int, draw: float) -> None:
    wait = left_alone(times, draw)
    assert timedelta(seconds=22) < wait <= timedelta(hours=1)
    assert left_alone(times + 1, draw) >= wait


# In the store


def test_workers_that_find_a_host_in_trouble_at_once_leave_it_alone_once(store: Store) -> None:
    first = hosts.trouble(store, HOST, NOW, 0.0)
    assert hosts.trouble(store, HOST, NOW + timedelta(seconds=1), 0.9) == first
    second = hosts.trouble(store, HOST, first.until, 0.0)
    assert second.until - first.until == 2 * (first.until - NOW)
    hosts.recover(store, HOST)
    third = hosts.trouble(store, HOST, second.until, 0.0)
    assert third.until - second.until == first.until - NOW


# In a run


@pytest.mark.parametrize("dead", ["refused", "no name"])
def test_a_dead_host_neither_holds_the_run_nor_loses_its_work_and_others_go_on(
    site: ScriptedSite, empty: Store, dead: str
) -> None:
    base = dead_site() if dead == "refused" else "http://nowhere.invalid"
    paths = [f"/{number}" for number in range(30)]
    for path in paths:
        site[path] = good()
    urls = Urls([f"{there}{path}" for path in paths for there in (base, site.url)])
    result = sync(Source("shop", find=urls, read=Thing), empty)
    assert result.ending is Ending.WAITING
    assert result.until is not None
    assert result.progress.counts["new"] == 30
    assert result.progress.dead == 0
    (waiting,) = rows(empty, "SELECT count(*) AS tasks, max(attempt) AS attempts, max(state) AS worst FROM tasks "
                      "WHERE state IN ('pending', 'failed', 'dead', 'expired')")  # fmt: skip
    assert waiting["tasks"] == 30
    assert waiting["attempts"] <= 1, "but for the first few, whose failures were not yet the host's"
    assert one(empty, "SELECT count(*) FROM tasks WHERE kind = 'visit' AND state IN ('dead', 'expired')") == 0


def test_a_host_that_answers_500_to_all_is_asked_less_and_less_and_then_gone_on_with(
    site: ScriptedSite, empty: Store
) -> None:
    paths = [f"/{number}" for number in range(60)]
    site.sitemap(paths)
    for path in paths:
        site[path] = Reply("oops", 500)
    source = Source("shop", find=Sitemap(f"{site.url}/sitemap.xml"), read=Thing, max_attempts=2)
    for _ in range(4):
        assert sync(source, empty).ending is Ending.WAITING
        later(hours=1)
    assert len(site.paths()) < 100, "some at each of its tries, and not each page as often as it could"
    assert one(empty, "SELECT count(*) FROM dead_letters") == 0
    assert one(empty, "SELECT troubles FROM hosts") >= 4
    assert "is left alone until" in one(empty, "SELECT max(error) FROM tasks WHERE state = 'failed'")
    for path in paths:
        site[path] = good()
    result = sync(source, empty)
    assert result.ending is Ending.FINISHED
    assert result.progress.counts["new"] == 60
    assert one(empty, "SELECT troubles FROM hosts") == 0


def test_pages_that_fail_again_and_again_at_the_end_of_a_run_are_their_own_trouble(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    paths = [f"/{number}" for number in range(40)]
    site.sitemap(paths)
    for number, path in enumerate(paths):
        site[path] = Reply("oops", 500) if number % 5 == 0 else good()
    source = Source("shop", find=Sitemap(f"{site.url}/sitemap.xml"), read=Thing)
    for _ in range(2):
        result = sync(source, sqlite_store)
        assert result.ending is Ending.FAILURES
        assert result.progress.counts["failed"] == 8
    assert one(sqlite_store, "SELECT sum(troubles) FROM hosts") == 0


def test_a_host_that_asks_to_wait_for_a_day_makes_runs_end_as_waiting_and_loses_nothing(
    site: ScriptedSite, empty: Store
) -> None:
    paths = [f"/{number}" for number in range(20)]
    site.sitemap(paths)
    for path in paths:
        site[path] = good()
    source = Source("shop", find=Sitemap(f"{site.url}/sitemap.xml"), read=Thing)
    sync(source, empty)
    for path in ["/sitemap.xml", *paths]:
        site[path] = Reply("busy", 503, {"Retry-After": "86400"})
    site.forget()
    for _ in range(24):
        result = sync(source, empty)
        assert result.ending is Ending.WAITING
        assert result.until is not None
        later(seconds=(result.until - wire._VIRTUAL.now()).total_seconds() + 1)
    assert len(site.asked) < 24 * 20
    site.sitemap(paths)
    for number, path in enumerate(paths):
        site[path] = Reply(f"<b>new {number}</b>")
    result = sync(source, empty)
    assert result.ending is Ending.FINISHED
    assert result.progress.counts["changed"] == 20
    assert one(empty, "SELECT count(*) FROM dead_letters") == 0
    assert one(empty, "SELECT count(*) FROM tasks WHERE kind = 'visit' AND state IN ('dead', 'expired')") == 0


def test_work_for_a_dead_host_expires_when_it_is_older_than_the_source_allows(site: ScriptedSite, empty: Store) -> None:
    paths = [f"/{number}" for number in range(30)]
    for path in paths:
        site[path] = good()
    base = dead_site()
    urls = Urls([f"{there}{path}" for path in paths for there in (base, site.url)])
    source = Source("shop", find=urls, read=Thing, max_age="2h")
    assert sync(source, empty).ending is Ending.WAITING
    assert one(empty, "SELECT count(*) FROM tasks WHERE state = 'expired'") == 0
    later(hours=3)
    sync(source, empty)
    assert one(empty, "SELECT count(*) FROM tasks WHERE state = 'expired'") == 30

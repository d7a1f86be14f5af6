"""Budgets: so many requests an hour or a day, of all workers together; what does not fit waits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from recrawl.decide.budget import DAY, HOUR, Limit, block, of_host, of_source
from recrawl.declare import Budget, Record, Sitemap, Source, Urls, css
from recrawl.declare.toml import read_toml
from recrawl.errors import Misuse
from recrawl.run import wire
from recrawl.run.engine import Ending, Result
from recrawl.run.wire import Declared, sync_source
from recrawl.store import budgets, plan
from recrawl.store.budgets import Spending
from recrawl.store.database import Store
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import NOW, SOURCE, a_page, one, rows, visited

NOON = datetime(2026, 11, 30, 12, 10, tzinfo=UTC)
SCOPE = budgets.source_scope("shop")


class Thing(Record, table="things", key="sku"):
    sku: str = css("b::text")


def sync(source: Source, store: Store) -> Result:
    return asyncio.run(sync_source(Declared(source, "test"), store))


def until_tomorrow() -> None:
    now = wire._VIRTUAL.now()
    tomorrow = now.replace(hour=0, minute=0, second=1) + timedelta(days=1)
    wire._VIRTUAL.ahead += tomorrow - now


# Declaring one


def test_a_budget_is_declared_alike_in_python_and_in_toml() -> None:
    declared = Source("a", find=Urls(["https://a.example/"]), budget=Budget(per_day=1000, host_per_hour=50))
    (read,) = read_toml(
        b'[source.a]\nfind = { urls = ["https://a.example/"] }\nbudget = { per_day = 1000, host_per_hour = 50 }'
    )
    assert read.budget == declared.budget
    assert of_source(read.budget) == (Limit(DAY, 1000),)
    assert of_host(read.budget) == (Limit(HOUR, 50),)


@pytest.mark.parametrize("wrong", [{"per_day": 0}, {"per_day": "many"}])
def test_a_budget_that_allows_nothing_or_is_no_number_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(Misuse) as refusal:
        Source("a", find=Urls(["https://a.example/"]), budget=Budget(**wrong))
    assert "source.a.budget.per_day" in refusal.value.place


def test_a_worker_takes_a_hundredth_of_a_budget_at_once_at_most() -> None:
    for most in (1, 99, 100, 5000, 1_000_000):
        assert block((Limit(DAY, most),)) <= max(1, most // 100)


# In the store


def test_no_more_is_granted_than_the_tightest_budget_has(store: Store) -> None:
    limits = (Limit(HOUR, 3), Limit(DAY, 5))
    assert budgets.spend(store, SCOPE, limits, 2, NOON) == Spending(2)
    assert budgets.spend(store, SCOPE, limits, 2, NOON) == Spending(1)
    assert budgets.spend(store, SCOPE, limits, 1, NOON) == Spending(0, NOON.replace(hour=13, minute=0))
    assert budgets.spend(store, SCOPE, limits, 9, NOON + timedelta(hours=1)) == Spending(2)
    midnight = datetime(2026, 12, 1, tzinfo=UTC)
    assert budgets.spend(store, SCOPE, limits, 1, NOON + timedelta(hours=2)) == Spending(0, midnight)
    assert budgets.spend(store, SCOPE, limits, 1, midnight) == Spending(1)


def test_a_clock_that_is_behind_grants_nothing_twice(store: Store) -> None:
    limits = (Limit(HOUR, 3),)
    assert budgets.spend(store, SCOPE, limits, 3, NOON) == Spending(3)
    assert budgets.spend(store, SCOPE, limits, 3, NOON - timedelta(hours=1)).granted == 0


def test_many_workers_at_once_are_granted_as_much_as_there_is_and_no_more(store: Store) -> None:
    granted: list[int] = []

    def work() -> None:
        for _ in range(10):
            granted.append(budgets.spend(store, SCOPE, (Limit(DAY, 50),), 3, NOON).granted)

    workers = [Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(granted) == 50
    assert one(store, "SELECT used FROM budgets") == 50


def test_a_plan_gives_each_host_some_minutes_of_work_and_the_most_due_first(store: Store) -> None:
    visited(store, *((a_page(str(number)), "one") for number in range(10)))
    due = NOW + timedelta(days=40)

    def planned(share: int, most: int = 2000) -> int:
        last = due + timedelta(days=7)
        return plan.plan(store, SOURCE, until=due, now=due, expires_at=last, share=share, most=most)

    soonest = [row["id"] for row in rows(store, "SELECT id FROM pages ORDER BY due_at, id LIMIT 4")]
    assert planned(share=4) == 4
    assert [row["page"] for row in rows(store, "SELECT page FROM tasks WHERE state = 'pending' ORDER BY id")] == soonest
    assert planned(share=4) == 0, "the host has enough to do"
    assert planned(share=10, most=2) == 2, "as many as a budget still allows"
    assert plan.anything_due(store, SOURCE, due)


# In a run


def test_a_source_makes_as_many_requests_as_its_budget_allows_and_the_rest_waits_for_the_next_day(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    paths = [f"/{number}" for number in range(20)]
    site.sitemap(dict.fromkeys(paths, "2026-01-01"))
    for number, path in enumerate(paths):
        site[path] = Reply(f"<b>{number}</b>")
    source = Source(
        "shop", find=Sitemap(f"{site.url}/sitemap.xml"), read=Thing, budget=Budget(per_day=10), max_attempts=1
    )
    until_tomorrow()
    endings = []
    for _ in range(3):
        endings.append(sync(source, sqlite_store).ending)
        assert len(site.asked) <= 10, "robots.txt and the sitemap are requests, too"
        site.forget()
        until_tomorrow()
    assert endings == [Ending.WAITING, Ending.WAITING, Ending.FINISHED]
    assert one(sqlite_store, "SELECT count(*) FROM things") == 20
    assert one(sqlite_store, "SELECT count(*) FROM dead_letters") == 0
    assert one(sqlite_store, "SELECT max(attempt) FROM tasks WHERE kind = 'visit'") == 1


def test_pages_that_are_due_wait_for_the_budget_without_a_task(site: ScriptedSite, sqlite_store: Store) -> None:
    urls = Urls([f"{site.url}/{number}" for number in range(8)])
    for number in range(8):
        site[f"/{number}"] = Reply(f"<b>{number}</b>")
    until_tomorrow()
    sync(Source("shop", find=urls, read=Thing), sqlite_store)
    site.forget()
    limited = Source("shop", find=urls, read=Thing, budget=Budget(per_day=5))
    result = sync(limited, sqlite_store)
    assert (len(site.asked), result.ending) == (5, Ending.WAITING)
    site.forget()
    assert sync(limited, sqlite_store).ending is Ending.WAITING
    assert site.asked == []
    until_tomorrow()
    result = sync(limited, sqlite_store)
    assert result.until is None or result.until > wire._VIRTUAL.now()


def test_a_host_that_is_used_up_is_left_alone_and_others_go_on(site: ScriptedSite, sqlite_store: Store) -> None:
    with ScriptedSite() as other:
        for there in (site, other):
            for number in range(6):
                there[f"/{number}"] = Reply(f"<b>{there.url}/{number}</b>")
        urls = [f"{site.url}/{number}" for number in range(6)] + [f"{other.url}/0", f"{other.url}/1"]
        until_tomorrow()
        source = Source("shop", find=Urls(urls), read=Thing, budget=Budget(host_per_day=4))
        result = sync(source, sqlite_store)
        assert result.ending is Ending.WAITING
        assert len(site.asked) == 4
        assert other.paths() == ["/0", "/1"]
        (held,) = rows(sqlite_store, "SELECT host FROM hosts WHERE backoff_until > 0")
        assert held["host"] in site.url

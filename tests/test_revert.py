"""`revert`: an older version is current again, until the source itself changes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.declare import Moment, Price, Record, Sitemap, Source, Volatile, css
from recrawl.errors import Permanent
from recrawl.operate.revert import revert_page
from recrawl.run.wire import Declared, sync_source
from recrawl.store import queries
from recrawl.store.database import Store
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import NOW, a_changed_outcome, a_page, one, put, rows, sight, take, visited


class Thing(Record, table="things", key="sku", history=True):
    sku: str = css("b::text")
    name: str = css("h1::text")
    price: Price | None = css("i::text")
    made: Moment | None = css("time::text")
    viewers: Volatile[int | None] = css("u::text")
    tags: list[str] = css("li::text")


class Louder(Record, table="things", key="sku", history=True):
    sku: str = css("b::text")
    name: str = css("h2::text")
    price: Price | None = css("i::text")
    made: Moment | None = css("time::text")
    viewers: Volatile[int | None] = css("u::text")
    tags: list[str] = css("li::text")


def page(name: str, viewers: int = 1) -> Reply:
    return Reply(
        f"<h1>{name}</h1><h2>{name.upper()}</h2><b>1</b><i>$9.50</i><time>2026-01-02</time><u>{viewers}</u><li>new</li>"
    )


@pytest.fixture
def site(site: ScriptedSite) -> ScriptedSite:
    site.sitemap(["/a"])
    return site


def sync(site: ScriptedSite, store: Store, reader: Any = Thing) -> None:
    declared = Source("shop", find=Sitemap(f"{site.url}/sitemap.xml"), read=reader, forced_looks=0.0, page_id="sku")
    asyncio.run(sync_source(Declared(declared, "test"), store))


def back(store: Store, version: int) -> int | None:
    # As another process does it, which holds no declaration.
    store.record_tables.clear()
    (found,) = queries.find_pages(store, ["1"], None)
    return revert_page(store, found, version, NOW)


def shown(store: Store) -> str:
    name: str = one(store, "SELECT name FROM things")
    return name


def kinds(store: Store) -> list[str]:
    return [row["kind"] for row in rows(store, "SELECT kind FROM versions ORDER BY seq")]


def test_the_old_content_is_shown_as_it_was_and_stays_while_the_source_does_not_change(
    site: ScriptedSite, empty: Store
) -> None:
    for name in ("lamp", "wrong"):
        site["/a"] = page(name)
        sync(site, empty)
    first = "SELECT sku, name, price_amount, price_currency, made, made_precision, tags FROM things"
    assert back(empty, 1) == 3
    assert shown(empty) == "lamp"
    (row,) = rows(empty, first)
    assert (float(row["price_amount"]), row["price_currency"], row["made_precision"]) == (9.5, "USD", "day")
    assert str(row["made"]).startswith("2026-01-02")
    assert one(empty, "SELECT count(*) FROM things_history") == 3
    for viewers in (1, 2, 3):  # other bytes, the same business content
        site["/a"] = page("wrong", viewers)
        sync(site, empty)
        assert shown(empty) == "lamp"
    assert kinds(empty) == ["created", "updated", "reverted"]


def test_a_change_of_the_source_ends_it(site: ScriptedSite, empty: Store) -> None:
    for name in ("lamp", "wrong"):
        site["/a"] = page(name)
        sync(site, empty)
    back(empty, 1)
    site["/a"] = page("third")
    sync(site, empty)
    assert shown(empty) == "third"
    site["/a"] = page("wrong")
    sync(site, empty)
    assert shown(empty) == "wrong", "what was set aside then counts as any other content"
    assert kinds(empty) == ["created", "updated", "reverted", "updated", "updated"]


def test_a_source_that_comes_to_agree_may_change_again(site: ScriptedSite, empty: Store) -> None:
    for name in ("lamp", "wrong"):
        site["/a"] = page(name)
        sync(site, empty)
    back(empty, 1)
    for name in ("lamp", "wrong"):
        site["/a"] = page(name)
        sync(site, empty)
    assert shown(empty) == "wrong"
    assert kinds(empty) == ["created", "updated", "reverted", "updated"]


def test_new_rules_do_not_undo_it(site: ScriptedSite, empty: Store) -> None:
    for name in ("lamp", "wrong"):
        site["/a"] = page(name)
        sync(site, empty)
    back(empty, 1)
    sync(site, empty, Louder)
    sync(site, empty, Louder)
    assert shown(empty) == "lamp"
    site["/a"] = page("third")
    sync(site, empty, Louder)
    assert shown(empty) == "THIRD"


def test_reverting_twice_or_to_what_is_current_changes_nothing(site: ScriptedSite, empty: Store) -> None:
    for name in ("lamp", "wrong"):
        site["/a"] = page(name)
        sync(site, empty)
    assert back(empty, 2) is None
    assert back(empty, 1) == 3
    assert back(empty, 1) is None
    assert back(empty, 2) == 4
    assert shown(empty) == "wrong"
    assert one(empty, "SELECT overruled FROM pages") is None


def test_a_look_that_is_under_way_meanwhile_does_not_undo_it(store: Store) -> None:
    visited(store, (a_page("a", "1"), "lamp"))
    for hint, title in (("2", "wrong"), ("3", "wrong")):
        sight(store, a_page("a", hint))
        (task,) = take(store)
        if hint == "3":
            (found,) = queries.find_pages(store, ["a"], None)
            revert_page(store, found, 1, NOW)
        put(store, (task, a_changed_outcome(task, title)))
    assert one(store, "SELECT title FROM things") == "lamp"
    assert kinds(store) == ["created", "updated", "reverted"]


@pytest.mark.parametrize("status", ["deleted", "moved", "new"])
def test_a_page_without_current_content_cannot_be_reverted(store: Store, status: str) -> None:
    visited(store, (a_page("a"), "one"))
    with store.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE pages SET status = '{status}'")
    (found,) = queries.find_pages(store, ["a"], None)
    with pytest.raises(Permanent, match=f"is {status}"):
        revert_page(store, found, 1, NOW)


def test_the_command_names_the_new_version_and_refuses_one_that_is_not_there(store: Store, store_address: str) -> None:
    visited(store, (a_page("a", "1"), "one"))
    sight(store, a_page("a", "2"))
    put(store, *((task, a_changed_outcome(task, "two")) for task in take(store)))
    told = CliRunner().invoke(app, ["revert", "a", "1", "--json", "--store", store_address])
    assert json.loads(told.stdout)["version"] == 3
    told = CliRunner().invoke(app, ["revert", "a", "1", "--store", store_address])
    assert (told.exit_code, "already" in told.stdout) == (0, True)
    told = CliRunner().invoke(app, ["revert", "a", "9", "--store", store_address])
    assert (told.exit_code, "no version 9" in told.stderr) == (1, True)

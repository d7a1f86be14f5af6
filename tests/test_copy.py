"""A database copied to the other kind: everything is there, and a sync goes on in the copy; exports of what changed."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.declare import Moment, Price, Record, Sitemap, Source, css
from recrawl.errors import Misuse
from recrawl.run.engine import Ending, Result
from recrawl.run.wire import Declared, sync_source
from recrawl.store import queries, recordtables
from recrawl.store.changes import changes
from recrawl.store.copy import copy
from recrawl.store.database import Store, open_store
from recrawl.store.tables import metadata
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import NOW, a_changed_outcome, a_page, one, put, sight, take, visited


class Thing(Record, table="things", key="sku", history=True):
    sku: str = css("b::text")
    name: str = css("h1::text")
    price: Price | None = css("i::text")
    made: Moment | None = css("time::text")
    tags: list[str] = css("li::text")


def page(sku: str, name: str) -> Reply:
    return Reply(f"<h1>{name}</h1><b>{sku}</b><i>€ 9.50</i><time>2026-01-02</time><li>{name}</li><li>é中</li>")


@pytest.fixture
def site(site: ScriptedSite) -> ScriptedSite:
    site.sitemap({"/a": "2026-01-01", "/b": "2026-01-01", "/bad": "2026-01-01"})
    site["/a"], site["/b"], site["/bad"] = page("a", "lamp"), page("b", "chair"), Reply("<h1>no</h1>")
    return site


def sync(site: ScriptedSite, store: Store) -> Result:
    declared = Source("shop", find=Sitemap(f"{site.url}/sitemap.xml"), read=Thing, forced_looks=0.0)
    return asyncio.run(sync_source(Declared(declared, "test"), store))


def content(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, as values."""
    with store.read() as connection:
        found = [recordtables.present(connection, name) for name in queries.record_tables(connection)]
        tables = [*metadata.sorted_tables, *(one.table for one in found if one)]
        return {
            table.name: [
                tuple(row)
                for row in connection.execute(
                    select(*(column for column in table.c if column.name != "xid")).order_by(*table.primary_key)
                )
            ]
            for table in tables
            if table.name != "counters"
        }


@pytest.fixture(params=["sqlite to postgres", "postgres to sqlite", "sqlite to sqlite"])
def pair(request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path) -> Iterator[tuple[Store, Store]]:
    kinds = request.param.split(" to ")
    stores = []
    for kind, name in zip(kinds, ("old", "new"), strict=True):
        path = tmp_path / f"{name}.db"
        if kind == "sqlite" and name == "old":
            shutil.copyfile(sqlite_template, path)
        stores.append(open_store(request.getfixturevalue("postgres_address") if kind == "postgres" else str(path)))
    yield stores[0], stores[1]
    for store in stores:
        store.close()


def test_everything_is_in_the_copy_and_a_sync_goes_on_there(site: ScriptedSite, pair: tuple[Store, Store]) -> None:
    old, new = pair
    sync(site, old)
    site["/a"] = page("a", "better lamp")
    site.sitemap({"/a": "2026-02-02", "/b": "2026-01-01", "/bad": "2026-01-01"})
    sync(site, old)
    counts = copy(old, new)
    assert counts["pages"] == 3
    assert counts["versions"] == 3
    assert counts["things"] == 2
    assert content(new) == content(old)
    assert one(new, "SELECT count(*) FROM things_history") == 3
    assert [row.page_id for row in changes(new).rows] == [row.page_id for row in changes(old).rows]
    site["/c"] = page("c", "table")
    site.sitemap({"/a": "2026-02-02", "/b": "2026-03-03", "/c": "2026-01-01"})
    site.forget()
    result = sync(site, new)
    assert result.ending in (Ending.FINISHED, Ending.FAILURES)
    assert {"/b", "/c"} <= set(site.paths())
    assert "/a" not in site.paths()
    assert one(new, "SELECT count(*) FROM things") == 3
    assert one(new, "SELECT max(seq) FROM versions") == 4
    assert one(new, "SELECT max(observed) FROM pages") > one(old, "SELECT max(observed) FROM pages")


def test_a_target_that_is_not_empty_is_left_as_it_is(site: ScriptedSite, pair: tuple[Store, Store]) -> None:
    old, new = pair
    sync(site, old)
    sync(site, new)
    before = content(new)
    with pytest.raises(Misuse, match="not empty"):
        copy(old, new)
    assert content(new) == before


def test_a_copy_that_is_interrupted_leaves_nothing(site: ScriptedSite, pair: tuple[Store, Store]) -> None:
    old, new = pair
    sync(site, old)

    def stop(table: str, rows: int) -> None:
        if table == "things":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(old, new, stop)
    assert one(new, "SELECT count(*) FROM pages") == 0
    assert copy(old, new)["pages"] == 3


def test_numbers_of_rows_that_are_gone_are_not_given_again(site: ScriptedSite, pair: tuple[Store, Store]) -> None:
    old, new = pair
    sync(site, old)
    last = one(old, "SELECT max(id) FROM tasks")
    with old.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM tasks")
    copy(old, new)
    sync(site, new)
    assert one(new, "SELECT min(id) FROM tasks") == last + 1


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout


def test_the_command_copies_and_the_copy_is_sound(site: ScriptedSite, tmp_path: Path) -> None:
    old = open_store(str(tmp_path / "old.db"))
    sync(site, old)
    old.close()
    code, said = run("db", "copy", str(tmp_path / "old.db"), str(tmp_path / "new.db"))
    assert (code, "all counts agree" in said) == (0, True)
    assert run("db", "check", "--store", str(tmp_path / "new.db"))[0] == 0
    assert run("db", "copy", str(tmp_path / "old.db"), str(tmp_path / "new.db"))[0] == 2
    assert run("db", "copy", str(tmp_path / "none.db"), str(tmp_path / "x.db"))[0] == 1


def lines(said: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in said.splitlines()]


def test_histories_views_and_changes_are_exported(store: Store, store_address: str) -> None:
    visited(store, (a_page("a", "1"), "one"), (a_page("b", "1"), "one"))
    later = NOW + timedelta(days=1)
    sight(store, a_page("a", "2"), now=later)
    put(store, *((task, a_changed_outcome(task, "two", at=later)) for task in take(store, now=later)), now=later)

    def export(*arguments: str) -> list[dict[str, object]]:
        code, said = run("export", *arguments, "--format", "jsonl", "--store", store_address)
        assert code == 0
        return lines(said)

    assert [(row["title"], row["_kind"]) for row in export("things_history", "--since", "2026-12-01")] == [
        ("two", "updated")
    ]
    assert len(export("things_history")) == 3
    assert {row["version"] for row in export("page_view", "--source", "shop")} == {1, 2}
    assert [row["kind"] for row in export("version_view")] == ["created", "created", "updated"]
    assert [row["_page_id"] for row in export("things", "--since", "2026-12-01T00:00Z")] == ["a"]
    told = export("changes")
    assert len(told) == 3
    (last,) = export("changes", "--after", str(told[1]["position"]))
    assert (last["page_id"], last["kind"], last["records"][0]["data"]["title"]) == ("a", "updated", "two")  # type: ignore[index]
    assert run("export", "things", "--after", "1", "--store", store_address)[0] == 2
    assert run("export", "things", "--since", "lately", "--store", store_address)[0] == 2

"""Reading again what is stored: on demand, after a change of rules, and from dead letters; without a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.declare import Record, Sitemap, Source, css
from recrawl.errors import Permanent
from recrawl.extract.fetched import Fetched
from recrawl.operate.reparse import Reparsed, reparse_source
from recrawl.run.engine import Ending, Result
from recrawl.run.wire import Declared, sync_source
from recrawl.store.database import Store
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import one, rows


class Thing(Record, table="things", key="sku"):
    sku: str = css("b.sku::text")
    name: str


shouting: list[bool] = []
"""What the reader below depends on, and no hash of it can tell."""


def read(page: Fetched) -> Iterable[Thing]:
    (name,), (sku,) = page.css("h1::text"), page.css("b.sku::text")
    yield Thing(sku=sku, name=name.upper() if shouting else name)


class Strict(Record, table="things", key="sku"):
    sku: str = css("b.sku::text")
    name: str = css("h3::text")


class Lenient(Record, table="things", key="sku"):
    sku: str = css("b.sku::text")
    name: str = css("h1::text")


@pytest.fixture
def site(site: ScriptedSite) -> ScriptedSite:
    shouting.clear()
    site.sitemap({"/a": "2026-01-01", "/b": "2026-01-01"})
    for name in "ab":
        site[f"/{name}"] = Reply(f"<h1>lamp {name}</h1><b class=sku>{name}</b>")
    return site


@pytest.fixture
def store(empty: Store) -> Store:
    return empty


def source(site: ScriptedSite, reader: Any = read) -> Declared:
    return Declared(Source("shop", find=Sitemap(f"{site.url}/sitemap.xml"), read=reader, forced_looks=0.0), "test")


def sync(declared: Declared, store: Store) -> Result:
    return asyncio.run(sync_source(declared, store))


def again(declared: Declared, store: Store) -> Reparsed:
    return asyncio.run(reparse_source(declared, store))


def names(store: Store) -> list[str]:
    return [row["name"] for row in rows(store, "SELECT name FROM things ORDER BY sku")]


def test_pages_are_read_again_by_a_reader_that_only_its_author_knows_to_have_changed(
    site: ScriptedSite, store: Store
) -> None:
    sync(source(site), store)
    shouting.append(True)
    site.forget()
    found = again(source(site), store)
    assert site.asked == []
    assert (found.kept, found.fetched, found.result.ending) == (2, 0, Ending.FINISHED)
    assert names(store) == ["LAMP A", "LAMP B"]
    assert [row["kind"] for row in rows(store, "SELECT kind FROM versions ORDER BY seq")] == [
        "created", "created", "reread", "reread"
    ]  # fmt: skip
    sync(source(site), store)
    assert site.paths() == []


def test_reading_again_what_comes_out_the_same_makes_no_version(site: ScriptedSite, store: Store) -> None:
    sync(source(site), store)
    found = again(source(site), store)
    assert found.result.progress.counts["unchanged_hash"] == 2
    assert one(store, "SELECT count(*) FROM versions") == 2
    assert one(store, "SELECT count(*) FROM tasks WHERE state NOT IN ('done')") == 0


def test_pages_without_a_stored_body_are_fetched_by_the_next_sync(site: ScriptedSite, store: Store) -> None:
    sync(source(site), store)
    with store.engine.begin() as connection:
        connection.execute(
            text("DELETE FROM bodies WHERE hash = (SELECT raw_hash FROM pages WHERE page_id LIKE '%/a')")
        )
    shouting.append(True)
    site.forget()
    found = again(source(site), store)
    assert (found.kept, found.fetched) == (1, 1)
    assert site.asked == []
    assert names(store) == ["lamp a", "LAMP B"]
    sync(source(site), store)
    assert site.paths() == ["/a"]
    assert names(store) == ["LAMP A", "LAMP B"]


def test_a_host_that_asked_to_wait_holds_up_no_reading(site: ScriptedSite, store: Store) -> None:
    sync(source(site), store)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE hosts SET backoff_until = 99999999999")
    assert again(source(site), store).result.ending is Ending.FINISHED


def test_a_source_that_was_never_synced_cannot_be_read_again(site: ScriptedSite, store: Store) -> None:
    with pytest.raises(Permanent, match="nothing of 'shop' is stored"):
        again(source(site), store)


def test_pages_that_never_read_well_are_read_from_their_dead_letters_when_the_rules_change(
    site: ScriptedSite, store: Store
) -> None:
    sync(source(site, Strict), store)
    assert one(store, "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL") == 2
    site.forget()
    result = sync(source(site, Lenient), store)
    assert site.paths() == []
    assert result.progress.counts["new"] == 2
    assert names(store) == ["lamp a", "lamp b"]
    assert {row["status"] for row in rows(store, "SELECT status FROM pages")} == {"active"}
    assert one(store, "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL") == 0
    assert one(store, "SELECT count(*) FROM bodies") == 2
    site.forget()
    sync(source(site, Lenient), store)
    assert site.paths() == []


def test_rules_that_cannot_read_a_dead_letter_either_are_tried_once(site: ScriptedSite, store: Store) -> None:
    class Other(Record, table="things", key="sku"):
        sku: str = css("b.sku::text")
        name: str = css("h4::text")

    sync(source(site, Strict), store)
    site["/a"] = site["/b"] = Reply("closed", 403)
    sync(source(site, Other), store)
    sync(source(site, Other), store)
    assert one(store, "SELECT count(*) FROM tasks WHERE replay_of IS NOT NULL") == 2
    assert names(store) == []


def test_reading_an_old_body_again_does_not_hide_that_the_page_is_in_trouble(site: ScriptedSite, store: Store) -> None:
    sync(source(site), store)
    site.sitemap({"/a": "2026-02-02", "/b": "2026-01-01"})
    site["/a"] = Reply("no", 403)
    sync(source(site), store)
    site["/a"] = Reply("<h1>new lamp</h1><b class=sku>a</b>")
    site.forget()
    sync(source(site, Lenient), store)
    assert names(store) == ["new lamp", "lamp b"]
    assert site.paths() == ["/a"]


def test_reading_an_old_body_again_does_not_hide_that_the_page_was_not_found(site: ScriptedSite, store: Store) -> None:
    sync(source(site), store)
    site.sitemap({"/a": "2026-02-02", "/b": "2026-01-01"})
    del site["/a"]
    sync(source(site), store)
    assert one(store, "SELECT count(*) FROM pages WHERE gone_at IS NOT NULL") == 1
    site["/a"] = Reply("no", 503)  # no look of its own can say anything else
    sync(source(site, Lenient), store)
    assert one(store, "SELECT count(*) FROM pages WHERE gone_at IS NOT NULL") == 1


DECLARATION = """
from recrawl import Record, Sitemap, Source, css

class Thing(Record, table="things", key="sku"):
    sku: str = css("b.sku::text")
    name: str = css("{name}::text")

shop = Source("shop", find=Sitemap("{base}/sitemap.xml"), read=Thing, forced_looks=0.0)
"""


def test_the_command_tells_what_came_of_it(site: ScriptedSite, tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, [*arguments, "--store", str(tmp_path / "a.db")])
        return result.exit_code, result.stdout

    path = tmp_path / "shop.py"
    path.write_text(DECLARATION.replace("{base}", site.url).replace("{name}", "h1"))
    assert run("sync", str(path))[0] == 0
    code, said = run("reparse", str(path))
    assert (code, said) == (0, "shop: 2 of 2 pages read again: 0 read otherwise now, 2 as before, 0 not valid\n")
    path.write_text(DECLARATION.replace("{base}", site.url).replace("{name}", "h6"))
    code, said = run("reparse", str(path), "--json")
    assert (code, json.loads(said)["sources"][0]["invalid"]) == (3, 2)

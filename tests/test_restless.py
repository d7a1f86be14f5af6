"""`recrawl doctor SOURCE`: two looks at the same pages name the fields that never rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from recrawl.cli.app import app
from recrawl.decide.twice import restless
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec
from recrawl.model.record import RecordRow
from recrawl.store.database import open_store
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import one

DECLARED = """
from recrawl import Record, Sitemap, Source, Volatile, css

class Lamp(Record, table="lamps", key="sku"):
    sku: str = css("b::text")
    name: str = css("h1::text")
    viewers: int | None = css("i::text")
    clicks: Volatile[int] = css("u::text")

shop = Source("shop", find=Sitemap("{base}/sitemap.xml"), read=Lamp)
"""


class Counting(ScriptedSite):
    """Pages with a counter that moves at every look, one that is declared volatile, and a name that stays."""

    def __init__(self, key_moves: bool = False) -> None:
        super().__init__()
        self._count = count()
        self._key_moves = key_moves

    def _next(self, path: str, headers: Any) -> Reply:
        reply = super()._next(path, headers)
        if not path.startswith("/lamp/"):
            return reply
        n = next(self._count)
        sku = f"{path}-{n}" if self._key_moves else path
        return Reply(f"<html><body><h1>Lamp</h1><b>{sku}</b><i>{n}</i><u>{n}</u></body></html>")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECRAWL_STORE", raising=False)
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")


@pytest.fixture
def site() -> Iterator[Counting]:
    with Counting() as running:
        prepared(running)
        yield running


def prepared(site: ScriptedSite) -> None:
    Path("shop.py").write_text(DECLARED.replace("{base}", site.url))
    site.sitemap([f"/lamp/{n}" for n in range(7)])
    for n in range(7):
        site[f"/lamp/{n}"] = Reply()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_a_field_that_differs_at_every_look_is_proposed_as_volatile_and_nothing_is_stored(site: Counting) -> None:
    assert run("sync", "shop.py").exit_code == 0
    store = open_store("recrawl.db")
    before = one(store, "SELECT max(viewers) FROM lamps"), one(store, "SELECT count(*) FROM versions")
    site.forget()
    result = run("doctor", "shop.py")
    assert result.exit_code == 0, result.output
    assert "Lamp.viewers differs on 5 of 5 pages" in result.stdout
    assert "Volatile[int | None]" in result.stdout
    assert "clicks" not in result.stdout
    assert "name" not in result.stdout
    assert len(site.paths()) == 10, "five pages, two looks each"
    assert not any(asked.conditional for asked in site.asked)
    assert (one(store, "SELECT max(viewers) FROM lamps"), one(store, "SELECT count(*) FROM versions")) == before
    store.close()


def test_it_is_told_as_json_too(site: Counting) -> None:
    run("sync", "shop.py")
    (told,) = json.loads(run("doctor", "shop.py", "--json").stdout)["sources"]
    assert (told["pages"], told["troubles"]) == (5, {})
    assert [(field["field"], field["proposal"]) for field in told["restless"]] == [("viewers", "Volatile[int | None]")]


def test_a_page_that_cannot_be_read_is_named_and_the_others_are_compared(site: Counting) -> None:
    run("sync", "shop.py")
    del site._replies["/lamp/0"]
    Path("shop.py").write_text(DECLARED.replace("{base}", site.url).replace('css("h1::text")', 'css("h6::text")'))
    result = run("doctor", "shop.py")
    assert result.exit_code == 1
    assert "no page could be read twice" in result.stdout
    assert "name: " in result.stdout, "why not is said"


def test_a_source_that_was_never_synced_is_sent_to_be(site: Counting) -> None:
    result = run("doctor", "shop.py")
    assert result.exit_code == 1
    assert "recrawl sync shop.py" in result.stderr
    assert site.paths() == []


def test_a_key_that_differs_is_a_warning_and_no_proposal() -> None:
    with Counting(key_moves=True) as site:
        prepared(site)
        run("sync", "shop.py")
        result = run("doctor", "shop.py")
    assert "Lamp.sku differs on 5 of 5 pages" in result.stdout
    assert "choose a key that stays the same" in result.stdout


def test_records_are_compared_with_themselves_however_they_are_ordered() -> None:
    spec = RecordSpec("Row", "rows", ("id",), (FieldSpec("id", Kind.STR), FieldSpec("seen", Kind.INT, many=True)))
    first = [RecordRow("rows", key, {"id": key, "seen": [1]}) for key in "ab"]
    second = [RecordRow("rows", key, {"id": key, "seen": [1] if key == "a" else [2]}) for key in "ba"]
    (found,) = restless([spec], [(first, second), (first, first)])
    assert (found.field, found.differing, found.pages, found.proposal) == ("seen", 1, 2, "Volatile[list[int]]")

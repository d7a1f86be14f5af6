"""Dead letters that are begun anew: once, in their old place in the order, under other names where a source renamed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.declare.load import load
from recrawl.errors import Misuse
from recrawl.model.outcome import Invalid
from recrawl.model.work import Stage
from recrawl.operate.replay import pairs, rename, replay
from recrawl.store import contents, dead
from recrawl.store.database import Store
from recrawl.store.dead import Selection
from recrawl.store.inbox import account
from recrawl.store.replay import Replayed
from tests.support.pushes import offer, push, serve
from tests.support.stores import NOW, SOURCE, a_changed_outcome, a_look, a_page, one, put, rows, sight, take

OFFERS = Selection("offers")


def begin(store: Store, selection: Selection = OFFERS, **renamed: str) -> Replayed:
    return replay(store, selection, renamed=renamed, now=NOW)


def unresolved(store: Store) -> int:
    return int(one(store, "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL"))


def adds_up(store: Store) -> bool:
    of = account(store, "offers")
    return of.received == of.new + of.changed + of.duplicates + of.regressions + of.dead + of.waiting


def test_renamed_fields_become_rows_once_their_new_name_is_told(store: Store) -> None:
    push(store, *({"article": str(number), "title": "x"} for number in range(3)))
    assert serve(store) == Counter(dead=3)

    assert begin(store, article="sku") == Replayed(pushed=3)

    serve(store)
    assert one(store, "SELECT count(*) FROM offers") == 3
    assert unresolved(store) == 0
    assert rows(store, "SELECT DISTINCT resolution FROM dead_letters") == [{"resolution": "replayed"}]
    assert adds_up(store)


def test_asked_for_twice_it_runs_once(store: Store) -> None:
    push(store, {"article": "1"})
    serve(store)

    assert begin(store, article="sku").pushed == 1
    assert begin(store, article="sku") == Replayed(busy=1)
    serve(store)
    assert begin(store, article="sku") == Replayed()

    assert one(store, "SELECT count(*) FROM versions") == 1


def test_one_that_dies_again_stays_the_letter_it_was(store: Store) -> None:
    push(store, {"article": "1"})
    serve(store)

    begin(store)
    serve(store)

    assert unresolved(store) == 1
    assert adds_up(store)
    assert begin(store, article="sku").pushed == 1


def test_what_is_newer_by_now_is_not_overwritten(store: Store) -> None:
    push(store, {"article": "1", "title": "old"})
    serve(store)
    push(store, offer("1", "new"))
    serve(store)

    begin(store, article="sku")
    serve(store)

    assert one(store, "SELECT title FROM offers") == "new"
    assert unresolved(store) == 0


def test_a_page_is_read_from_the_bytes_that_its_letter_keeps(store: Store) -> None:
    sight(store, a_page("p"))
    (task,) = take(store)
    found = Invalid(look=a_look(task), stage=Stage.CLEAN, reason="no price", raw=b"<html>what came")
    put(store, (task, found))

    assert begin(store, Selection(SOURCE)) == Replayed(pages=1)
    assert begin(store, Selection(SOURCE)) == Replayed(busy=1)

    (again,) = take(store)
    assert again.replay_of is not None
    stored = contents.buried_look(store, again.replay_of)
    assert stored is not None
    assert (stored.body, again.observed) == (b"<html>what came", task.observed)
    put(store, (again, a_changed_outcome(again)))
    assert unresolved(store) == 0


def test_what_kept_nothing_is_told_apart(store: Store) -> None:
    sight(store, a_page("p"))
    (task,) = take(store)
    put(store, (task, Invalid(look=a_look(task), stage=Stage.CLEAN, reason="nothing came", raw=b"")))

    assert begin(store, Selection(SOURCE)) == Replayed(rest=1)


def test_the_command_begins_what_is_named(store: Store, store_address: str) -> None:
    push(store, {"article": "1"}, {"article": "2"})
    serve(store)
    first = next(dead.letters(store, OFFERS)).id

    done = CliRunner().invoke(app, ["dead", "replay", str(first), "--map", "article=sku", "--store", store_address])
    assert done.exit_code == 0, done.output
    assert "1 pushed records" in done.output
    serve(store)

    assert one(store, "SELECT count(*) FROM offers") == 1
    assert unresolved(store) == 1


def test_a_renamed_field_is_diagnosed_with_the_command_that_brings_its_records_back(
    store: Store, store_address: str, tmp_path: Path
) -> None:
    declared = tmp_path / "shop.py"
    declared.write_text(
        "from recrawl import Price, Record, Source\n"
        "class Item(Record, table='items', key='sku'):\n"
        "    sku: str\n"
        "    price: Price\n"
        "items = Source('items', read=Item, currency='EUR')\n"
    )
    (source,) = load(declared)
    renamed = [{"sku": str(number), "salePrice": f"{number},50 €", "weight": "heavy"} for number in range(20)]
    push(store, *renamed, source="items")
    serve(store, source)

    told = CliRunner().invoke(app, ["dead", "diagnose", str(declared), "--store", store_address]).output

    assert "`price` fails in 20 records" in told
    assert "`salePrice` can be read as it in 100% of 20" in told
    assert "--map salePrice=price" in told
    assert "weight" not in told
    begin(store, Selection("items"), salePrice="price")
    serve(store, source)
    assert one(store, "SELECT count(*) FROM items") == 20


@pytest.mark.parametrize(
    ("raw", "renamed", "wanted"),
    [
        (b'{"a":1}', {"a": "b"}, b'{"b":1}'),
        (b'{"a":{"x":1},"c":2}', {"a.x": "b"}, b'{"a":{},"c":2,"b":1}'),
        (b'{"id":"1","data":{"a":1}}', {"a": "b"}, b'{"id":"1","data":{"b":1}}'),
        (b'{"data":[{"a":1},{"z":2}]}', {"a": "b"}, b'{"data":[{"b":1},{"z":2}]}'),
        (b'{"n":12345678901234567890123,"a":1}', {"a": "b"}, b'{"n":12345678901234567890123,"b":1}'),
        (b'{"z":1}', {"a": "b"}, b'{"z":1}'),
        (b"no json", {"a": "b"}, b"no json"),
        (b"[1]", {"a": "b"}, b"[1]"),
    ],
)
def test_fields_are_renamed_wherever_a_record_stands(raw: bytes, renamed: dict[str, str], wanted: bytes) -> None:
    assert rename(raw, renamed) == wanted


@pytest.mark.parametrize("given", ["price", "=price", "salePrice=", ""])
def test_what_renames_nothing_is_refused(given: str) -> None:
    with pytest.raises(Misuse, match="renames nothing"):
        pairs([given])

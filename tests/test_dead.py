"""Dead letters: grouped, read one by one, put aside."""

from __future__ import annotations

import json
from datetime import timedelta

from typer.testing import CliRunner, Result

from recrawl.cli.app import app
from recrawl.model.outcome import Invalid
from recrawl.model.record import FieldError
from recrawl.model.work import Stage
from recrawl.store import dead
from recrawl.store.database import Store
from tests.support.stores import NOW, SOURCE, a_look, a_page, put, sight, take

CLEAN = "clean:price:price_unclear(字)"


def dead_pages(store: Store, count: int) -> None:
    """Pages that cannot be read: all but the last for want of a price, the last because it is no page."""
    sight(store, *(a_page(f"p{number}") for number in range(count)))
    for number, task in enumerate(take(store)):
        error = FieldError("price", "price_unclear", "no price", "价格面议", "字")
        found = Invalid(
            look=a_look(task), stage=Stage.CLEAN, reason="not valid data", errors=(error,), raw=f"raw {number}".encode()
        )
        if number == count - 1:
            found = Invalid(look=a_look(task), stage=Stage.EXTRACT, reason="no record was found", raw=b"\xff\x00")
        put(store, (task, found), now=NOW + timedelta(minutes=number))


def run(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["dead", *arguments, "--store", address])


def test_letters_are_grouped_by_field_error_and_form(store: Store) -> None:
    dead_pages(store, 4)

    first, second = dead.groups(store)

    assert (first.signature, first.count, first.source) == (CLEAN, 3, SOURCE)
    assert (first.first_at, first.last_at) == (NOW, NOW + timedelta(minutes=2))
    assert (second.signature, second.count) == ("extract:unreadable", 1)
    assert dead.groups(store, "another") == []


def test_letters_come_in_the_order_of_their_ids_with_what_came(store: Store) -> None:
    dead_pages(store, 3)

    found = list(dead.letters(store, dead.Selection(SOURCE)))

    assert [letter.raw for letter in found] == [b"raw 0", b"raw 1", b"\xff\x00"]
    assert found[0].errors[0]["value"] == "价格面议"
    assert [letter.id for letter in dead.letters(store, dead.Selection(SOURCE), most=2)] == [found[0].id, found[1].id]
    assert dead.letter(store, found[2].id) == found[2]
    assert dead.letter(store, 99) is None


def test_more_letters_than_one_read_takes_are_all_told_once(store: Store) -> None:
    dead_pages(store, 90)
    for letter in list(dead.letters(store, dead.Selection(SOURCE)))[:3]:
        dead.drop(store, dead.Selection(ids=(letter.id,)), NOW)

    assert len({letter.id for letter in dead.letters(store, dead.Selection(SOURCE))}) == 87


def test_dropped_letters_are_kept_but_no_longer_told(store: Store) -> None:
    dead_pages(store, 3)

    assert dead.drop(store, dead.Selection(signature=CLEAN), NOW) == 2
    assert dead.drop(store, dead.Selection(signature=CLEAN), NOW) == 0

    (left,) = dead.groups(store)
    assert left.signature == "extract:unreadable"
    dropped = dead.letter(store, 1)
    assert dropped is not None
    assert (dropped.resolution, dropped.raw) == ("dropped", b"raw 0")


def test_the_command_shows_kinds_letters_and_raw_bytes(store: Store, store_address: str) -> None:
    dead_pages(store, 3)

    listed = run(store_address, "list")
    assert "shop: 2 x clean:price:price_unclear(字)" in listed.output
    (letter,) = [one for one in dead.letters(store, dead.Selection(SOURCE)) if one.stage == "extract"]
    assert "no record was found" in run(store_address, "show", str(letter.id)).output
    assert run(store_address, "show", str(letter.id), "--raw").stdout_bytes == b"\xff\x00"
    assert json.loads(run(store_address, "list", "--json").output)[0]["count"] == 2


def test_what_is_to_be_dropped_must_be_named(store: Store, store_address: str) -> None:
    dead_pages(store, 2)

    refused = run(store_address, "drop")
    assert refused.exit_code == 2
    assert "--signature" in refused.output
    assert len(dead.groups(store)) == 2
    assert run(store_address, "show", "99").exit_code == 1
    assert run(store_address, "drop", "--source", SOURCE).exit_code == 0
    assert "no dead letters" in run(store_address, "list").output

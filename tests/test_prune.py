"""`prune`: what is old goes, what is needed stays."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.operate.prune import Retention, let_go
from recrawl.store import queries
from recrawl.store.changes import changes
from recrawl.store.database import Store
from recrawl.store.notes import note
from recrawl.store.prune import Pruned, prune_bodies, prune_versions
from recrawl.store.reap import reap
from recrawl.store.settle.revert import revert
from tests.support.pushes import offer, push, serve
from tests.support.stores import (
    NOW,
    SOURCE,
    a_body,
    a_changed_outcome,
    a_page,
    fresh_store,
    one,
    put,
    rows,
    sight,
    take,
    visited,
)

DAY = timedelta(days=1)


def edited(store: Store, page_id: str, *titles: str, body: str | None = None) -> None:
    """A page whose title was another one each day."""
    for day, title in enumerate(titles):
        at = NOW + day * DAY
        sight(store, a_page(page_id, f"{page_id} {title}"), now=at)
        for task in take(store, now=at):
            outcome = a_changed_outcome(task, title, at=at)
            if body is not None:
                kept = a_body(body)
                outcome = replace(outcome, body=kept, raw_hash=kept.hash)
            put(store, (task, outcome), now=at)


def numbers(store: Store) -> list[int]:
    return [row["version"] for row in rows(store, "SELECT version FROM versions ORDER BY seq")]


def total(parts: object) -> Pruned:
    return sum(parts, Pruned())  # type: ignore[call-overload, no-any-return]


def test_old_versions_go_and_the_current_one_stays_however_old(store: Store) -> None:
    edited(store, "a", "one", "two", "three")
    assert total(prune_versions(store, before=NOW + DAY)).rows == 1
    assert numbers(store) == [2, 3]
    total(prune_versions(store, before=NOW + 999 * DAY))
    assert numbers(store) == [3]
    assert one(store, "SELECT title FROM things") == "three"


def test_a_number_of_versions_of_each_page_is_kept(store: Store) -> None:
    edited(store, "a", "one", "two", "three")
    edited(store, "b", "one")
    assert total(prune_versions(store, keep=2)).rows == 1
    assert numbers(store) == [2, 3, 1]


def test_a_deleted_page_keeps_what_it_held(store: Store) -> None:
    edited(store, "a", "one", "two", "three")
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE pages SET status = 'deleted', deleted_at = last_changed_at"))
    total(prune_versions(store, before=NOW + 999 * DAY))
    total(prune_versions(store, keep=1))
    assert numbers(store) == [2, 3]


def test_bodies_of_old_versions_go_and_that_of_the_current_one_stays(store: Store) -> None:
    edited(store, "a", "one", "two", "three")
    assert total(prune_bodies(store, before=NOW + DAY)).rows == 1
    assert total(prune_bodies(store, before=NOW + 999 * DAY)).rows == 1
    assert one(store, "SELECT count(*) FROM bodies b JOIN pages p ON p.raw_hash = b.hash") == 1


def test_a_body_that_another_page_shares_stays(store: Store) -> None:
    edited(store, "a", "one", body="shared")
    edited(store, "b", "one", body="shared")
    edited(store, "a", "one", "two")
    assert total(prune_bodies(store, before=NOW + 999 * DAY)).rows == 0
    assert one(store, f"SELECT count(*) FROM bodies WHERE hash = '{a_body('shared').hash}'") == 1


def test_a_body_that_open_work_needs_stays(store: Store) -> None:
    edited(store, "a", "one", "two")
    with store.engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE tasks SET body_hash = (SELECT raw_hash FROM versions WHERE version = 1), state = 'pending' "
                "WHERE id = (SELECT max(id) FROM tasks WHERE kind = 'visit')"
            )
        )
    assert total(prune_bodies(store, before=NOW + 999 * DAY)).rows == 0


def test_what_only_a_pruned_version_needed_goes_with_it(store: Store) -> None:
    edited(store, "a", "one", "two")
    let = let_go(store, Retention(keep=1, bodies=timedelta()), NOW + 9 * DAY)
    assert (let.pruned["versions"].rows, let.pruned["bodies"].rows) == (1, 1)
    assert let.pruned["bodies"].bytes > 0


def test_events_and_resolved_dead_letters_go_and_unresolved_ones_stay(store: Store) -> None:
    edited(store, "a", "one", "two")
    revert(store, 1, 1, NOW)
    with store.engine.begin() as connection:
        for resolved in ("NULL", "created_at"):
            connection.execute(
                text(
                    "INSERT INTO dead_letters (source, task_key, stage, signature, reason, observed, created_at) "
                    "SELECT source, 'k', 'fetch', 's', 'r', 1, first_seen_at FROM pages"
                )
            )
            connection.execute(text(f"UPDATE dead_letters SET resolved_at = {resolved} WHERE id > 1"))
    let = let_go(store, Retention(events=DAY), NOW + 2 * DAY)
    assert let.pruned["events"].rows == 2
    assert one(store, "SELECT count(*) FROM dead_letters") == 1


def test_the_last_check_of_each_kind_stays_since_the_next_is_counted_from_it(store: Store) -> None:
    for kind in ("reconciled", "audit", "reconciled", "audit", "template"):
        note(store, SOURCE, kind, {}, NOW)
    let_go(store, Retention(events=DAY), NOW + 9 * DAY)
    assert [row["kind"] for row in rows(store, "SELECT kind FROM events ORDER BY seq")] == ["reconciled", "audit"]


def test_receipts_of_old_pushes_go_and_those_of_waiting_ones_stay(store: Store) -> None:
    push(store, offer("1"), offer("2"), key="old")
    push(store, offer("3"), key="compared with")
    serve(store)
    retention, at = Retention(events=DAY), NOW + 3 * DAY
    push(store, offer("4"), key="waits", at=at)
    assert let_go(store, retention, at).pruned["receipts"].rows == 0, "their tasks are remembered"
    reap(store, at)
    assert let_go(store, retention, NOW + DAY / 2).pruned["receipts"].rows == 0, "they are not old enough"
    dry = let_go(store, retention, at, dry_run=True)
    assert let_go(store, retention, at).pruned["receipts"] == dry.pruned["receipts"] == Pruned(1)
    assert [row["key"] for row in rows(store, "SELECT key FROM pushes ORDER BY key")] == ["compared with", "waits"]
    push(store, offer("1"), offer("2"), key="old", at=at)
    assert serve(store, at=at) == Counter(new=1, duplicates=2)


def test_a_dry_run_counts_the_same_and_takes_nothing(store: Store) -> None:
    edited(store, "a", "one", "two", "three")
    retention = Retention(versions=DAY, bodies=DAY)
    dry = let_go(store, retention, NOW + 3 * DAY, dry_run=True)
    assert numbers(store) == [1, 2, 3]
    assert let_go(store, retention, NOW + 3 * DAY).pruned == dry.pruned
    assert let_go(store, retention, NOW + 3 * DAY).pruned == {"versions": Pruned(), "bodies": Pruned()}


def test_the_feed_still_tells_the_current_state_of_every_page(store: Store) -> None:
    edited(store, "a", "one", "two")
    edited(store, "b", "one")
    let_go(store, Retention(keep=1), NOW)
    assert [(change.page_id, change.version) for change in changes(store).rows] == [("a", 2), ("b", 1)]


def test_a_sqlite_file_shrinks(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "a.db")
    for day in range(3):
        edited(store, "a", *(f"{day} {letter}" for letter in "ab"), body=f"{day}" * 3_000_000)
    with store.read() as connection:
        before = connection.exec_driver_sql("PRAGMA page_count").scalar_one() * 16_384
    let = let_go(store, Retention(keep=1, bodies=timedelta()), NOW + 9 * DAY)
    store.close()
    assert let.space is not None
    assert let.space.free == 0
    assert let.space.returned > 5_000_000
    assert before - (tmp_path / "a.db").stat().st_size > 5_000_000


@pytest.mark.parametrize("wrong", [[], ["--versions", "0"], ["--versions", "some"], ["--bodies", "20"]])
def test_the_command_says_what_it_cannot_understand(store: Store, store_address: str, wrong: list[str]) -> None:
    assert CliRunner().invoke(app, ["prune", *wrong, "--store", store_address]).exit_code == 2


def test_the_command_tells_what_went(store: Store, store_address: str) -> None:
    visited(store, (a_page("a", "1"), "one"))
    edited(store, "a", "two", "three")
    told = CliRunner().invoke(app, ["prune", "--versions", "1", "--dry-run", "--store", store_address])
    assert told.stdout == "versions  2 would go, 0.0 MB\n"
    told = CliRunner().invoke(app, ["prune", "--versions", "1", "--json", "--store", store_address])
    assert json.loads(told.stdout)["pruned"]["versions"]["rows"] == 2
    assert queries.source_names(store) == [SOURCE]
    assert numbers(store) == [3]

"""The store's conformance suite, on both databases: what goes through the door that `settle` is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recrawl.model.fetched import Validators
from recrawl.model.outcome import By, Gone, Invalid, Quarantined, Throttled
from recrawl.model.work import Stage
from recrawl.store import contents, cursor, leases, plan, reap
from recrawl.store.database import Store
from tests.support.stores import (
    HOST,
    LEASE,
    NOW,
    SOURCE,
    STREAM,
    a_body,
    a_broken_outcome,
    a_changed_outcome,
    a_look,
    a_moved_outcome,
    a_page,
    a_thing,
    a_walk,
    an_unchanged_outcome,
    killed_before_commit,
    one,
    page_id_of,
    put,
    rows,
    sight,
    take,
    take_one,
    visited,
)

LATER = NOW + timedelta(hours=2)


def _page(store: Store, page_id: str) -> Mapping[str, Any]:
    (row,) = rows(store, "SELECT * FROM pages WHERE page_id = :page_id", page_id=page_id)
    return row


def _things(store: Store) -> dict[str, str]:
    """The things that are shown, without those marked deleted: titles by key."""
    return {row["id"]: row["title"] for row in rows(store, "SELECT * FROM things WHERE _deleted_at IS NULL")}


def _versions(store: Store, page_id: str) -> list[str]:
    sql = "SELECT kind FROM version_view WHERE page_id = :page_id ORDER BY version"
    return [row["kind"] for row in rows(store, sql, page_id=page_id)]


def _events(store: Store) -> list[str]:
    return [row["kind"] for row in rows(store, "SELECT kind FROM events ORDER BY seq")]


def _again(store: Store, *page_ids: str, now: datetime = LATER) -> dict[str, Any]:
    """The due pages planned and claimed once more, tasks by page id."""
    plan.plan(store, SOURCE, until=now, now=now, expires_at=now + timedelta(days=2))
    tasks = {page_id_of(task): task for task in take(store, now=now)}
    assert tasks.keys() == set(page_ids)
    return tasks


# Leases


def test_a_lost_lease_cannot_write_and_harms_no_other_outcome_of_the_batch(store: Store) -> None:
    sight(store, a_page("a"), a_page("b"), a_page("c"))
    held = {page_id_of(task): task for task in take(store)}
    stale = replace(held["b"], token="the token of an earlier lease")
    settled = put(
        store,
        (held["a"], a_changed_outcome(held["a"], "kept")),
        (stale, a_changed_outcome(stale, "refused")),
        (held["c"], a_changed_outcome(held["c"], "kept")),
    )
    assert settled.lost == (stale.id,)
    assert settled.counts == {"new": 2}
    assert _things(store) == {"a": "kept", "c": "kept"}
    assert _versions(store, "b") == []
    assert one(store, "SELECT count(*) FROM bodies") == 2
    assert put(store, (held["b"], a_changed_outcome(held["b"], "held after all"))).lost == ()


def test_a_lease_that_ran_out_and_went_to_another_worker_cannot_write(store: Store) -> None:
    sight(store, a_page("a"))
    zombie = take_one(store, owner="zombie")
    reap.reap(store, LATER)
    heir = take_one(store, owner="heir", now=LATER)
    assert put(store, (zombie, a_changed_outcome(zombie, "old"))).lost == (zombie.id,)
    put(store, (heir, a_changed_outcome(heir, "new")))
    assert put(store, (zombie, a_changed_outcome(zombie, "old"))).lost == (zombie.id,)
    assert _things(store) == {"a": "new"}


def test_a_move_whose_lease_is_lost_leaves_no_page_behind(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    stale = replace(task, token="the token of an earlier lease")
    assert put(store, (stale, a_moved_outcome(stale, "b"))).lost == (task.id,)
    assert [row["page_id"] for row in rows(store, "SELECT page_id FROM pages")] == ["a"]
    put(store, (task, a_moved_outcome(task, "b")))
    assert page_id_of(take_one(store)) == "b"


def test_a_worker_killed_before_the_commit_has_written_nothing_and_its_work_is_done_again(store: Store) -> None:
    walk = a_walk(store)
    walk.see(a_page("a"))
    task = take_one(store)
    with killed_before_commit(store):
        put(store, (task, a_changed_outcome(task)))
    assert _versions(store, "a") == []
    assert one(store, "SELECT count(*) FROM bodies") == 0
    assert cursor.advance(store, SOURCE, STREAM, NOW) == 0
    reap.reap(store, LATER, ["worker"])
    again = take(store, 1, now=LATER)[0]
    assert again.id in {task.id, walk.task.id}


# Order


def test_an_older_version_changes_nothing_and_leaves_a_regression(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    put(store, (task, a_changed_outcome(task, "new", updated=NOW)), order="updated")
    task = _again(store, "a")["a"]
    older = a_changed_outcome(task, "old", updated=NOW - timedelta(days=1))
    assert put(store, (task, older), order="updated", now=LATER).counts == {"regressions": 1}
    page = _page(store, "a")
    assert (page["version"], page["raw_hash"] == older.raw_hash) == (1, False)
    assert page["due_at"] is not None
    assert _things(store) == {"a": "new"}
    assert _versions(store, "a") == ["created"]
    assert _events(store) == ["regression"]


@pytest.mark.parametrize("updated", [NOW, None, datetime(2099, 1, 1, tzinfo=UTC)], ids=["equal", "missing", "2099"])
def test_a_source_time_that_tells_no_order_lets_the_later_look_win(store: Store, updated: datetime | None) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    put(store, (task, a_changed_outcome(task, "first", updated=NOW)), order="updated")
    task = _again(store, "a")["a"]
    put(store, (task, a_changed_outcome(task, "second", updated=updated)), order="updated", now=LATER)
    assert _things(store) == {"a": "second"}
    assert _events(store) == ["conflict"]
    task = _again(store, "a", now=LATER + timedelta(hours=2))["a"]
    put(store, (task, a_changed_outcome(task, "third", updated=NOW + timedelta(hours=1))), order="updated")
    assert _things(store) == {"a": "third"}


def test_versions_are_compared_as_numbers(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    put(store, (task, a_changed_outcome(task, "nine", version="9")), order="version")
    task = _again(store, "a")["a"]
    put(store, (task, a_changed_outcome(task, "ten", version="10")), order="version", now=LATER)
    assert _things(store) == {"a": "ten"}


# Unchanged


def test_a_volatile_field_is_refreshed_without_a_version(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    put(store, (task, a_changed_outcome(task, things=[a_thing("a", "one", viewers=3)])))
    task = _again(store, "a")["a"]
    body = a_body("the same with other viewers")
    found = replace(
        an_unchanged_outcome(task, By.CONTENT, raw_hash=body.hash, things=[a_thing("a", "one", viewers=8)]), body=body
    )
    put(store, (task, found), now=LATER)
    assert rows(store, "SELECT id, title, viewers, _version FROM things") == [
        {"id": "a", "title": "one", "viewers": 8, "_version": 1}
    ]
    assert _versions(store, "a") == ["created"]
    assert contents.body(store, _page(store, "a")["raw_hash"]) == b"the same with other viewers"


def test_a_304_judged_against_another_body_makes_the_page_due_at_once(store: Store) -> None:
    visited(store, (a_page("a", "monday"), "one"), (a_page("b", "monday"), "one"))
    late = NOW + timedelta(days=40)
    tasks = _again(store, "a", "b", now=late)
    put(
        store,
        (tasks["a"], an_unchanged_outcome(tasks["a"], By.NOT_MODIFIED, raw_hash="0" * 64)),
        (tasks["b"], an_unchanged_outcome(tasks["b"], By.NOT_MODIFIED)),
        now=late,
    )
    _again(store, "a", now=late)


def test_a_304_keeps_the_validators_that_it_does_not_repeat(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    changed = a_changed_outcome(task)
    look = replace(changed.look, validators=Validators('"v1"', "Mon, 30 Nov 2026 10:00:00 GMT"))
    put(store, (task, replace(changed, look=look)))
    task = _again(store, "a")["a"]
    assert task.page is not None
    assert task.page.validators == look.validators
    found = an_unchanged_outcome(task, By.NOT_MODIFIED)
    put(store, (task, replace(found, look=replace(found.look, validators=Validators('"v2"')))), now=LATER)
    page = _page(store, "a")
    assert (page["etag"], page["last_modified"]) == ('"v2"', "Mon, 30 Nov 2026 10:00:00 GMT")


# Hints


def test_a_hint_that_moves_while_the_page_is_visited_makes_the_next_visit_at_once(store: Store) -> None:
    walk = a_walk(store)
    walk.see(a_page("a", "monday"))
    task = take_one(store)
    walk.see(a_page("a", "tuesday"))
    put(store, (task, a_changed_outcome(task, "monday's")))
    assert cursor.advance(store, SOURCE, STREAM, NOW) == 1
    again = take_one(store)
    assert page_id_of(again) == "a"
    assert again.key != task.key
    put(store, (again, a_changed_outcome(again, "tuesday's")))
    assert cursor.advance(store, SOURCE, STREAM, NOW) == 1
    assert take(store) == []


def test_a_hint_that_moves_while_the_page_is_read_again_from_its_body_is_not_lost(store: Store) -> None:
    visited(store, (a_page("a", "monday"), "one"))
    plan.plan_rereads(store, SOURCE, "reader-2", now=NOW, expires_at=LATER)
    task = take_one(store)
    assert task.body_hash is not None
    sight(store, a_page("a", "tuesday"))
    found = an_unchanged_outcome(task)
    put(store, (task, replace(found, reader_hash="reader-2", look=replace(found.look, requests=0))))
    again = take_one(store)
    assert again.body_hash is None


def test_a_hint_seen_before_the_claim_is_answered_by_the_visit(store: Store) -> None:
    visited(store, (a_page("a", "monday"), "one"))
    sight(store, a_page("a", "tuesday"))
    task = take_one(store)
    put(store, (task, an_unchanged_outcome(task)))
    assert take(store) == []


# Moves and names


def test_a_301_hands_the_records_over_in_one_transaction_and_makes_no_false_version(store: Store) -> None:
    visited(store, (a_page("old"), "one"))
    before = _page(store, "old")
    task = _again(store, "old")["old"]
    with killed_before_commit(store):
        put(store, (task, a_moved_outcome(task, "new")), now=LATER)
    assert rows(store, "SELECT _page_id FROM things") == [{"_page_id": "old"}]
    put(store, (task, a_moved_outcome(task, "new")), now=LATER)
    assert rows(store, "SELECT id, title, _page_id, _deleted_at FROM things") == [
        {"id": "old", "title": "one", "_page_id": "new", "_deleted_at": None}
    ]
    old, new = _page(store, "old"), _page(store, "new")
    assert (old["status"], old["moved_to"], new["status"]) == ("moved", new["id"], "active")
    assert (_versions(store, "old"), _versions(store, "new")) == (["created"], ["moved"])
    task = take_one(store, now=LATER)
    assert (page_id_of(task), task.page and task.page.content_hash) == ("new", before["content_hash"])
    same = an_unchanged_outcome(task, By.CONTENT, raw_hash="1" * 64, things=[a_thing("old", "one")])
    put(store, (task, same), now=LATER)
    assert _versions(store, "new") == ["moved"]


def test_a_sighting_of_the_old_address_means_the_new_page(store: Store) -> None:
    visited(store, (a_page("old"), "one"))
    task = _again(store, "old")["old"]
    put(store, (task, a_moved_outcome(task, "new")), now=LATER)
    aliases = rows(store, "SELECT a.url, p.page_id FROM aliases a JOIN pages p ON p.id = a.page")
    assert aliases == [{"url": f"https://{HOST}/old", "page_id": "new"}]


def test_a_batch_that_waits_for_a_page_that_moved_waits_for_its_new_address(store: Store) -> None:
    a_walk(store).see(a_page("old"))
    task = take_one(store)
    put(store, (task, a_moved_outcome(task, "new")))
    assert cursor.advance(store, SOURCE, STREAM, NOW) == 0
    task = take_one(store)
    put(store, (task, a_changed_outcome(task)))
    assert cursor.advance(store, SOURCE, STREAM, NOW) == 1


def test_two_pages_that_move_to_one_address_in_one_batch_are_one_page(store: Store) -> None:
    visited(store, (a_page("a"), "one"), (a_page("b"), "two"))
    tasks = _again(store, "a", "b")
    put(store, *((task, a_moved_outcome(task, "c")) for task in tasks.values()), now=LATER)
    assert _page(store, "a")["moved_to"] == _page(store, "b")["moved_to"] == _page(store, "c")["id"]
    assert _versions(store, "c") == ["moved"]
    assert len(_things(store)) == 1
    task = take_one(store, now=LATER)
    put(store, (task, a_changed_outcome(task, "three")), now=LATER)
    assert _things(store) == {"c": "three"}


def test_a_page_may_move_to_one_that_is_read_for_the_first_time_in_the_same_batch(store: Store) -> None:
    visited(store, (a_page("old"), "one"))
    sight(store, a_page("new"))
    tasks = _again(store, "old", "new")
    put(
        store,
        (tasks["old"], a_moved_outcome(tasks["old"], "new")),
        (tasks["new"], a_changed_outcome(tasks["new"], things=[a_thing("old", "two")])),
        now=LATER,
    )
    assert rows(store, "SELECT id, title, _page_id, _version FROM things") == [
        {"id": "old", "title": "two", "_page_id": "new", "_version": 1}
    ]
    assert _versions(store, "new") == ["created"]


def test_a_page_may_move_to_one_that_breaks_in_the_same_batch(store: Store) -> None:
    visited(store, (a_page("old"), "one"))
    sight(store, a_page("new"))
    tasks = _again(store, "old", "new")
    put(
        store,
        (tasks["old"], a_moved_outcome(tasks["old"], "new")),
        (tasks["new"], a_broken_outcome(tasks["new"])),
        now=LATER,
    )
    assert _things(store) == {"old": "one"}
    reap.reap(store, LATER + LEASE)
    task = take_one(store, now=LATER + LEASE)
    put(store, (task, a_changed_outcome(task, things=[a_thing("old", "two")])), now=LATER)
    assert _things(store) == {"old": "two"}
    assert _versions(store, "new") == ["moved", "updated"]


def test_an_id_learned_at_reading_renames_the_page_and_leaves_an_alias(store: Store) -> None:
    sight(store, a_page("by-address", "monday"))
    task = take_one(store)
    put(store, (task, a_changed_outcome(task, page_id="sku-7")))
    assert [row["page_id"] for row in rows(store, "SELECT page_id FROM pages")] == ["sku-7"]
    assert rows(store, "SELECT id, _page_id FROM things") == [{"id": "sku-7", "_page_id": "sku-7"}]
    assert sight(store, a_page("by-address", "monday")).same == 1
    assert sight(store, a_page("by-address", "tuesday")).hinted == 1
    assert page_id_of(take_one(store)) == "sku-7"


@pytest.mark.parametrize("together", [True, False])
def test_two_addresses_of_one_id_are_one_page(store: Store, together: bool) -> None:
    sight(store, a_page("a"), a_page("b"))
    first, second = take(store)
    found = [(task, a_changed_outcome(task, page_id="sku-7")) for task in (first, second)]
    for batch in [found] if together else [found[:1], found[1:]]:
        put(store, *batch)
    assert rows(store, "SELECT id, title, _page_id FROM things") == [
        {"id": "sku-7", "title": "one", "_page_id": "sku-7"}
    ]
    assert _versions(store, "sku-7") == ["created"]
    assert sight(store, a_page("a"), a_page("b")).new == 0


# Records


def test_a_record_of_two_pages_is_shown_from_the_later_look_and_deleted_when_none_yields_it(store: Store) -> None:
    visited(store, (a_page("a"), "-"), (a_page("b"), "-"))
    tasks = _again(store, "a", "b")
    put(store, (tasks["b"], a_changed_outcome(tasks["b"], things=[a_thing("x", "of b")])))
    put(store, (tasks["a"], a_changed_outcome(tasks["a"], things=[a_thing("x", "of a")])))
    assert _things(store)["x"] == "of b"  # one claim, one place in the order of looks: the greater page decides
    now = LATER + timedelta(hours=2)
    tasks = _again(store, "a", "b", now=now)
    put(store, (tasks["a"], a_changed_outcome(tasks["a"], things=[a_thing("x", "of a, later")])), now=now)
    assert _things(store)["x"] == "of a, later"
    put(store, (tasks["b"], an_unchanged_outcome(tasks["b"])), now=now)
    assert _things(store)["x"] == "of a, later"
    now += timedelta(hours=2)
    tasks = _again(store, "a", "b", now=now)
    put(store, (tasks["a"], a_changed_outcome(tasks["a"], things=[a_thing("y", "else")])), now=now)
    assert _things(store)["x"] == "of b"
    put(store, (tasks["b"], a_changed_outcome(tasks["b"], things=[a_thing("z", "else")])), now=now)
    assert "x" not in _things(store)
    assert rows(store, "SELECT title FROM things WHERE id = 'x'") == [{"title": "of b"}]


def test_the_source_s_order_decides_between_two_pages_before_the_look_does(store: Store) -> None:
    sight(store, a_page("a"), a_page("b"))
    a, b = take(store)
    new = a_changed_outcome(a, things=[a_thing("x", "new")], updated=NOW)
    old = a_changed_outcome(b, things=[a_thing("x", "old")], updated=NOW - timedelta(days=1))
    put(store, (a, new), (b, old), order="updated")
    assert _things(store) == {"x": "new"}


def test_the_history_view_shows_from_when_to_when_a_version_held(store: Store) -> None:
    visited(store, (a_page("a"), "one"))
    task = _again(store, "a")["a"]
    put(store, (task, a_changed_outcome(task, "two", at=LATER)), now=LATER)
    history = rows(store, "SELECT title, valid_from, valid_to FROM things_history ORDER BY valid_from")
    assert [row["title"] for row in history] == ["one", "two"]
    assert history[0]["valid_to"] == history[1]["valid_from"]
    assert history[1]["valid_to"] is None


# Trouble


def test_a_throttled_look_gives_the_attempt_back_and_keeps_workers_off_the_host(store: Store) -> None:
    sight(store, a_page("a"), a_page("b"))
    task, other = take(store)
    until = NOW + timedelta(minutes=10)
    put(store, (task, Throttled(look=a_look(task, status=429), until=until)))
    leases.release(store, [(other.id, other.token)])
    assert take(store) == []
    reap.reap(store, until)
    assert [again.attempt for again in take(store, now=until)] == [1, 1]


def test_broken_looks_are_tried_again_until_the_attempts_are_used_up(store: Store) -> None:
    sight(store, a_page("a"))
    now = NOW
    for attempt in (1, 2, 3):
        task = take_one(store, now=now)
        assert task.attempt == attempt
        settled = put(store, (task, a_broken_outcome(task)), now=now, max_attempts=3)
        now += timedelta(minutes=1)
        reap.reap(store, now)
    assert settled.counts == {"failed": 1}
    assert take(store, now=now) == []
    assert rows(store, "SELECT state, attempt FROM tasks WHERE page IS NOT NULL") == [{"state": "dead", "attempt": 3}]
    _again(store, "a")


def test_what_is_no_data_is_kept_once_with_its_reason_and_put_aside_when_the_page_reads_well(store: Store) -> None:
    sight(store, a_page("a"))
    for now in (NOW, LATER):
        task = take_one(store) if now == NOW else _again(store, "a")["a"]
        look = a_look(task)
        put(store, (task, Invalid(look=look, stage=Stage.CLEAN, reason="no price", raw=b"<html>")), now=now)
    letters = rows(store, "SELECT stage, reason, resolution FROM dead_letters")
    assert letters == [{"stage": "clean", "reason": "no price", "resolution": None}]
    now = LATER + timedelta(hours=2)
    task = _again(store, "a", now=now)["a"]
    put(store, (task, a_changed_outcome(task)), now=now)
    assert rows(store, "SELECT resolution FROM dead_letters") == [{"resolution": "superseded"}]


def test_a_page_that_is_gone_or_blocked_keeps_its_data(store: Store) -> None:
    visited(store, (a_page("a"), "one"), (a_page("b"), "two"))
    tasks = _again(store, "a", "b")
    put(
        store,
        (tasks["a"], Gone(look=a_look(tasks["a"], status=404))),
        (tasks["b"], Quarantined(look=a_look(tasks["b"]), reason="captcha", raw=b"<html>")),
        now=LATER,
    )
    assert _things(store) == {"a": "one", "b": "two"}
    assert (_page(store, "a")["status"], _page(store, "b")["status"]) == ("active", "failing")

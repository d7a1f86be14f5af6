"""Closing a cycle, on both databases: what is missed, suspected, deleted, held back, and let go."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from sqlalchemy import text

from recrawl.declare.policies import Deletion
from recrawl.model.outcome import Outcome, Refused
from recrawl.model.work import Task
from recrawl.store import close, cycle, plan
from recrawl.store.close import Closed, approve, held
from recrawl.store.database import Store
from tests.support.stores import (
    NOW,
    SOURCE,
    a_changed_outcome,
    a_cycle,
    a_gone_outcome,
    a_look,
    a_moved_outcome,
    a_thing,
    an_unchanged_outcome,
    killed_before_commit,
    looked_at,
    one,
    page_id_of,
    put,
    rows,
    take,
)

ALL = [f"p{number}" for number in range(10)]
WITHOUT_P0 = ALL[1:]
SITEMAP = "https://shop.example/sitemap.xml"
QUICK = Deletion(suspect_after=1)


def hours(count: float) -> datetime:
    return NOW + timedelta(hours=count)


def filled(store: Store, pages: Sequence[str] = ALL) -> None:
    """A source whose pages are known and read."""
    a_cycle(store, {SITEMAP: pages}, now=NOW)
    looked_at(store, lambda task: a_changed_outcome(task, page_id_of(task)), now=NOW)


def state(store: Store, page: str = "p0") -> str:
    return str(one(store, "SELECT status FROM pages WHERE page_id = :page", page=page))


def misses(store: Store, page: str = "p0") -> int:
    return int(one(store, "SELECT misses FROM pages WHERE page_id = :page", page=page))


def look(store: Store, now: datetime, gone: Sequence[str] = (), status: int = 404) -> list[str]:
    """Look at what is due; these pages are gone, the others are as they were."""

    def outcome(task: Task) -> Outcome:
        return a_gone_outcome(task, status) if page_id_of(task) in gone else an_unchanged_outcome(task, at=now)

    return looked_at(store, outcome, now=now)


def suspected(store: Store) -> None:
    """p0 has been missed twice."""
    filled(store)
    for hour in (1, 2):
        closed = a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(hour))
    assert (closed.suspected, state(store)) == (1, "suspected")


# What is missed


def test_a_page_collects_one_miss_in_each_complete_cycle_and_is_suspected_after_the_second(store: Store) -> None:
    filled(store)
    assert a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(1)) == Closed(complete=True)
    assert (misses(store), state(store)) == (1, "active")
    assert a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(2)).suspected == 1
    assert (misses(store), state(store)) == (2, "suspected")
    assert a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(3)) == Closed(complete=True)
    assert misses(store) == 3
    assert one(store, "SELECT count(*) FROM events WHERE kind = 'suspected'") == 1


def test_a_cycle_that_is_not_complete_misses_nothing_and_what_it_dropped_counts_later(store: Store) -> None:
    filled(store)
    assert a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(1), whole=False) == Closed(complete=False)
    assert misses(store) == 0
    a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(2))
    assert misses(store) == 1


def test_a_page_that_another_document_lists_is_not_missed(store: Store) -> None:
    one_list, other = f"{SITEMAP}?1", f"{SITEMAP}?2"
    a_cycle(store, {one_list: ALL, other: ["p0"]}, now=NOW)
    a_cycle(store, {one_list: WITHOUT_P0, other: ["p0"]}, now=hours(1))
    assert misses(store) == 0
    a_cycle(store, {one_list: WITHOUT_P0, other: ["p1"]}, now=hours(2))
    assert misses(store) == 1


def test_the_pages_of_a_document_that_is_gone_are_missed_and_are_back_when_it_is(store: Store) -> None:
    one_list, other = f"{SITEMAP}?1", f"{SITEMAP}?2"
    a_cycle(store, {one_list: WITHOUT_P0, other: ["p0"]}, now=NOW)
    for hour in (1, 2):
        a_cycle(store, {one_list: WITHOUT_P0}, now=hours(hour))
        assert misses(store) == hour
    a_cycle(store, {one_list: WITHOUT_P0, other: ["p0"]}, now=hours(3))
    assert misses(store) == 0


def test_a_page_is_not_missed_by_the_cycle_that_found_it(store: Store) -> None:
    a_cycle(store, {SITEMAP: ALL}, now=NOW)
    a_cycle(store, {f"{SITEMAP}?1": ["new"], SITEMAP: ALL}, now=hours(1))
    assert misses(store, "new") == 0


def test_what_only_a_feed_told_of_is_never_missed(store: Store) -> None:
    a_cycle(store, {SITEMAP: ALL}, now=NOW, exhaustive=False)
    for hour in (1, 2, 3):
        a_cycle(store, {SITEMAP: ["p9"]}, now=hours(hour), exhaustive=False)
    assert one(store, "SELECT max(misses) FROM pages") == 0
    assert one(store, "SELECT count(*) FROM members") == 1, "what a feed no longer shows is let go"


def test_streams_that_are_not_declared_any_more_say_nothing(store: Store) -> None:
    a_cycle(store, {SITEMAP: ALL}, now=NOW)
    for hour in (1, 2):
        a_cycle(store, {f"{SITEMAP}?other": ["q"]}, now=hours(hour), stream="other")
    assert misses(store) == 0


def test_a_page_that_is_listed_again_begins_anew(store: Store) -> None:
    filled(store)
    a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(1))
    a_cycle(store, {SITEMAP: ALL}, now=hours(2))
    a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(3))
    assert (misses(store), state(store)) == (1, "active")


def test_a_page_that_moved_is_not_missed_at_its_old_address(store: Store) -> None:
    filled(store)
    looked_at(
        store,
        lambda task: a_moved_outcome(task, "new") if page_id_of(task) == "p0" else an_unchanged_outcome(task),
        now=hours(40),
    )
    looked_at(store, lambda task: a_changed_outcome(task, things=(a_thing("p0", "p0"),)), now=hours(40.5))
    for hour in (41, 42, 43):
        assert a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(hour)).suspected == 0
    assert (state(store), state(store, "new")) == ("moved", "active")
    assert one(store, "SELECT count(*) FROM things WHERE _deleted_at IS NOT NULL") == 0


# Suspicion and its end


def test_a_suspected_page_that_is_listed_again_is_active_again(store: Store) -> None:
    suspected(store)
    assert a_cycle(store, {SITEMAP: ALL}, now=hours(3)).acquitted == 1
    assert (state(store), misses(store)) == ("active", 0)


def test_being_listed_does_not_help_a_page_that_a_look_did_not_find(store: Store) -> None:
    suspected(store)
    look(store, hours(3), gone=["p0"])
    assert a_cycle(store, {SITEMAP: ALL}, now=hours(4)).acquitted == 0
    assert state(store) == "suspected"


def test_a_suspected_page_that_is_read_well_is_active_again(store: Store) -> None:
    suspected(store)
    assert "p0" in look(store, hours(3))
    assert (state(store), misses(store)) == ("active", 0)
    assert one(store, "SELECT count(*) FROM events WHERE kind = 'acquitted'") == 1


def test_reading_again_what_is_stored_ends_no_suspicion(store: Store) -> None:
    suspected(store)
    looked_at(store, lambda task: an_unchanged_outcome(task, at=hours(3), requests=0), now=hours(3))
    assert state(store) == "suspected"


def test_a_page_that_a_look_did_not_find_is_suspected_at_the_end_of_any_cycle(store: Store) -> None:
    filled(store)
    look(store, hours(3), gone=["p0"])
    assert state(store) == "active"
    assert a_cycle(store, {SITEMAP: ALL}, now=hours(4), whole=False).suspected == 1


def test_looks_at_a_suspected_page_are_six_hours_apart(store: Store) -> None:
    suspected(store)
    assert "p0" in look(store, hours(3), gone=["p0"])
    a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(4))
    assert "p0" not in look(store, hours(8.9), gone=["p0"])
    assert "p0" in look(store, hours(9), gone=["p0"])


# Deletion


def deleted(store: Store, status: int = 404) -> Closed:
    suspected(store)
    look(store, hours(3), gone=["p0"], status=status)
    if status != 410:
        assert a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(4)).deleted == ()
        look(store, hours(9), gone=["p0"], status=status)
    return a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(10))


def test_two_looks_that_found_nothing_delete_a_suspected_page(store: Store) -> None:
    assert deleted(store).deleted == ("https://shop.example/p0",)
    (page,) = rows(store, "SELECT * FROM pages WHERE page_id = 'p0'")
    assert (page["status"], page["version"]) == ("deleted", 2)
    assert "2 looks" in page["delete_reason"]
    assert page["deleted_at"] is not None
    versions = rows(store, "SELECT kind, data FROM versions WHERE page = :page ORDER BY seq", page=page["id"])
    assert [version["kind"] for version in versions] == ["created", "deleted"]
    assert versions[0]["data"] == versions[1]["data"], "the last payload is kept"
    assert one(store, "SELECT count(*) FROM events WHERE kind = 'deleted'") == 1


def test_one_410_is_as_good_as_all_confirmations(store: Store) -> None:
    assert len(deleted(store, status=410).deleted) == 1


def test_a_deleted_page_is_deleted_once(store: Store) -> None:
    deleted(store)
    look(store, hours(24 * 40), gone=ALL)
    assert a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(24 * 41)).deleted == ()
    assert one(store, "SELECT count(*) FROM versions WHERE kind = 'deleted'") == 1


def test_the_records_of_a_deleted_page_are_marked_and_keep_their_values(store: Store) -> None:
    deleted(store)
    (row,) = rows(store, "SELECT title, _deleted_at FROM things WHERE id = 'p0'")
    assert row["title"] == "p0"
    assert row["_deleted_at"] is not None
    assert one(store, "SELECT count(*) FROM things WHERE _deleted_at IS NULL") == 9


def test_a_record_that_another_page_yields_too_stays(store: Store) -> None:
    a_cycle(store, {SITEMAP: ALL}, now=NOW)
    shared = (a_thing("shared", "one"),)
    looked_at(store, lambda task: a_changed_outcome(task, things=shared), now=NOW)
    for hour in (1, 2):
        a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(hour))
    look(store, hours(3), gone=["p0"], status=410)
    assert len(a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(4)).deleted) == 1
    (row,) = rows(store, "SELECT _page_id, _deleted_at FROM things")
    assert row["_page_id"] != "p0"
    assert row["_deleted_at"] is None


def test_where_nothing_can_be_fetched_five_cycles_of_absence_delete(store: Store) -> None:
    suspected(store)
    looked_at(
        store,
        lambda task: (
            Refused(look=a_look(task), reason="robots.txt", by_robots=True)
            if page_id_of(task) == "p0"
            else an_unchanged_outcome(task)
        ),
        now=hours(3),
    )
    closes = [a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(hour)) for hour in (4, 5, 6)]
    assert [len(closed.deleted) for closed in closes] == [0, 0, 1]
    assert "could not be fetched" in one(store, "SELECT delete_reason FROM pages WHERE page_id = 'p0'")


def test_a_page_that_is_fetched_well_again_is_restored_with_its_records(store: Store) -> None:
    deleted(store)
    a_cycle(store, {SITEMAP: ALL}, now=hours(11))
    looked_at(
        store,
        lambda task: a_changed_outcome(task, "p0") if page_id_of(task) == "p0" else an_unchanged_outcome(task),
        now=hours(11),
    )
    (page,) = rows(store, "SELECT * FROM pages WHERE page_id = 'p0'")
    assert (page["status"], page["version"], page["deleted_at"], page["delete_reason"]) == ("active", 3, None, None)
    kinds = rows(store, "SELECT kind FROM versions WHERE page = :page ORDER BY seq", page=page["id"])
    assert [row["kind"] for row in kinds] == ["created", "deleted", "restored"]
    assert one(store, "SELECT count(*) FROM things WHERE _deleted_at IS NOT NULL") == 0


def test_a_page_that_was_deleted_while_it_was_looked_at_is_looked_at_again(store: Store) -> None:
    suspected(store)
    look(store, hours(3), gone=["p0"])
    a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(4))
    look(store, hours(9), gone=["p0"])
    _due_now(store)
    (late,) = [task for task in _planned(store, hours(9)) if page_id_of(task) == "p0"]
    assert len(a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(9)).deleted) == 1
    put(store, (late, an_unchanged_outcome(late, raw_hash="what it was")), now=hours(9))
    assert state(store) == "deleted"
    assert [page_id_of(task) for task in _planned(store, hours(9))] == ["p0"]


def _due_now(store: Store) -> None:
    sql = text("UPDATE pages SET due_at = first_seen_at WHERE page_id = 'p0'")
    store.write(lambda connection: connection.execute(sql))


def _planned(store: Store, now: datetime) -> list[Task]:
    plan.plan(store, SOURCE, until=now, now=now, expires_at=now + timedelta(days=1))
    return take(store, now=now)


# The guard


def vanished(store: Store, policy: Deletion = QUICK) -> Closed:
    filled(store)
    return a_cycle(store, {SITEMAP: ALL[3:]}, now=hours(1), policy=policy)


def test_too_much_at_once_is_held_and_nothing_is_suspected(store: Store) -> None:
    closed = vanished(store)
    assert (closed.held, closed.standing, closed.suspected) == (3, 10, 0)
    assert [page.page_id for page in held(store, SOURCE)] == ["p0", "p1", "p2"]
    assert one(store, "SELECT count(*) FROM events WHERE kind = 'guard'") == 1
    assert one(store, "SELECT count(*) FROM pages WHERE status = 'active'") == 10


def test_pages_that_are_suspected_already_count_too(store: Store) -> None:
    filled(store)
    assert a_cycle(store, {SITEMAP: ALL[2:]}, now=hours(1), policy=QUICK).suspected == 2
    closed = a_cycle(store, {SITEMAP: ALL[3:]}, now=hours(2), policy=QUICK)
    assert (closed.held, closed.suspected) == (3, 0)


def test_what_is_held_is_not_deleted_though_it_is_confirmed(store: Store) -> None:
    filled(store)
    a_cycle(store, {SITEMAP: ALL[2:]}, now=hours(1), policy=QUICK)
    look(store, hours(2), gone=ALL[:2], status=410)
    closed = a_cycle(store, {SITEMAP: ALL[3:]}, now=hours(3), policy=QUICK)
    assert (closed.deleted, closed.held) == ((), 3)


def test_all_of_a_source_is_held_whatever_the_share_that_may_go(store: Store) -> None:
    filled(store)
    policy = Deletion(suspect_after=1, max_vanish=1.0)
    assert a_cycle(store, {SITEMAP: ["new"]}, now=hours(1), policy=policy).held == 10


def test_pages_that_were_found_since_do_not_make_a_vanishing_small(store: Store) -> None:
    filled(store)
    many = [f"new{number}" for number in range(50)]
    a_cycle(store, {SITEMAP: [*ALL[3:], *many]}, now=hours(0.2))
    looked_at(store, lambda task: a_changed_outcome(task, page_id_of(task)), now=hours(0.2))
    closed = a_cycle(store, {SITEMAP: [*ALL[3:], *many]}, now=hours(0.4))
    assert (closed.held, closed.standing) == (3, 10)


def test_approval_lets_exactly_the_shown_pages_through(store: Store) -> None:
    vanished(store)
    assert approve(store, SOURCE, held(store, SOURCE), hours(1)) == 3
    assert held(store, SOURCE) == []
    closed = a_cycle(store, {SITEMAP: ALL[4:]}, now=hours(2), policy=QUICK)
    assert (closed.suspected, closed.held) == (4, 0), "the fourth is one of seven, and needs no word"
    assert one(store, "SELECT count(*) FROM pages WHERE approved") == 3


def test_approval_does_not_cover_what_vanishes_later(store: Store) -> None:
    vanished(store)
    approve(store, SOURCE, held(store, SOURCE), hours(1))
    closed = a_cycle(store, {SITEMAP: ALL[6:]}, now=hours(2), policy=QUICK)
    assert (closed.suspected, closed.held) == (3, 3)


def test_an_approved_page_that_is_listed_again_stays(store: Store) -> None:
    vanished(store)
    approve(store, SOURCE, held(store, SOURCE), hours(1))
    assert a_cycle(store, {SITEMAP: ALL[2:]}, now=hours(2), policy=QUICK).suspected == 2
    assert (state(store, "p2"), one(store, "SELECT approved FROM pages WHERE page_id = 'p2'")) == ("active", False)


def test_a_held_page_that_is_listed_again_is_let_go_of(store: Store) -> None:
    vanished(store)
    shown = held(store, SOURCE)
    assert a_cycle(store, {SITEMAP: ALL}, now=hours(2), policy=QUICK) == Closed(complete=True)
    assert approve(store, SOURCE, shown, hours(2)) == 0


# One transaction, once


def test_a_process_that_is_killed_in_close_has_judged_nothing(store: Store) -> None:
    suspected(store)
    look(store, hours(3), gone=["p0"], status=410)
    before = rows(store, "SELECT status, misses, version FROM pages ORDER BY id")
    opened = cycle.begin(store, SOURCE, [], hours(4))
    with killed_before_commit(store):
        close.close(store, SOURCE, opened.id, Deletion(), hours(4))
    assert rows(store, "SELECT status, misses, version FROM pages ORDER BY id") == before
    again = close.close(store, SOURCE, opened.id, Deletion(), hours(4))
    assert again is not None
    assert len(again.deleted) == 1


def test_two_that_close_one_cycle_at_once_miss_a_page_once(store: Store) -> None:
    filled(store)
    a_cycle(store, {SITEMAP: WITHOUT_P0}, now=hours(1))
    look(store, hours(3), gone=["p1"], status=410)
    opened = cycle.begin(store, SOURCE, [], hours(4))
    with ThreadPoolExecutor(4) as workers:
        closes = list(workers.map(lambda _: close.close(store, SOURCE, opened.id, Deletion(), hours(4)), range(4)))
    assert sum(closed.suspected for closed in closes if closed) == 1
    assert one(store, "SELECT count(*) FROM events WHERE kind = 'suspected'") == 1

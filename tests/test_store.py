"""The store's conformance suite, on both databases: claims, leases, discovery, cursors, cycles and the schema.

What `settle` writes is in test_settle.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from recrawl.declare.policies import Deletion
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec
from recrawl.errors import Misuse, StoreUnavailable
from recrawl.model.settlement import TaskEnd
from recrawl.model.work import Stage, TaskState
from recrawl.store import close, cursor, cycle, leases, migrate, plan, reap, recordtables, sources
from recrawl.store.control import pages_of_host
from recrawl.store.database import Store, open_store
from recrawl.store.leases import LeaseLost
from recrawl.store.tables import metadata
from tests.support.races import meanwhile
from tests.support.stores import (
    HOST,
    LEASE,
    NOW,
    READER,
    SOURCE,
    STREAM,
    THING,
    a_broken_outcome,
    a_changed_outcome,
    a_page,
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

LATER = NOW + timedelta(minutes=2)


# Claims


def test_claims_at_the_same_time_never_hand_out_one_task_twice(store: Store) -> None:
    sight(store, *(a_page(f"p{number}") for number in range(60)))
    with ThreadPoolExecutor(4) as workers:
        taken = list(workers.map(lambda worker: take(store, 7, owner=f"w{worker}"), range(12)))
    ids = [task.id for tasks in taken for task in tasks]
    assert len(ids) == len(set(ids)) == 60
    assert max(len(tasks) for tasks in taken) == 7


def test_a_claim_takes_no_more_than_it_asked_for_and_shares_it_among_hosts(store: Store) -> None:
    other = [replace(a_page(f"q{number}"), host="other.example") for number in range(20)]
    sight(store, *(a_page(f"p{number}") for number in range(20)), *other)
    taken = take(store, 6)
    assert sorted(task.host for task in taken) == ["other.example"] * 3 + [HOST] * 3


def test_a_claim_counts_the_attempt_and_draws_one_place_in_the_order_of_looks(store: Store) -> None:
    sight(store, a_page("a"), a_page("b"))
    first, second = take(store)
    assert (first.attempt, second.attempt) == (1, 1)
    assert first.token == second.token
    assert first.observed == second.observed > one(store, "SELECT max(hint_observed) FROM pages")


def test_a_worker_with_another_declaration_claims_nothing(store: Store) -> None:
    sight(store, a_page("a"))
    assert take(store, spec="spec-2") == []
    assert len(take(store)) == 1


def test_a_paused_source_is_not_claimed(store: Store) -> None:
    sight(store, a_page("a"))
    _write(store, "UPDATE sources SET paused = true")
    assert take(store) == []


def test_a_task_that_crashed_its_worker_is_claimed_by_itself(store: Store) -> None:
    sight(store, a_page("a"), a_page("b"), a_page("c"))
    killer, *_ = take(store, 1)
    reap.reap(store, LATER)
    assert [(task.id, task.crashes) for task in take(store, now=LATER)] == [(killer.id, 1)]
    assert [task.crashes for task in take(store, now=LATER)] == [0, 0]


# Leases


def test_renewing_extends_what_is_held_and_tells_what_is_lost(store: Store) -> None:
    sight(store, a_page("a"), a_page("b"))
    held, lost = take(store)
    until = NOW + 3 * LEASE
    assert leases.renew(store, [(held.id, held.token), (lost.id, "another token")], until) == [lost.id]
    assert reap.reap(store, LATER).recovered == 1
    assert [task.id for task in take(store, now=LATER)] == [lost.id]


def test_a_task_given_back_is_claimable_and_its_attempt_does_not_count(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    leases.release(store, [(task.id, task.token)])
    again = take_one(store)
    assert (again.id, again.attempt, again.crashes) == (task.id, 1, 0)


def test_what_another_worker_holds_cannot_be_given_back(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    leases.release(store, [(task.id, "another token")])
    assert take(store) == []


def test_reaping_brings_back_leases_that_ran_out_and_counts_the_crash(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    assert reap.reap(store, NOW + LEASE) == reap.Reaped()
    assert reap.reap(store, LATER) == reap.Reaped(recovered=1)
    again = take_one(store, now=LATER)
    assert (again.id, again.attempt, again.crashes) == (task.id, 2, 1)


def test_reaping_brings_back_what_dead_workers_held_before_their_leases_run_out(store: Store) -> None:
    sight(store, a_page("a"), a_page("b"))
    (dead,) = take(store, 1, owner="dead")
    take(store, 1, owner="alive")
    assert sorted(leases.owners(store)) == ["alive", "dead"]
    assert reap.reap(store, NOW, ["dead"]) == reap.Reaped(recovered=1)
    assert [task.id for task in take(store)] == [dead.id]


def test_a_failed_task_waits_for_its_time_and_is_claimable_then(store: Store) -> None:
    sight(store, a_page("a"))
    task = take_one(store)
    put(store, (task, a_broken_outcome(task)))
    assert reap.reap(store, NOW) == reap.Reaped()
    assert take(store) == []
    assert reap.reap(store, LATER) == reap.Reaped(ripe=1)
    assert take_one(store, now=LATER).id == task.id


def test_a_task_that_waited_too_long_ends_and_its_page_is_not_forgotten(store: Store) -> None:
    sight(store, a_page("a"))
    late = NOW + timedelta(days=3)
    assert reap.reap(store, late) == reap.Reaped(expired=1, forgotten=1)
    assert take(store, now=late) == []
    assert plan.plan(store, SOURCE, until=late, now=late, expires_at=late + LEASE) == 1
    assert page_id_of(take_one(store, now=late)) == "a"


# Discovery


def test_a_worker_that_lost_its_stream_sees_nothing(store: Store) -> None:
    walk = a_walk(store)
    reap.reap(store, LATER)
    a_walk(store, now=LATER)
    with pytest.raises(LeaseLost):
        walk.see(a_page("a"))
    assert one(store, "SELECT count(*) FROM pages") == 0


def test_a_stream_that_went_on_from_another_point_refuses_the_batch(store: Store) -> None:
    walk = a_walk(store)
    stale = replace(walk)
    walk.see(a_page("a"))
    with pytest.raises(LeaseLost):
        stale.see(a_page("b"))
    assert [row["page_id"] for row in rows(store, "SELECT page_id FROM pages")] == ["a"]


def test_a_worker_killed_before_the_commit_has_seen_nothing_at_all(store: Store) -> None:
    walk = a_walk(store)
    with killed_before_commit(store):
        walk.see(a_page("a"), a_page("b"))
    for table in ("pages", "batches", "batch_tasks", "members"):
        assert one(store, f"SELECT count(*) FROM {table}") == 0
    assert cursor.cursor(store, SOURCE, STREAM).seen is None
    assert walk.see(a_page("a"), a_page("b")).new == 2


def test_a_sighting_that_says_nothing_new_makes_no_task(store: Store) -> None:
    visited(store, (a_page("a", "monday"), "one"))
    seen = sight(store, a_page("a", "monday"))
    assert (seen.same, seen.hinted, seen.new) == (1, 0, 0)
    assert take(store) == []


def test_a_hint_that_moved_asks_for_a_visit(store: Store) -> None:
    visited(store, (a_page("a", "monday"), "one"))
    assert sight(store, a_page("a", "tuesday")).hinted == 1
    assert page_id_of(take_one(store)) == "a"


def test_a_forced_look_is_made_without_validators(store: Store) -> None:
    visited(store, (a_page("a", "monday"), "one"))
    assert a_walk(store).see(a_page("a", "monday"), forced=True).forced == 1
    assert take_one(store).forced


@pytest.mark.parametrize("hint", ["monday", "tuesday", None])
def test_a_batch_that_sights_a_page_with_an_open_task_waits_for_that_task(store: Store, hint: str | None) -> None:
    sight(store, a_page("a", "monday"))
    task = take_one(store)
    walk = a_walk(store, stream="feed")
    walk.see(a_page("a", hint))
    linked = rows(store, "SELECT t.task FROM batch_tasks t JOIN batches b ON b.id = t.batch WHERE b.stream = 'feed'")
    assert [row["task"] for row in linked] == [task.id]
    assert cursor.advance(store, SOURCE, "feed", NOW) == 0


def test_a_moved_hint_raises_the_priority_of_the_open_task(store: Store) -> None:
    visited(store, (a_page("a", "monday"), "one"), (a_page("b", "monday"), "one"))
    late = NOW + timedelta(days=40)
    plan.plan(store, SOURCE, until=late, now=late, expires_at=late + timedelta(days=2))
    sight(store, a_page("b", "tuesday"), now=late)
    assert [page_id_of(task) for task in take(store, now=late)] == ["b", "a"]


def test_a_hint_that_moves_while_the_visit_before_it_ends_gets_a_visit_of_its_own(postgres_store: Store) -> None:
    walk = a_walk(postgres_store)
    walk.see(a_page("a", "monday"))
    task = take_one(postgres_store)
    with meanwhile(
        postgres_store, "UPDATE pages SET hint = ", lambda: put(postgres_store, (task, a_changed_outcome(task)))
    ):
        assert walk.see(a_page("a", "tuesday")).hinted == 1
    assert page_id_of(take_one(postgres_store)) == "a"


def test_a_page_sighted_twice_in_a_batch_is_one_page_with_one_task(store: Store) -> None:
    assert a_walk(store).see(a_page("a"), a_page("a")).new == 1
    assert len(take(store)) == 1


# Cursors and cycles


def test_the_position_never_passes_a_batch_with_an_open_task(store: Store) -> None:
    walk = a_walk(store)
    for name in "abc":
        walk.see(a_page(name))
    a, b, c = take(store)
    put(store, (a, a_changed_outcome(a)), (c, a_changed_outcome(c)))
    assert cursor.advance(store, SOURCE, STREAM, NOW) == 1
    assert cursor.cursor(store, SOURCE, STREAM) == cursor.Cursor(seen=3, position=1, ended_cycle=None)
    put(store, (b, a_broken_outcome(b)))
    assert cursor.advance(store, SOURCE, STREAM, NOW) == 0
    reap.reap(store, NOW + LEASE)
    b = take_one(store, now=NOW + LEASE)
    put(store, (b, a_changed_outcome(b)))
    assert cursor.advance(store, SOURCE, STREAM, NOW) == 2
    assert cursor.cursor(store, SOURCE, STREAM).position == 3


def test_a_task_that_died_does_not_hold_the_position_back(store: Store) -> None:
    a_walk(store).see(a_page("a"))
    task = take_one(store)
    put(store, (task, a_broken_outcome(task)), max_attempts=1)
    assert cursor.advance(store, SOURCE, STREAM, NOW) == 1


def test_batches_that_were_passed_go_once_their_tasks_are_forgotten_and_the_numbers_go_on(store: Store) -> None:
    for name in "abc":
        sight(store, a_page(name))
    put(store, *((task, a_changed_outcome(task)) for task in take(store, 2)))
    cursor.advance(store, SOURCE, STREAM, NOW)
    assert cursor.forget(store, SOURCE) == 0, "their tasks are remembered"
    later = NOW + reap.KEPT + LEASE
    assert reap.reap(store, later).forgotten == 5, "three of discovery and two visits"
    assert cursor.forget(store, SOURCE) == 1
    sight(store, a_page("d"), now=later)
    assert [row["ordinal"] for row in rows(store, "SELECT ordinal FROM batches ORDER BY id")] == [2, 3, 4]
    assert cursor.cursor(store, SOURCE, STREAM).position == 2


def test_a_source_has_one_open_cycle(store: Store) -> None:
    streams = [cycle.Stream(STREAM, HOST, exhaustive=True)]
    first = cycle.begin(store, SOURCE, streams, NOW)
    second = cycle.begin(store, SOURCE, streams, LATER)
    assert (second.id, second.started_at, second.joined) == (first.id, NOW, True)
    assert one(store, "SELECT count(*) FROM tasks") == 1
    with pytest.raises(DBAPIError):
        _write(
            store,
            "INSERT INTO cycles (source, started_at, state) SELECT source, started_at, state FROM cycles",
        )


def test_cycles_that_begin_at_the_same_time_are_one(store: Store) -> None:
    streams = [cycle.Stream(STREAM, HOST, exhaustive=True)]
    with ThreadPoolExecutor(4) as workers:
        begun = list(workers.map(lambda _: cycle.begin(store, SOURCE, streams, NOW), range(8)))
    assert len({each.id for each in begun}) == 1
    assert sum(not each.joined for each in begun) == 1


def test_a_cycle_stays_open_while_a_stream_is_being_read_and_is_complete_at_its_end(store: Store) -> None:
    walk = a_walk(store)
    assert walk.task.cycle is not None
    assert close.close(store, SOURCE, walk.task.cycle, Deletion(), NOW) is None
    assert walk.end() is True


def test_a_cycle_whose_stream_did_not_reach_its_end_is_not_complete(store: Store) -> None:
    walk = a_walk(store)
    assert walk.task.cycle is not None
    end = TaskEnd(state=TaskState.DEAD, stage=Stage.FETCH, error_class="timeout", error="no answer")
    leases.end_task(store, walk.task.id, walk.task.token, end, NOW)
    assert close.close(store, SOURCE, walk.task.cycle, Deletion(), NOW) == close.Closed(complete=False)


# The schema


@pytest.mark.filterwarnings("ignore:Did not recognize type 'xid8'")
def test_the_migrations_make_the_tables_that_the_code_declares(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": _ours, "compare_type": True})
        assert compare_metadata(context, metadata) == []


def _ours(_object: object, name: str | None, _kind: str, _reflected: bool, _other: object) -> bool:
    # Alembic cannot compare an index over an expression on SQLite; the next test does.
    return name not in (THING.table, "ix_tasks_claim")


def test_the_migrations_make_every_index_with_its_condition(tmp_path: Path, sqlite_template: Path) -> None:
    declared = open_store(str(tmp_path / "declared.db"))
    declared.write(metadata.create_all)
    migrated = open_store(str(sqlite_template))
    sql = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name"
    assert rows(migrated, sql) == rows(declared, sql)
    declared.close()
    migrated.close()


def test_a_schema_of_another_release_is_refused(store: Store) -> None:
    _write(store, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreUnavailable) as refusal:
        migrate.ready(store)
    assert "9999" in refusal.value.problem
    assert migrate.NEWEST in refusal.value.problem
    assert "recrawl db upgrade" in refusal.value.action


def test_the_newest_migration_is_the_schema_that_this_release_works_with(store: Store) -> None:
    assert migrate.present(store) == migrate.NEWEST


def test_upgrading_twice_changes_nothing(store: Store) -> None:
    assert migrate.upgrade(store) is False
    migrate.ready(store)


_EVERY_KIND = RecordSpec(
    "Every",
    "everything",
    ("id",),
    (
        FieldSpec("id", Kind.INT),
        *(FieldSpec(f"a_{kind.lower()}", kind, optional=True) for kind in Kind),
        FieldSpec("many", Kind.STR, many=True),
    ),
    history=True,
)


def test_tables_of_records_with_every_kind_of_field_are_recognised_again(store: Store) -> None:
    recordtables.ensure(store, [_EVERY_KIND])
    store.record_tables.clear()
    recordtables.ensure(store, [_EVERY_KIND])
    assert one(store, "SELECT count(*) FROM everything_history") == 0


def test_a_new_field_adds_a_column_and_keeps_the_rows(store: Store) -> None:
    visited(store, (a_page("a"), "one"))
    wider = replace(THING, fields=(*THING.fields, FieldSpec("price", Kind.PRICE, optional=True)))
    recordtables.ensure(store, [wider])
    for table in ("things", "things_history"):
        assert rows(store, f"SELECT id, title, price_amount, price_currency FROM {table}") == [
            {"id": "a", "title": "one", "price_amount": None, "price_currency": None}
        ]


def test_a_field_of_another_type_is_refused_and_both_types_are_named(store: Store) -> None:
    other = replace(THING, fields=(*THING.fields[:1], FieldSpec("title", Kind.INT)))
    with pytest.raises(Misuse) as refusal:
        recordtables.ensure(store, [other])
    assert "TEXT" in refusal.value.problem
    assert "BIGINT" in refusal.value.problem


@pytest.mark.parametrize("table", ["pages", "cursors", "things_history"])
def test_a_record_cannot_take_the_name_of_a_table_of_recrawl(store: Store, table: str) -> None:
    with pytest.raises(Misuse):
        recordtables.ensure(store, [replace(THING, table=table)])


def test_a_record_cannot_take_over_a_table_that_recrawl_did_not_make(store: Store) -> None:
    _write(store, "CREATE TABLE customers (id text)")
    with pytest.raises(Misuse):
        recordtables.ensure(store, [replace(THING, table="customers", history=False)])


def test_registering_another_declaration_keeps_the_source_and_its_pages(store: Store) -> None:
    visited(store, (a_page("a"), "one"))
    sources.register(store, SOURCE, "spec-2", "reader-2")
    (source,) = sources.all_sources(store)
    assert (source.spec_hash, source.reader_hash) == ("spec-2", "reader-2")
    assert one(store, "SELECT count(*) FROM pages") == 1


def test_pages_read_by_other_rules_are_read_again_from_their_stored_bodies(store: Store) -> None:
    visited(store, (a_page("a"), "one"))
    common = {"now": NOW, "expires_at": LATER}
    assert plan.plan_rereads(store, SOURCE, READER, **common) == 0
    assert plan.plan_rereads(store, SOURCE, "reader-2", **common) == 1
    task = take_one(store)
    assert task.page is not None
    assert task.body_hash == task.page.raw_hash
    put(store, (task, replace(an_unchanged_outcome(task), reader_hash="reader-2")))
    assert plan.plan_rereads(store, SOURCE, "reader-2", **common) == 0


def _write(store: Store, sql: str) -> None:
    def work(connection: Connection) -> None:
        connection.execute(text(sql))

    store.write(work)


def test_a_task_that_killed_five_workers_ends_as_a_dead_letter(store: Store) -> None:
    sight(store, a_page("killer"), a_page("innocent"))
    now = NOW
    for _ in range(reap.MOST_CRASHES):
        held = take(store, 1, now=now)
        assert len(held) == 1
        now += 2 * LEASE
        reap.reap(store, now)
    assert reap.reap(store, now).killers == 1
    assert one(store, "SELECT count(*) FROM dead_letters") == 1
    assert one(store, "SELECT count(*) FROM tasks WHERE kind = 'visit' AND state = 'dead'") == 1
    assert one(store, "SELECT count(*) FROM pages WHERE status = 'failing' AND due_at IS NOT NULL") == 1
    assert len(take(store, now=now)) == 1, "the innocent one is still there"


def test_pages_that_vouch_for_a_host_are_taken_from_several_places(store: Store) -> None:
    """Pages that were found together may go together: three of them would say that the host is not itself."""
    visited(store, *((a_page(f"/{number}"), f"text {number}") for number in range(80)))
    for draw in (0.0, 0.3, 0.7, 0.99):
        found = pages_of_host(store, SOURCE, HOST, most=4, draw=draw)
        assert len({page.id // 20 for page in found}) >= 3

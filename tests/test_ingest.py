"""`recrawl ingest`: a file of records is taken in once, whatever happens on the way."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import zstandard

from recrawl.errors import Permanent
from recrawl.operate.ingest import Reached, ingest
from recrawl.store.database import Store, open_store
from recrawl.store.inbox import account
from tests.support.pushes import OFFERS, offer, versions_of
from tests.support.stores import one

DECLARATION = """
[record.Offer]
table = "offers"
key = "sku"
fields.sku = { type = "str" }
fields.title = { type = "str" }

[source.offers]
read = "Offer"
"""


def a_file(folder: Path, count: int, *more: bytes, name: str = "offers.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"\n".join([*(orjson.dumps(offer(str(number))) for number in range(count)), *more]))
    return path


def test_a_file_becomes_rows_and_its_account_adds_up(store: Store, tmp_path: Path) -> None:
    path = a_file(tmp_path, 30, b"", orjson.dumps(offer("1")), b"no json", b"{}", b"")
    of = ingest(store, OFFERS, path, batch=7)
    assert (of.received, of.new, of.duplicates, of.dead, of.waiting) == (33, 30, 1, 2, 0)
    assert one(store, "SELECT count(*) FROM offers") == 30


def test_a_file_of_windows_with_a_byte_order_mark_loses_no_line(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "offers.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(orjson.dumps(offer(str(number))) for number in range(3)))
    of = ingest(store, OFFERS, path)
    assert (of.new, of.dead) == (3, 0)


def test_a_file_that_was_taken_in_is_not_taken_in_again(store: Store, tmp_path: Path) -> None:
    path = a_file(tmp_path, 5, orjson.dumps(offer("1", "b")), orjson.dumps(offer("1", "a")))
    first = ingest(store, OFFERS, path)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    assert ingest(store, OFFERS, copy, batch=2) == first
    assert len(versions_of(store, "1")) == 3


@pytest.mark.parametrize("batch", [3, 4])
def test_a_run_that_was_ended_goes_on_behind_its_last_batch_whatever_the_next_batches_are(
    store: Store, tmp_path: Path, batch: int
) -> None:
    path = a_file(tmp_path, 20, *(orjson.dumps(offer("0", title)) for title in "ab"))

    def end(reached: Reached) -> None:
        if reached.lines >= 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(store, OFFERS, path, batch=3, told=end)
    of = ingest(store, OFFERS, path, batch=batch)
    assert (of.received, of.new, of.changed, of.waiting) == (22, 20, 2, 0)
    assert account(store, "offers").received == 22


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_files_are_read_and_their_runs_go_on_too(store: Store, tmp_path: Path, suffix: str) -> None:
    plain = a_file(tmp_path, 20).read_bytes()
    pack = gzip.compress if suffix == ".gz" else zstandard.ZstdCompressor().compress
    packed = pack(plain[:300]) + pack(plain[300:])  # as when files are joined
    path = tmp_path / f"offers.jsonl{suffix}"
    path.write_bytes(packed)

    def end(_: Reached) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(store, OFFERS, path, batch=3, told=end)
    assert ingest(store, OFFERS, path).new == 20


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_that_breaks_off_is_told_of_and_what_came_before_is_kept(
    store: Store, tmp_path: Path, suffix: str
) -> None:
    lines = b"\n".join(orjson.dumps(offer(str(number), os.urandom(40).hex())) for number in range(4000))
    packed = gzip.compress(lines) if suffix == ".gz" else zstandard.ZstdCompressor().compress(lines)
    path = tmp_path / f"offers.jsonl{suffix}"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(Permanent, match="cannot be read"):
        ingest(store, OFFERS, path, batch=50)
    assert account(store, "offers").received >= 50


def test_a_line_without_an_end_is_a_dead_letter_and_memory_stays_bounded(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "offers.jsonl"
    path.write_bytes(b"x" * 9_000_000 + b"\n" + orjson.dumps(offer("1")))
    of = ingest(store, OFFERS, path)
    assert (of.received, of.new, of.dead) == (2, 1, 1)


def test_a_file_that_is_not_there_is_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="no such file") as told:
        ingest(store, OFFERS, tmp_path / "nowhere.jsonl")
    assert "nowhere" in told.value.place


def test_standard_input_is_taken_in_each_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(orjson.dumps(offer("1")) + b"\n")))
        ingest(store, OFFERS, None)
    of = account(store, "offers")
    assert (of.new, of.duplicates) == (1, 1)


def _command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "recrawl", "ingest", *arguments]
    return subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_the_command_tells_what_became_of_the_lines_and_names_the_way_to_the_dead(tmp_path: Path) -> None:
    (tmp_path / "recrawl.toml").write_text(DECLARATION)
    path = a_file(tmp_path, 3, b"no json")
    out, err = (process := _command(tmp_path, path.name, "--source", "offers")).communicate(timeout=100)
    assert process.returncode == 3, err
    assert "offers: 4 lines" in out
    assert "recrawl dead list --source offers" in out
    out, err = (process := _command(tmp_path, path.name, "--source", "offers", "--json")).communicate(timeout=100)
    assert orjson.loads(out)["counts"]["new"] == 3
    out, err = (process := _command(tmp_path, path.name, "--source", "nothing")).communicate(timeout=100)
    assert process.returncode == 2
    assert "'nothing' is no source" in err


def test_a_command_that_is_killed_and_started_again_takes_in_each_line_once(tmp_path: Path) -> None:
    (tmp_path / "recrawl.toml").write_text(DECLARATION)
    titles = [orjson.dumps(offer(str(number), title)) for title in "aba" for number in range(1000)]
    path = a_file(tmp_path, 0, *titles)
    process = _command(tmp_path, path.name, "--source", "offers", "--batch", "20")
    database = tmp_path / "recrawl.db"
    store = open_store(str(database))
    while process.poll() is None:
        with store.read() as connection:
            there = connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'offers'").first()
        if there and one(store, "SELECT count(*) FROM offers") >= 100:
            process.send_signal(signal.SIGKILL)
            process.wait()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    out, err = (again := _command(tmp_path, path.name, "--source", "offers", "--json")).communicate(timeout=100)
    assert again.returncode == 0, err
    counts = orjson.loads(out)["counts"]
    assert (counts["received"], counts["new"], counts["changed"]) == (3000, 1000, 2000)
    assert one(store, "SELECT count(*) FROM versions") == 3000
    store.close()

"""Stored bodies as a web archive that other tools read."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner
from warcio.archiveiterator import ArchiveIterator

from recrawl.cli.app import app
from recrawl.store.database import Store
from tests.support.stores import HOST, a_changed_outcome, a_page, a_thing, put, sight, take, visited


def archived(path: Path) -> list[tuple[str, str, str, bytes]]:
    """Type, address, payload digest and content of each record after the first, which tells of the archive."""
    with path.open("rb") as file:
        found = [
            (
                record.rec_type,
                record.rec_headers.get_header("WARC-Target-URI"),
                record.rec_headers.get_header("WARC-Payload-Digest"),
                record.content_stream().read(),
            )
            for record in ArchiveIterator(file, check_digests="raise")
        ]
    assert found[0][0] == "warcinfo"
    return found[1:]


def test_every_version_is_a_record_under_its_address(store: Store, store_address: str, tmp_path: Path) -> None:
    visited(store, (a_page("a"), "one"), (a_page("b"), "two"))
    path = tmp_path / "bodies.warc.gz"

    done = CliRunner().invoke(
        app, ["export", "bodies", "--format", "warc", "--out", str(path), "--store", store_address]
    )

    assert done.exit_code == 0, done.output
    records = archived(path)
    assert sorted(url for _, url, _, _ in records) == [f"https://{HOST}/a", f"https://{HOST}/b"]
    assert all(kind == "resource" and body.startswith(b"(RecordRow(") for kind, _, _, body in records)


def test_bytes_that_two_pages_share_are_kept_once(store: Store, store_address: str, tmp_path: Path) -> None:
    sight(store, a_page("a"), a_page("b"))
    for task in take(store):
        put(store, (task, a_changed_outcome(task, things=[a_thing("same", "same")])))
    path = tmp_path / "bodies.warc.gz"

    CliRunner().invoke(app, ["export", "bodies", "--format", "warc", "--out", str(path), "--store", store_address])

    first, second = archived(path)
    assert (first[0], second[0]) == ("resource", "revisit")
    assert first[2] == second[2]
    assert second[3] == b""


@pytest.mark.parametrize("arguments", [["bodies"], ["pages", "--format", "warc"]])
def test_bodies_go_into_an_archive_and_nothing_else_does(
    store: Store, store_address: str, tmp_path: Path, arguments: list[str]
) -> None:
    path = tmp_path / "file"
    refused = CliRunner().invoke(app, ["export", *arguments, "--out", str(path), "--store", store_address])

    assert refused.exit_code == 2
    assert "--format warc" in refused.output
    assert not path.exists()

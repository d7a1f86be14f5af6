"""A disk that is full: a sentence that helps, nothing lost, and the next sync goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from recrawl.store.database import open_store
from tests.support.plainsite import PlainSite

_ROOT = Path(__file__).parent.parent
_SIZE = 64_000_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB of this test's own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.getuid() != 0:
        pytest.skip("only root may mount the small file system that this test fills")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small file system could be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_ends_the_run_with_advice_and_once_there_is_space_nothing_is_lost(
    small_disk: Path, tmp_path: Path
) -> None:
    filler, database, declared = small_disk / "filler", small_disk / "recrawl.db", tmp_path / "plain.py"
    filler.write_bytes(bytes(_SIZE - 1_500_000))
    with PlainSite() as site:
        declared.write_text(
            f"from tests.support.plain_source import plain_source\nplain = plain_source({site.url!r})\n"
        )

        def sync() -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "recrawl", "sync", str(declared), "--store", str(database)]
            environment = os.environ | {"PYTHONPATH": str(_ROOT)}
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)

        refused = sync()
        assert refused.returncode == 1
        assert "full" in refused.stderr
        assert "Free some space" in refused.stderr
        assert "Traceback" not in refused.stderr
        filler.unlink()
        assert sync().returncode == 3, "finished, with the pages of this site that are no data"
    store = open_store(str(database))
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM parts")).scalar_one() == 285
        assert connection.execute(text("SELECT count(*) FROM tasks WHERE state = 'running'")).scalar_one() == 0
    store.close()

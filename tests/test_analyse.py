"""What the documentation shows about analysing a database runs as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "analyse.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the demo leaves, and what the shown commands make of it."""
    folder = tmp_path_factory.mktemp("analyse")
    for line in ["recrawl demo", *"".join(blocks("sh")).splitlines()]:
        command = [sys.executable, "-m", *shlex.split(line)]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=100)
    return folder


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_an_example_prints_what_it_found(folder: Path, number: int) -> None:
    command = [sys.executable, "-c", blocks("python")[number]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 3

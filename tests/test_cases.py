"""The shared cases, scored by their own program over recrawl's public functions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Robots rows have a test of their own, which names the three that contradict the RFC.
# Currency signs alone, which that table wants read as an amount of 1.
_UNKNOWABLE = "price: price-parser known failures"
KINDS = ["url", "sitemap", "feed", "price", "count", "stock", "time", "rfc_date"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_case_of_this_kind_is_right(cases: Path, kind: str) -> None:
    root = Path(__file__).parent.parent
    command = [sys.executable, str(cases / "run_checks.py"), "tests/cases_adapter.py", "--only", kind]
    found = subprocess.run(
        command,
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "CASES": str(cases)},
        text=True,
        capture_output=True,
    )
    wrong = [line for line in found.stdout.splitlines() if _is_short(line) and not line.startswith(_UNKNOWABLE)]
    assert not wrong, found.stdout
    assert " / " in found.stdout, f"no case of {kind} was scored: {found.stderr}"


def _is_short(line: str) -> bool:
    """Whether a line of the score says that fewer than all are right."""
    right, slash, total = line.rpartition(" / ")
    return bool(slash) and right.split()[-1] != total.strip()

"""Runs the shared checks over our adapter and counts what fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def failures(cases: Path, only: str) -> dict[str, int]:
    """Failed rows of each check of the kind `only`."""
    root = Path(__file__).parent.parent
    command = [sys.executable, str(cases / "run_checks.py"), "tests/cases_adapter.py", "--only", only, "--show", "0"]
    environment = os.environ | {"PYTHONPATH": str(root), "CASES": str(cases)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    lines = re.findall(r"^(\S.*?)\s+(\d+) / (\d+)$", done.stdout, re.MULTILINE)
    assert lines, done.stdout + done.stderr
    return {name: int(total) - int(right) for name, right, total in lines}

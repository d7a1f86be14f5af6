"""Runs the shared checks over our adapter and counts what fails."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def failures(cases: Path, only: str) -> dict[str, int]:
    """Failed rows of each check of the kind `only`."""
    adapter = Path(__file__).with_name("cases_adapter_values.py")
    command = [sys.executable, str(cases / "run_checks.py"), str(adapter), "--only", only, "--show", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = re.findall(r"^(\S.*?)\s+(\d+) / (\d+)$", done.stdout, re.MULTILINE)
    assert lines, done.stdout + done.stderr
    return {name: int(total) - int(right) for name, right, total in lines}

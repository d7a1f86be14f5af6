"""One contender run as a process of its own: how fast, with how much memory and CPU."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """`seconds` run from the first request to the last page's data being kept; `wall` and `cpu` (seconds too) are those
    of the whole process, start-up included; `peak_mb` is its peak resident memory; `requests` are those that the server
    counted.
    """

    pages: int
    seconds: float
    wall: float
    cpu: float
    peak_mb: float
    requests: int = 0

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended well: what it printed, and what it took (seconds, MB)."""

    output: str
    wall: float
    cpu: float
    peak_mb: float

    def figure(self, pages: int, seconds: float) -> Figure:
        return Figure(pages, seconds, self.wall, self.cpu, self.peak_mb)

    def told(self) -> dict[str, Any]:
        """The JSON object on the last line."""
        found: dict[str, Any] = json.loads(self.output.strip().splitlines()[-1])
        return found


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    folder: Path | None = None,
    allowed: Sequence[int] = (0,),
) -> Ended:
    """Run a command to its end. What it writes to stderr is shown; an exit code that is not allowed ends all."""
    begun = time.perf_counter()
    variables = {**os.environ, **(environment or {})}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables, cwd=folder)
    assert process.stdout is not None
    try:
        output = process.stdout.read()
    except BaseException:
        process.kill()
        raise
    # The kernel's own count for this one child. It begins with the memory of the runner, which is small.
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{output}")
    return Ended(output, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(figures: Sequence[Figure]) -> Figure:
    """The median of each column."""
    columns = [asdict(figure) for figure in figures]
    return Figure(**{name: statistics.median(row[name] for row in columns) for name in columns[0]})

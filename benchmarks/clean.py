"""Records through validate, dedup and store: `python -m benchmarks.clean`. Needs redis-server.

The contenders take turns and the medians are compared: recrawl's worker against a bare loop with the same validation,
upsert and history; recrawl with its durable inbox against one Celery task per record.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.contenders import environment
from benchmarks.measure import run

_ROOT = Path(__file__).parents[1]
_OF_BARE, _OF_CELERY = 0.5, 20.0


def main() -> None:
    options = _options()
    python = options.python or environment(_ROOT / "build" / "bench" / "venv")
    rates: dict[str, list[float]] = {name: [] for name in ("recrawl", "recrawl + accept", "bare", "celery")}
    with _redis() as address:
        for number in range(options.runs):
            for name, rate in _round(python, address, options.records, options.celery_records):
                rates[name].append(rate)
                print(f"round {number + 1}: {name:18}{rate:10,.0f} records/s", file=sys.stderr)
    medians = {name: statistics.median(found) for name, found in rates.items()}
    for name, rate in medians.items():
        print(f"{name:18}{rate:10,.0f} records/s")
    print(_goal("recrawl / bare", medians["recrawl"] / medians["bare"], _OF_BARE))
    print(_goal("recrawl + accept / celery", medians["recrawl + accept"] / medians["celery"], _OF_CELERY))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clean", description="Pushed records, stored.")
    parser.add_argument("--runs", type=int, default=5, help="how often each contender runs (default: 5)")
    parser.add_argument("--records", type=int, default=20_000, help="records of recrawl and the bare loop")
    parser.add_argument("--celery-records", type=int, default=2_000, help="records of Celery, which takes longer")
    parser.add_argument("--python", type=Path, help="a Python that has celery[redis]; else one is made")
    return parser.parse_args()


def _round(python: Path, address: str, records: int, celery_records: int) -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        ours = _told([sys.executable, "-m", "benchmarks.peers.clean_recrawl", f"{folder}/r.db", str(records)])
        yield "recrawl", ours["records"] / ours["seconds"]
        yield "recrawl + accept", ours["records"] / ours["with_accept"]
        bare = _told([sys.executable, "-m", "benchmarks.peers.clean_bare", f"{folder}/b.db", str(records)])
        yield "bare", bare["records"] / bare["seconds"]
        module = "benchmarks.peers.clean_celery"
        celery = _told([str(python), "-m", module, address, f"{folder}/c.db", str(celery_records)])
        yield "celery", celery["records"] / celery["seconds"]


def _told(command: list[str]) -> dict[str, float]:
    # The peers' Python finds recrawl, whose validation they share, where this process finds it.
    paths = [str(_ROOT), str(_ROOT / "src"), sysconfig.get_path("purelib")]
    told: dict[str, float] = run(command, {"PYTHONPATH": os.pathsep.join(paths)}, folder=_ROOT).told()
    return told


@contextmanager
def _redis() -> Iterator[str]:
    """A Redis of this benchmark's own."""
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--save", "", "--dir", folder, "--bind", "127.0.0.1"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait()


def _goal(name: str, ratio: float, wanted: float) -> str:
    return f"{'met   ' if ratio >= wanted else 'MISSED'} {name}: {ratio:.2f}, wanted {wanted}"


if __name__ == "__main__":
    main()

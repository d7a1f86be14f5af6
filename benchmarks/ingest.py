"""Records kept a second over HTTP, in arrays of 100: `python -m benchmarks.ingest`.

`recrawl serve` and a bare FastAPI endpoint that writes the same records take turns; both answer after a commit that
outlives a power cut. Eight clients at once. Cleaning is left out on both sides (`serve --no-worker`).
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from benchmarks.offers import lines

_ROOT = Path(__file__).parents[1]
_URL = re.compile(r"http://127\.0\.0\.1:\d+")
_ARRAY = 100
_CLIENTS = 8
_WANTED = 0.6


def main() -> None:
    options = _options()
    found = lines(options.records)
    bodies = [b"[" + b",".join(found[start : start + _ARRAY]) + b"]" for start in range(0, len(found), _ARRAY)]
    rates: dict[str, list[float]] = {"recrawl": [], "bare": []}
    for number in range(options.runs):
        for name, rate in rates.items():
            with tempfile.TemporaryDirectory() as folder, _serving(name, f"{folder}/{name}.db") as address:
                rate.append(len(found) / asyncio.run(_push(address, bodies)))
            print(f"round {number + 1}: {name:10}{rate[-1]:10,.0f} records/s", file=sys.stderr)
    medians = {name: statistics.median(each) for name, each in rates.items()}
    for name, middle in medians.items():
        print(f"{name:10}{middle:10,.0f} records/s")
    ratio = medians["recrawl"] / medians["bare"]
    print(f"{'met   ' if ratio >= _WANTED else 'MISSED'} recrawl / bare: {ratio:.2f}, wanted {_WANTED}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description="Records kept over HTTP.")
    parser.add_argument("--runs", type=int, default=5, help="how often each contender runs (default: 5)")
    parser.add_argument("--records", type=int, default=50_000, help="records of a run (default: 50,000)")
    return parser.parse_args()


@contextmanager
def _serving(name: str, database: str) -> Iterator[str]:
    """A contender that is ready, and its address."""
    bare = [sys.executable, "-m", "benchmarks.peers.ingest_bare", database]
    ours = [sys.executable, "-m", "recrawl", "serve", "benchmarks/offers.py", "--store", database]
    command = bare if name == "bare" else [*ours, "--port", "0", "--no-worker", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as server:
        try:
            assert server.stdout is not None
            found = next((found for line in server.stdout if (found := _URL.search(line))), None)
            if found is None:
                raise SystemExit(f"{' '.join(command)} did not begin to serve")
            yield found[0]
        finally:
            server.terminate()


async def _push(address: str, bodies: list[bytes]) -> float:
    """Seconds until all bodies are answered with 202."""
    left = iter(bodies)

    async def client(session: aiohttp.ClientSession) -> None:
        for body in left:
            headers = {"Content-Type": "application/json"}
            async with session.post(f"{address}/v1/sources/products/records", data=body, headers=headers) as answer:
                if answer.status != 202:
                    raise SystemExit(f"{answer.status}: {await answer.text()}")

    async with aiohttp.ClientSession() as session:
        begun = time.perf_counter()
        await asyncio.gather(*(client(session) for _ in range(_CLIENTS)))
        return time.perf_counter() - begun


if __name__ == "__main__":
    main()

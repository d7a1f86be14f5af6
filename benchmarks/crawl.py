"""Crawls of the same pages by recrawl and its peers, one process each: `python -m benchmarks.crawl`.

The contenders take turns and the medians are compared, so that whatever else the machine does meets all of them.
Robots.txt is off for the peers, no delays, 16 requests at once. Needs nginx.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from benchmarks.contenders import CONTENDERS, Bench, environment
from benchmarks.corpus import pages_in
from benchmarks.measure import Figure, median
from benchmarks.peers.items import CONCURRENCY
from benchmarks.site import serving

_DEFAULT_FOLDER = Path(__file__).parents[1] / "build" / "bench"
_PEERS = ("aiohttp", "selectolax", "scrapy", "crawlee", "lxml", "parsel")
_MOST_MB = 200


def main() -> None:
    options = _options()
    # As Ctrl-C does: the server and the contender that run end with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder: Path = options.data.resolve()
    root, work = folder / "site", folder / "work"
    root.mkdir(parents=True, exist_ok=True)
    paths = pages_in(root / "pages", options.pages)
    python = environment(folder / "venv")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    with serving(root, folder / "nginx", [f"pages/{path}" for path in paths]) as site:
        bench = Bench(site, work, python)
        bench.listing.write_text("\n".join(site.pages))
        figures = _rounds(bench, [name for name in CONTENDERS if name in options.only], options.runs)
    size = sum((root / "pages" / path).stat().st_size for path in paths) / len(paths)
    conditions = _conditions(python) | {"pages": len(paths), "mean bytes": round(size), "runs": options.runs}
    medians = {name: median(rounds) for name, rounds in figures.items()}
    goals = list(_goals(medians))
    print("\n".join([*_table(conditions, medians), "", *goals]))
    kept = {name: [asdict(figure) for figure in rounds] for name, rounds in figures.items()}
    result = {"conditions": conditions, "figures": kept, "goals": goals}
    (folder / "results.json").write_text(json.dumps(result, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crawl", description="Crawls by recrawl and its peers.")
    parser.add_argument("--runs", type=int, default=5, help="how often each contender runs (default: 5)")
    parser.add_argument("--pages", type=int, default=2000, help="pages of the corpus (default: 2000)")
    parser.add_argument("--data", type=Path, default=_DEFAULT_FOLDER, help="where pages, databases and results go")
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), help="these contenders")
    return parser.parse_args()


def _rounds(bench: Bench, names: list[str], runs: int) -> dict[str, list[Figure]]:
    figures: dict[str, list[Figure]] = {name: [] for name in names}
    for number in range(1, runs + 1):
        for name in names:
            figures[name].append(CONTENDERS[name](bench))
            print(f"round {number}: {name:14} {figures[name][-1].rate:10,.0f} pages/s", file=sys.stderr)
    return figures


def _conditions(python: Path) -> dict[str, str | int]:
    """What a reader has to know to judge the figures."""
    from recrawl.steps.settling import ZSTD_LEVEL

    ask = f"from importlib.metadata import version; print(*map(version, {_PEERS}))"
    told = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.split()
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "concurrency": CONCURRENCY,
        "zstd level": ZSTD_LEVEL,
        "recrawl": f"{version('recrawl')} (aiohttp {version('aiohttp')}, selectolax {version('selectolax')})",
        **dict(zip(_PEERS, told, strict=True)),
    }


def _table(conditions: Mapping[str, str | int], medians: Mapping[str, Figure]) -> list[str]:
    lines = [f"{name}: {value}" for name, value in conditions.items()]
    lines += [
        "",
        f"{'':14} {'pages':>8} {'pages/s':>9} {'s':>7} {'wall s':>7} {'cpu s':>7} {'peak MB':>8} {'requests':>9}",
    ]
    for name, of in medians.items():
        times = f"{of.seconds:7.2f} {of.wall:7.2f} {of.cpu:7.2f}"
        lines.append(f"{name:14} {of.pages:8,.0f} {of.rate:9,.0f} {times} {of.peak_mb:8.0f} {of.requests:9,.0f}")
    return lines


def _goals(medians: Mapping[str, Figure]) -> Iterator[str]:
    """Each goal whose contenders took part, and whether it is met."""
    ratios = (("recrawl", "scrapy", 4.0), ("recrawl", "bare", 0.7), ("recrawl-again", "scrapy-again", 20.0))
    for ours, theirs, wanted in ratios:
        if ours in medians and theirs in medians:
            ratio = medians[ours].rate / medians[theirs].rate
            yield _goal(f"{ours} / {theirs}: {ratio:.2f}, wanted {wanted}", ratio >= wanted)
    if "recrawl-items" in medians:
        of = medians["recrawl-items"]
        # robots.txt, the index and its four sitemaps are no pages
        told = f"recrawl-items: {of.rate:,.0f} URLs/s, wanted 20,000; {of.requests:.0f} requests, at most 6 wanted"
        yield _goal(told, of.rate >= 20_000 and of.requests <= 6)
    for name, of in medians.items():
        if name.startswith("recrawl"):
            yield _goal(f"{name}: peak {of.peak_mb:.0f} MB, wanted under {_MOST_MB}", of.peak_mb < _MOST_MB)


def _goal(told: str, met: bool) -> str:
    return f"{'met   ' if met else 'MISSED'} {told}"


if __name__ == "__main__":
    main()

"""The cost of 100 changes beside 10,000 known pages and beside 1,000,000: `python -m benchmarks.cost`. Needs nginx.

The sitemaps of a source are unchanged but for one that lists the 100 pages which changed. Whatever else is known should
cost nothing: the two sizes take turns, and the medians of their times and of their memory are compared.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.contenders import counted, seconds_of_last_run
from benchmarks.measure import Figure, run
from benchmarks.site import serving, write_sitemap

_HERE = Path(__file__).parent
_SIZES = (10_000, 1_000_000)
_CHANGED = 100
_PER_SITEMAP = 50_000
_MOST = 1.5


def main() -> None:
    options = _options()
    folder: Path = options.data.resolve() / "cost"
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "site"
    figures: dict[int, list[Figure]] = {size: [] for size in _SIZES}
    for size in _SIZES:
        (root / str(size)).mkdir(parents=True)
    with serving(root, folder / "nginx", []) as site:
        for size in _SIZES:
            _write(root / str(size), f"{site.origin}/{size}", site.origin, size)
            _fresh(root / str(size), site.origin, 0)
            index = f"{site.origin}/{size}/items.xml"
            command = [
                sys.executable,
                "-m",
                "benchmarks.known",
                str(folder / f"{size}.db"),
                index,
                str(root / str(size)),
            ]
            run(command, {"RECRAWL_BENCH": f"{site.origin}/{size}"}, folder=_HERE.parent)
            _sync(folder, site.origin, size)  # reads all sitemaps, and knows them from then on
        for edition in range(1, options.runs + 1):
            for size in _SIZES:
                _fresh(root / str(size), site.origin, edition)
                figure = _sync(folder, site.origin, size)
                figures[size].append(figure)
                told = f"{figure.pages} changed in {figure.seconds:.2f} s, {figure.peak_mb:.0f} MB"
                print(f"round {edition}: {size:9,} known pages: {told}", file=sys.stderr)
    small, large = (statistics.median(one.seconds for one in figures[size]) for size in _SIZES)
    memory = [statistics.median(one.peak_mb for one in figures[size]) for size in _SIZES]
    for size, seconds, peak in zip(_SIZES, (small, large), memory, strict=True):
        print(f"{size:9,} known pages: {seconds:.2f} s, {peak:.0f} MB")
    print(f"{'met   ' if large / small <= _MOST else 'MISSED'} {large / small:.2f} times, at most {_MOST} wanted")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cost", description="100 changes in a small and a large site."
    )
    parser.add_argument("--runs", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--data", type=Path, default=_HERE.parent / "build" / "bench", help="where databases go")
    return parser.parse_args()


def _write(folder: Path, base: str, origin: str, size: int) -> None:
    """The sitemaps that stay as they are, and the index of all."""
    parts = range(0, size - _CHANGED, _PER_SITEMAP)
    for start in parts:
        numbers = range(start, min(start + _PER_SITEMAP, size - _CHANGED))
        write_sitemap(folder / f"items-{start}.xml", "urlset", _entries(f"{origin}/item", numbers, "2026-01-01"))
    names = [*(f"items-{start}" for start in parts), "fresh"]
    write_sitemap(
        folder / "items.xml", "sitemapindex", (f"<sitemap><loc>{base}/{name}.xml</loc></sitemap>" for name in names)
    )


def _fresh(folder: Path, origin: str, edition: int) -> None:
    """The sitemap of the pages that change with each edition; the site makes their text anew each time."""
    modified = f"2026-02-{edition + 1:02}"
    write_sitemap(folder / "fresh.xml", "urlset", _entries(f"{origin}/fresh", range(_CHANGED), modified))


def _entries(base: str, numbers: Iterable[int], modified: str) -> Iterable[str]:
    return (f"<url><loc>{base}/{number}</loc><lastmod>{modified}</lastmod></url>" for number in numbers)


def _sync(folder: Path, origin: str, size: int) -> Figure:
    database = folder / f"{size}.db"
    command = [sys.executable, "-m", "recrawl", "sync", str(_HERE / "reader_items.py"), "--store", str(database)]
    command += ["--json", "--concurrency", "16", "--delay", "0s"]
    ended = run(command, {"RECRAWL_BENCH": f"{origin}/{size}"})
    return ended.figure(counted(ended, "changed"), seconds_of_last_run(database))


if __name__ == "__main__":
    main()

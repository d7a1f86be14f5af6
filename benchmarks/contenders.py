"""The contenders: what each is run with, and how its time is read."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from benchmarks.measure import Ended, Figure, run
from benchmarks.peers.items import CONCURRENCY
from benchmarks.site import ITEMS, Site

_HERE = Path(__file__).parent
_REQUIREMENTS = _HERE / "requirements.txt"
_LOOKED_AT_ALL = (0, 3)  # exit codes: also when a page could not become data, which the counts then tell


@dataclass(slots=True)
class Bench:
    """`folder` is where databases and caches go; `python` is that of the peers' environment."""

    site: Site
    folder: Path
    python: Path
    edition: int = 0

    @property
    def listing(self) -> Path:
        return self.folder / "urls.txt"


def environment(folder: Path) -> Path:
    """The Python of a virtual environment with the peers, which is made where there is none, or an older one."""
    python, made_from = folder / "bin" / "python", folder / _REQUIREMENTS.name
    if not made_from.exists() or made_from.read_text() != _REQUIREMENTS.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", "-r", _REQUIREMENTS], check=True)
        shutil.copy(_REQUIREMENTS, made_from)
    return python


def bare(bench: Bench) -> Figure:
    return _peer(bench, "bare")


def scrapy(bench: Bench) -> Figure:
    return _peer(bench, "scrapy_peer", _fresh(bench.folder / "scrapy.db"))


def scrapy_again(bench: Bench) -> Figure:
    """Nothing has changed, and the RFC 2616 cache knows all pages: it asks, is answered 304, and reads its copy."""
    cache, database = bench.folder / "scrapy-cache", bench.folder / "scrapy-again.db"
    if not cache.exists():
        _peer(bench, "scrapy_peer", database, cache)
    return _peer(bench, "scrapy_peer", database, cache)


def crawlee(bench: Bench) -> Figure:
    return _peer(bench, "crawlee_peer", _fresh(bench.folder / "crawlee.db"))


def recrawl(bench: Bench) -> Figure:
    """All pages for the first time, with full storage: bodies, versions, records."""
    return _recrawl(bench, "reader.py", _fresh(bench.folder / "recrawl.db"), count="looked_at")


def recrawl_again(bench: Bench) -> Figure:
    """Nothing has changed, and no lastmod says so: each page is asked for, and answered 304."""
    database = bench.folder / "recrawl.db"
    if not database.exists():
        recrawl(bench)
    return _recrawl(bench, "reader.py", database, count="unchanged_304")


def recrawl_items(bench: Bench) -> Figure:
    """Sitemaps of 200,000 URLs were written anew: every lastmod is compared, and none has moved."""
    database = bench.folder / "recrawl-items.db"
    if not bench.edition:
        bench.site.write_item_sitemaps(0)
        _known_items(bench, _fresh(database))
    bench.edition += 1
    bench.site.write_item_sitemaps(bench.edition)
    return _recrawl(bench, "reader_items.py", database, count="unchanged_hint", expected=ITEMS)


def _known_items(bench: Bench, database: Path) -> None:
    """In a process of its own: the declaration is for one address of the site, that of its environment."""
    command = [sys.executable, "-m", "benchmarks.known", str(database), bench.site.item_sitemap, str(bench.site.root)]
    run(command, {"RECRAWL_BENCH": bench.site.origin}, folder=_HERE.parent)


CONTENDERS: dict[str, Callable[[Bench], Figure]] = {
    "bare": bare,
    "recrawl": recrawl,
    "scrapy": scrapy,
    "crawlee": crawlee,
    "recrawl-again": recrawl_again,
    "scrapy-again": scrapy_again,
    "recrawl-items": recrawl_items,
}
"""In the order in which a round runs them: a second run follows the first of its kind."""


def _peer(bench: Bench, module: str, *arguments: Path) -> Figure:
    command = [str(bench.python), "-m", f"benchmarks.peers.{module}", str(bench.listing), *map(str, arguments)]
    before = bench.site.requests()
    ended = run(command, folder=_HERE.parent)
    told = ended.told()
    return _checked(bench, ended.figure(told["pages"], told["seconds"]), before, module)


def _recrawl(bench: Bench, declaration: str, database: Path, *, count: str, expected: int | None = None) -> Figure:
    """`recrawl sync`, as a user would run it. `count` is the line of its summary that all pages must be counted in."""
    command = [sys.executable, "-m", "recrawl", "sync", str(_HERE / declaration), "--store", str(database), "--json"]
    command += ["--concurrency", str(CONCURRENCY), "--delay", "0s"]
    before = bench.site.requests()
    ended = run(command, {"RECRAWL_BENCH": bench.site.origin}, allowed=_LOOKED_AT_ALL)
    figure = ended.figure(counted(ended, count), seconds_of_last_run(database))
    return _checked(bench, figure, before, declaration, expected)


def counted(ended: Ended, count: str) -> int:
    source = json.loads(ended.output)["sources"][0]
    counts: dict[str, int] = source["counts"]
    if counts["dead"]:
        print(f"  recrawl: {counts['dead']} pages could not become data: {counts}", file=sys.stderr)
    return counts[count]


def seconds_of_last_run(database: Path) -> float:
    """From the start of the run, right before its first request, to its end; opening the database is start-up."""
    connection = sqlite3.connect(database)
    try:
        started, finished = connection.execute(
            "SELECT started_at, finished_at FROM runs ORDER BY id DESC LIMIT 1"
        ).fetchone()
    finally:
        connection.close()
    return (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()


def _checked(bench: Bench, figure: Figure, before: int, name: str, expected: int | None = None) -> Figure:
    """Whoever leaves pages out has no figure worth comparing."""
    wanted = len(bench.site.pages) if expected is None else expected
    if figure.pages != wanted:
        print(f"  {name}: {figure.pages} pages of {wanted}", file=sys.stderr)
    return replace(figure, requests=bench.site.requests() - before)


def _fresh(database: Path) -> Path:
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink()
    return database

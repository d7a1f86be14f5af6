"""Real HTML pages to crawl: documentation that Debian packages, the same choice on every run.

Packages are downloaded and unpacked into the data folder; nothing is installed. Where there is no apt, pages of about
the same size are made up instead.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

_PACKAGES = re.compile(r"python3\.\d+-doc|postgresql-doc-\d+|git-doc|sqlite3-doc|debian-reference-en")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/-]+\.html")
_SMALLEST, _LARGEST = 1_000, 400_000
"""Bytes of a page. Beyond are stubs, and a few single-page books that would decide the mean alone."""


def pages_in(folder: Path, count: int) -> list[str]:
    """Paths below `folder` of `count` pages, which are put there first if they are not there yet."""
    listing = folder.with_suffix(".txt")
    kept = listing.read_text().split() if listing.exists() else []
    if len(kept) < count:
        shutil.rmtree(folder, ignore_errors=True)
        listing.unlink(missing_ok=True)
        kept = _packaged(folder, count) if shutil.which("apt-get") else _made_up(folder, count)
        listing.write_text("\n".join(kept))
    return kept[:count]


def _packaged(folder: Path, count: int) -> list[str]:
    unpacked = folder.with_name("packages")
    _unpack(unpacked)
    kept: list[str] = []
    seen: set[bytes] = set()
    for path, page in _by_hash_of_path(unpacked):
        body = page.read_bytes()
        digest = hashlib.sha256(body).digest()
        if not _SMALLEST <= len(body) <= _LARGEST or digest in seen:
            continue
        seen.add(digest)
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        kept.append(path)
        if len(kept) == count:
            return kept
    raise SystemExit(
        f"the documentation packages hold {len(kept)} pages, and {count} are wanted: try --pages {len(kept)}"
    )


def _by_hash_of_path(unpacked: Path) -> Iterator[tuple[str, Path]]:
    files = (page for page in unpacked.rglob("*.html") if page.is_file() and not page.is_symlink())
    named = [(page.relative_to(unpacked).as_posix(), page) for page in files]
    plain = [pair for pair in named if _PLAIN_PATH.fullmatch(pair[0])]
    return iter(sorted(plain, key=lambda pair: hashlib.sha256(pair[0].encode()).digest()))


def _unpack(unpacked: Path) -> None:
    """Download the packages and unpack them, each into a folder of its name."""
    unpacked.mkdir(parents=True, exist_ok=True)
    known = subprocess.run(["apt-cache", "pkgnames"], check=True, capture_output=True, text=True).stdout.split()
    names = sorted(name for name in known if _PACKAGES.fullmatch(name))
    done = subprocess.run(["apt-get", "-qq", "download", *names], cwd=unpacked, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"apt-get could not download {', '.join(names)}: run `apt-get update` first")
    for package in unpacked.glob("*.deb"):
        target = unpacked / package.name.partition("_")[0]
        subprocess.run(["dpkg-deb", "-x", package, target], check=True)
        package.unlink()


def _made_up(folder: Path, count: int) -> list[str]:
    folder.mkdir(parents=True)
    names = [f"made-up/{number:05}.html" for number in range(count)]
    (folder / "made-up").mkdir()
    for number, name in enumerate(names):
        (folder / name).write_text(_page(number, Random(number)))
    return names


def _page(number: int, chance: Random) -> str:
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 10))) for _ in range(800)]

    def sentence() -> str:
        return " ".join(chance.choices(words, k=chance.randint(8, 30)))

    def section() -> str:
        links = "".join(f'<li><a href="{chance.randrange(2000):05}.html">{sentence()}</a></li>' for _ in range(4))
        return f"<div class=section><h2>{sentence()}</h2><p>{sentence()}</p><p>{sentence()}</p><ul>{links}</ul></div>"

    sections = "\n".join(section() for _ in range(int(chance.lognormvariate(2.9, 0.9)) + 1))
    return f"<!doctype html><html><head><title>Page {number}</title></head><body>{sections}</body></html>"

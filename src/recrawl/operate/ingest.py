"""Taking in a file of records: pushed batch by batch, each under a key that its place in the file makes.

What was accepted of a file is known by these keys, so a run that was killed goes on behind the last batch, and a file
that was taken in already is not taken in again.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any, cast
from uuid import uuid4

import zstandard

from recrawl.declare import Source
from recrawl.errors import Permanent
from recrawl.model.push import Backlog, Push
from recrawl.run.inbox import Inbox
from recrawl.run.wire import the_clock
from recrawl.store.accept import LONGEST_LINE, accept
from recrawl.store.database import Store
from recrawl.store.inbox import Account, account_of_file, end_of_file

_BATCH_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a file was read: lines that this run pushed, and bytes of the file as it lies on disk, of how many (None:
    of a pipe)."""

    lines: int
    read: int
    size: int | None


def ingest(
    store: Store,
    source: Source,
    path: Path | None,
    *,
    batch: int = 500,
    told: Callable[[Reached], None] = lambda _: None,
) -> Account:
    """Push every line of a JSON Lines file (or of standard input) to a source, and store what it comes to.

    A name that ends in `.gz` or `.zst` is decompressed. Gives the account of the whole file, of earlier runs too.
    Raises Permanent for a file that cannot be read to its end: what came before is kept.
    """
    inbox = Inbox(store, {source.name: source}, the_clock().now)
    inbox.prepare()
    with _opened(path) as (name, raw, lines):
        size = path.stat().st_size if path else None
        pushed, done = 0, end_of_file(store, source.name, name)
        _skip(lines, done)
        for start, end, found in _batches(lines, done, batch):
            _push(store, inbox, Push(source=source.name, lines=found, key=f"{name}:{start}-{end}"))
            pushed += len(found)
            told(Reached(pushed, raw.tell() if size else end, size))
    while inbox.take():
        pass
    return account_of_file(store, source.name, name)


def _push(store: Store, inbox: Inbox, push: Push) -> None:
    """Accept a batch, and store what waits: what this process reads never fills the inbox."""
    while True:
        try:
            accept(store, push, now=inbox.now())
        except Backlog:
            if not inbox.take():
                raise
        else:
            inbox.take()
            return


@contextmanager
def _opened(path: Path | None) -> Iterator[tuple[str, IO[bytes], IO[bytes]]]:
    """What a file is called in keys (its SHA-256; a pipe has no name that lasts), its bytes, and its lines."""
    if path is None:
        yield f"stdin:{uuid4().hex}", sys.stdin.buffer, sys.stdin.buffer
        return
    try:
        with path.open("rb") as raw:
            name = f"file:{file_digest(raw, 'sha256').hexdigest()}"
            raw.seek(0)
            yield name, raw, _plain(path, raw)
    except (FileNotFoundError, IsADirectoryError) as error:
        what = "this is a folder" if isinstance(error, IsADirectoryError) else "there is no such file"
        action = "Name a file of JSON Lines, or - for what is piped in."
        raise Permanent(what, place=str(path), action=action) from None
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        said = getattr(error, "strerror", None) or str(error)
        action = "What came before it is kept; mend the file, and run the same command again."
        raise Permanent(f"the file cannot be read: {said}", place=str(path), action=action) from None


def _plain(path: Path, raw: IO[bytes]) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if path.suffix in (".zst", ".zstd"):
        return io.BufferedReader(_Zstd(raw), 1 << 16)
    return raw


class _Zstd(io.RawIOBase):
    """A zstd file of one frame or several; unlike the library's own reader it tells of a file that breaks off."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False
        self._plain = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._plain:
            data = (self._frame.unused_data if self._frame.eof else b"") or self._packed.read(1 << 14)
            if not data:
                if self._begun and not self._frame.eof:
                    raise EOFError("the compressed data break off")
                return 0
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._begun = True
            self._plain = self._frame.decompress(data)
        count = min(len(buffer), len(self._plain))
        buffer[:count], self._plain = self._plain[:count], self._plain[count:]
        return count


def _skip(lines: IO[bytes], count: int) -> None:
    while count > 0:
        read = len(lines.read(min(count, 1 << 20)))
        if not read:
            return
        count -= read


def _batches(lines: IO[bytes], start: int, most: int) -> Iterator[tuple[int, int, tuple[bytes, ...]]]:
    """Lines in batches, with where each begins and ends."""
    found: list[bytes] = []
    size, end = 0, start
    while line := lines.readline(LONGEST_LINE + 1):
        end += len(line)
        if len(line) > LONGEST_LINE:
            end += _rest(lines, line)
        found.append(line)
        size += len(line)
        if len(found) >= most or size >= _BATCH_BYTES:
            yield start, end, tuple(found)
            found, size, start = [], 0, end
    if found:
        yield start, end, tuple(found)


def _rest(lines: IO[bytes], begun: bytes) -> int:
    """Read a line that is too long to its end; how many bytes that were."""
    count = 0
    while not begun.endswith(b"\n") and (begun := lines.readline(1 << 20)):
        count += len(begun)
    return count

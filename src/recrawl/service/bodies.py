"""Bodies of pushes: taken in with bounded memory and time, decoded, and cut into one JSON text per record.

Nothing is accepted before a body has come to its end, so a push that breaks off leaves no half behind.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO

import orjson
import zstandard
from fastapi import Request
from starlette.requests import ClientDisconnect

from recrawl.service.problems import Problem

_IN_MEMORY = 1_000_000
_STEP = 65_536
_LONG_NUMBER = re.compile(rb"\d{17}")
LARGEST_ARRAY = 16_000_000
"""Bytes of a body that must be read as a whole; as lines (NDJSON) more may come."""

_WHOLE = ("application/json",)
_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")


Decode = Callable[[IO[bytes]], Iterator[bytes]]
"""From encoded bytes to plain ones, in pieces of bounded size."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may come (bytes, after decoding), and how long it may take (seconds): between two parts, and in all."""

    size: int = 256_000_000
    pause: float = 20.0
    whole: float = 600.0


@asynccontextmanager
async def received(request: Request, bounds: Bounds) -> AsyncIterator[IO[bytes]]:
    """The decoded body, on disk where it is large. Raises Problem for one that cannot be taken."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > bounds.size:
        raise _too_large(bounds.size)
    decode = _decoder(request.headers.get("content-encoding", "identity"))
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as sent, tempfile.SpooledTemporaryFile(_IN_MEMORY) as plain:
        async for part in _parts(request, bounds):
            if sent.tell() + len(part) > bounds.size:
                raise _too_large(bounds.size)
            sent.write(part)
        sent.seek(0)
        if decode is None:
            yield sent
            return
        await asyncio.to_thread(_decode, decode, sent, plain, bounds.size)
        plain.seek(0)
        yield plain


def _decode(decode: Decode, sent: IO[bytes], plain: IO[bytes], most: int) -> None:
    for piece in decode(sent):
        if plain.tell() + len(piece) > most:
            raise _too_large(most)
        plain.write(piece)


async def _parts(request: Request, bounds: Bounds) -> AsyncIterator[bytes]:
    stream = request.stream()
    try:
        async with asyncio.timeout(bounds.whole):
            while True:
                async with asyncio.timeout(bounds.pause):
                    part = await anext(stream, None)
                if part is None:
                    return
                yield part
    except TimeoutError:
        action = f"Send it without pauses of more than {bounds.pause:.0f} seconds."
        raise Problem(408, "the body did not come in time", action=action, headers={"Connection": "close"}) from None
    except ClientDisconnect:
        raise Problem(400, "the body broke off") from None


def _too_large(most: int) -> Problem:
    action = "Send the records in several requests."
    return Problem(413, f"the body is larger than {most:,} bytes", action=action, headers={"Connection": "close"})


def _decoder(encoding: str) -> Decode | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return _gunzip
        case "zstd":
            return _unzstd
    problem = f"the encoding {encoding[:40]!r} is not known"
    raise Problem(415, problem, action="Send it plain, or as gzip or zstd.", headers={"Accept-Encoding": "gzip, zstd"})


def _gunzip(sent: IO[bytes]) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=sent, mode="rb") as reader:
            while piece := reader.read(_STEP):
                yield piece
    except (OSError, EOFError, zlib.error) as error:
        raise _broken("gzip", str(error)) from None


def _unzstd(sent: IO[bytes]) -> Iterator[bytes]:
    limited = zstandard.ZstdDecompressor(max_window_size=1 << 23)
    state = limited.decompressobj()
    try:
        # Small steps in, so that what comes out of one stays bounded: a few bytes may stand for 128 KB.
        while step := sent.read(128):
            while step:
                if state.eof:  # another frame begins
                    state = limited.decompressobj()
                yield state.decompress(step)
                step = state.unused_data
    except zstandard.ZstdError as error:
        raise _broken("zstd", str(error)) from None
    if not state.eof:
        raise _broken("zstd", "it breaks off")


def _broken(encoding: str, why: str) -> Problem:
    return Problem(400, f"the body is no {encoding}: {why}", action="Compress it again, or send it plain.")


def lines_of(file: IO[bytes], content_type: str | None) -> Iterator[bytes]:
    """One JSON text per record. Raises Problem for a body that cannot be cut into records."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind in _LINES:
        return _by_line(file)
    if kind in _WHOLE or not kind:
        return _of_json(file)
    action = f"Send {_WHOLE[0]} or {_LINES[0]}."
    raise Problem(415, f"the type {kind[:60]!r} is not taken", action=action)


def _by_line(file: IO[bytes]) -> Iterator[bytes]:
    from recrawl.store.accept import LONGEST_LINE

    while line := file.readline(LONGEST_LINE + 1):
        yield line
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            # What is left of a line that is a dead letter already.
            while (rest := file.readline(_STEP)) and not rest.endswith(b"\n"):
                pass


def _of_json(file: IO[bytes]) -> Iterator[bytes]:
    """A single object, or the items of an array."""
    data = file.read(LARGEST_ARRAY + 1)
    if len(data) > LARGEST_ARRAY:
        action = f"Send several requests, or lines as {_LINES[0]}."
        raise Problem(413, f"a JSON body may have {LARGEST_ARRAY:,} bytes", action=action)
    text = data.removeprefix(b"\xef\xbb\xbf").strip()
    if text.startswith(b"{"):
        _whole(text)
        return iter((text,))
    if text.startswith(b"["):
        return iter(_items(text))
    raise _unframed("it is neither an object nor an array")


def _items(text: bytes) -> list[bytes]:
    if not _LONG_NUMBER.search(text):
        # The quick way; it would lose digits of long numbers.
        try:
            return [orjson.dumps(item) for item in orjson.loads(text)]
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            pass
    return [json.dumps(item, ensure_ascii=True).encode() for item in _whole(text)]


def _whole(text: bytes) -> list[object]:
    try:
        found: list[object] = json.loads(text.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise _unframed("it is nested too deep") from None
    except ValueError as error:
        raise _unframed(str(error)) from None
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _unframed(why: str) -> Problem:
    action = f"Send an object, an array, or one object a line as {_LINES[0]}."
    return Problem(400, f"the body is no JSON: {why}", action=action)

"""Undoing Content-Encoding within bounds (RFC 9110 section 8.4.1).

Done here and not by the HTTP library, which takes a gzip stream that ends too early for a whole one, and hands out
bodies undecoded whose encoding it does not know.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from recrawl.fetch.reasons import NoAnswer
from recrawl.model.fetched import FailureKind

ACCEPT_ENCODING = "gzip, deflate"
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_WINDOW = 64 * 1024
_MOST_MEMBERS = 10_000
_MOST_CODINGS = 4


def codings(values: Iterable[str]) -> list[str]:
    """The codings of a body in the order in which they were applied, from all Content-Encoding lines."""
    names = (name.strip().lower() for value in values for name in value.split(","))
    return [name for name in names if name not in ("", "identity")]


def undo(body: bytes, applied: list[str], limit: int) -> bytes:
    """A body as it was before its codings. Raises NoAnswer: TOO_LARGE beyond `limit`, TRUNCATED, UNDECODABLE."""
    if not body:
        return body
    if len(applied) > _MOST_CODINGS:
        raise NoAnswer(FailureKind.UNDECODABLE, f"its body is encoded {len(applied)} times over")
    for coding in reversed(applied):
        try:
            body = _undo_one(body, coding, limit)
        except zlib.error as error:
            raise NoAnswer(FailureKind.UNDECODABLE, f"its body is not valid {coding}: {error}") from error
    return body


def _undo_one(body: bytes, coding: str, limit: int) -> bytes:
    if coding in ("gzip", "x-gzip"):
        return _gunzip(body, limit)
    if coding == "deflate":
        # Meant is zlib's format; some servers send the bare stream, and browsers take both.
        whole = body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0
        stream = zlib.decompressobj(zlib.MAX_WBITS if whole else -zlib.MAX_WBITS)
        text = stream.decompress(body, limit + 1)
        _check(len(text), limit, stream.eof)
        return text
    raise NoAnswer(FailureKind.UNDECODABLE, f"its body is encoded as {coding[:40]!r}, which was not asked for")


def _gunzip(body: bytes, limit: int) -> bytes:
    """All members of a gzip stream; what follows them and is none is left out, as browsers do."""
    stream = zlib.decompressobj(_GZIP)
    text = stream.decompress(body, limit + 1)
    _check(len(text), limit, stream.eof)
    if not stream.unused_data:
        return text
    parts, size, at = [text], len(text), len(body) - len(stream.unused_data)
    for _ in range(_MOST_MEMBERS):
        if body[at : at + 2] != _GZIP_MAGIC:
            return b"".join(parts)
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof and at < len(body) and size <= limit:
            # In windows: each call copies what it leaves unused.
            piece = body[at : at + _WINDOW]
            parts.append(stream.decompress(piece, limit + 1 - size))
            size += len(parts[-1])
            at += len(piece) - len(stream.unused_data)
        _check(size, limit, stream.eof)
    raise NoAnswer(FailureKind.UNDECODABLE, f"its body is of more than {_MOST_MEMBERS} gzip members")


def _check(size: int, limit: int, ended: bool) -> None:
    if size > limit:
        raise NoAnswer(FailureKind.TOO_LARGE, f"its body is over {limit:,} bytes when decompressed")
    if not ended:
        raise NoAnswer(FailureKind.TRUNCATED, "its compressed body ends too early")

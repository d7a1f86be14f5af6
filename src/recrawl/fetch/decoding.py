"""Undoing Content-Encoding within bounds."""

from __future__ import annotations

import zlib

from recrawl.model.fetched import FailureKind

ACCEPTED = "gzip, deflate"
"""What is asked for, the same for every request: a server's ETags differ by encoding."""

_STEP = 1 << 20


class Undecodable(Exception):
    """A body that cannot be decoded; `kind` tells why."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def decode_body(data: bytes, encoding: str | None, most: int) -> bytes:
    """The body behind a Content-Encoding header. Raises Undecodable."""
    for name in reversed([part.strip().lower() for part in (encoding or "").split(",") if part.strip()]):
        if name in ("identity", "none", "utf-8"):
            continue
        if name in ("gzip", "x-gzip"):
            data = _members(data, most) if data else data
        elif name == "deflate":
            data = _deflate(data, most) if data else data
        else:
            raise Undecodable(FailureKind.UNDECODABLE, f"the Content-Encoding {name[:40]!r} was not asked for")
    return data


def _members(data: bytes, most: int) -> bytes:
    """All members of a gzip stream (RFC 1952 section 2.2); bytes after the last one are ignored, as browsers do."""
    parts: list[bytes] = []
    room = most
    while data[:2] == b"\x1f\x8b":
        part, data = _inflate(data, zlib.MAX_WBITS | 16, room)
        parts.append(part)
        room -= len(part)
    if not parts:
        raise Undecodable(FailureKind.UNDECODABLE, "the body is not gzip, though the server says so")
    return b"".join(parts)


def _deflate(data: bytes, most: int) -> bytes:
    """`deflate` is zlib by the book and raw deflate by custom."""
    try:
        return _inflate(data, zlib.MAX_WBITS, most)[0]
    except Undecodable as error:
        if error.kind is not FailureKind.UNDECODABLE:
            raise
        return _inflate(data, -zlib.MAX_WBITS, most)[0]


def _inflate(data: bytes, wbits: int, most: int) -> tuple[bytes, bytes]:
    decoder = zlib.decompressobj(wbits)
    parts: list[bytes] = []
    size = 0
    try:
        while not decoder.eof:
            part = decoder.decompress(data, _STEP)
            data = decoder.unconsumed_tail
            size += len(part)
            if size > most:
                raise Undecodable(FailureKind.TOO_LARGE, f"more than {most:,} bytes after decompression")
            parts.append(part)
            if not data and not decoder.eof and len(part) < _STEP:
                raise Undecodable(FailureKind.TRUNCATED, "the compressed body ends too early")
    except zlib.error as error:
        raise Undecodable(FailureKind.UNDECODABLE, f"the compressed body is broken: {error}") from None
    return b"".join(parts), decoder.unused_data

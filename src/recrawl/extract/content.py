"""What kind of thing a body is, by what the server says and by what it looks like."""

from __future__ import annotations

from enum import StrEnum

_BINARY_TYPES = ("image/", "audio/", "video/", "font/", "model/")
_BINARY = frozenset(
    ["application/pdf", "application/zip", "application/gzip", "application/x-gzip", "application/x-tar",
     "application/msword", "application/wasm", "application/epub+zip"]
)  # fmt: skip
_MAGIC = (b"%PDF-", b"PK\x03\x04", b"\x1f\x8b", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"RIFF", b"\x00\x00\x00")
_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
_FEEDS = (b"<?xml", b"<rss", b"<feed", b"<urlset", b"<sitemapindex")


class Content(StrEnum):
    HTML = "HTML"
    JSON = "JSON"
    XML = "XML"
    TEXT = "plain text"
    BINARY = "binary"


def content_of(body: bytes, content_type: str | None) -> Content:
    """The kind of a body. What the server says counts, except where the bytes cannot be that."""
    declared = (content_type or "").partition(";")[0].strip().lower()
    head = body[:1024]
    if head.startswith(_MAGIC) or declared.startswith(_BINARY_TYPES) or declared in _BINARY:
        return Content.XML if declared == "image/svg+xml" else Content.BINARY
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if declared == "application/json" or declared.endswith("+json") or declared == "text/json":
        return Content.JSON
    if declared in ("text/html", "application/xhtml+xml"):
        # Many an API answers under PHP's default type.
        return Content.JSON if _looks_like_json(start, body) else Content.HTML
    if declared in ("application/xml", "text/xml") or declared.endswith("+xml"):
        return Content.HTML if b"<html" in start.lower() else Content.XML
    if declared in ("text/plain", "text/markdown", "text/x-markdown"):
        return Content.TEXT
    return _guess(start, body)


def _guess(start: bytes, body: bytes) -> Content:
    if start.lower().startswith(_FEEDS):
        return Content.HTML if b"<html" in start.lower() else Content.XML
    if start.startswith(b"<"):
        return Content.HTML
    if _looks_like_json(start, body):
        return Content.JSON
    if b"\x00" in start and not body.startswith(_MARKS):
        return Content.BINARY
    return Content.TEXT


def _looks_like_json(start: bytes, body: bytes) -> bool:
    return start[:1] in (b"{", b"[") and body[-64:].rstrip()[-1:] in (b"}", b"]")

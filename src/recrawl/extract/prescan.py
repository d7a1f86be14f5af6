"""What the first bytes of a document say of its own encoding (HTML standard, section 13.2.3.2)."""

from __future__ import annotations

import re
from collections.abc import Callable

from recrawl.extract.labels import UTF_8, WINDOWS_1252, codec_of

LENGTH = 1024
"""Bytes that are looked at."""

_SPACE = rb"[\t\n\f\r ]*"
_TAG = re.compile(rb"<(?:(!--)|(meta)(?=[\t\n\f\r /])|(/?[a-z][^\t\n\f\r >]*)|[!/?])", re.IGNORECASE)
# An attribute whose end was not seen matches nothing: a label that is cut off would be another one.
_ATTRIBUTE = re.compile(
    rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)" + _SPACE + rb"(?:"
    rb"=" + _SPACE + rb"(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*+)(?=[\t\n\f\r >])|(?=>))"
    rb"|(?=[^=]))"
)
_IN_CONTENT = re.compile(
    rb"charset" + _SPACE + rb"=" + _SPACE + rb"(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\f\r ;\"'][^\t\n\f\r ;]*))",
    re.IGNORECASE,
)
_XML = re.compile(rb"<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*([\"'])([^\x00-\x20>]*?)\1[^>]*>")


def declared(head: bytes) -> str | None:
    """The codec that an HTML document names: in a meta element, else in an XML declaration."""
    return utf_16(head) or _meta(head, _of_meta) or xml_declared(head)


def misspelt(head: bytes) -> str | None:
    """The codec that a meta element names in a way that browsers do not know, such as `<meta httpequiv=...>`. Worth
    asking only where nothing better tells."""
    return _meta(head, lambda attributes: _in_content(attributes.get(b"content", b"")))


def utf_16(head: bytes) -> str | None:
    """UTF-16 without a mark, told from how an XML declaration begins."""
    if head.startswith(b"<\0?\0x\0"):
        return "utf-16-le"
    if head.startswith(b"\0<\0?\0x"):
        return "utf-16-be"
    return None


def xml_declared(head: bytes) -> str | None:
    """The codec that an XML declaration names."""
    found = _XML.match(head)
    return _readable(found[2]) if found else None


def _readable(label: bytes) -> str | None:
    """A declaration that could be read is not in UTF-16, whatever it says."""
    name = label.decode("latin-1").strip("\t\n\f\r ").lower()
    if name == "x-user-defined":
        return WINDOWS_1252
    codec = codec_of(name)
    return UTF_8 if codec in ("utf-16-le", "utf-16-be") else codec


def _meta(head: bytes, read: Callable[[dict[bytes, bytes]], str | None]) -> str | None:
    at = 0
    while tag := _TAG.search(head, at):
        at = tag.end()
        comment, meta, other = tag.groups()
        if meta or other:
            attributes, at = _attributes(head, at)
            if meta and (codec := read(attributes)):
                return codec
        else:
            # The dashes that open a comment can be the ones that close it.
            at = head.find(b"-->", tag.start() + 2) if comment else head.find(b">", at)
            if at < 0:
                return None
    return None


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """The attributes of a tag, the first of each name, and where the tag ends; none of a tag whose end is not seen."""
    found: dict[bytes, bytes] = {}
    while match := _ATTRIBUTE.match(head, at):
        name, *values = match.groups()
        found.setdefault(name.lower(), next((value for value in values if value is not None), b""))
        at = match.end()
    return (found, at) if head[at:].lstrip(b"\t\n\f\r /").startswith(b">") else ({}, len(head))


def _of_meta(attributes: dict[bytes, bytes]) -> str | None:
    if b"charset" in attributes:
        return _readable(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    return _in_content(attributes.get(b"content", b""))


def _in_content(content: bytes) -> str | None:
    named = _IN_CONTENT.search(content)
    return _readable(next(value for value in named.groups() if value is not None)) if named else None

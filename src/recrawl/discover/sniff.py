"""What a body is, told from its first characters: names and media types are often wrong."""

from __future__ import annotations

import re
from typing import Final

from recrawl.discover.markup import Problems

_PROLOG = re.compile(r"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE)
_ROOT = re.compile(r"<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)")
_HTML: Final = frozenset({"html", "head", "body", "title", "meta", "script", "div", "p", "br", "b", "h1", "center"})
_HTML_TYPE = re.compile(r"\s*<!doctype\s+html", re.IGNORECASE)
_WARNING: Final = frozenset({"br", "b"})  # how PHP opens its warnings
_BEGINNING = re.compile(r"<\?xml\s|<(?:urlset|sitemapindex|rss|feed|rdf:RDF)[\s>]")


def root_of(head: str) -> str:
    """The local name of the first element; empty where the text does not begin as markup."""
    at = 0
    while match := _PROLOG.match(head, at):
        at = match.end()
    root = _ROOT.match(head, at)
    return root[1] if root else ""


def without_preface(head: str, problems: Problems) -> str:
    """The text from where its markup begins: servers print warnings and blank lines before it."""
    head = head.lstrip("\ufeff \t\r\n")
    if head.startswith("<") and root_of(head).lower() not in _WARNING:
        return head
    beginning = _BEGINNING.search(head)
    if beginning is None:
        return head
    problems.lost("There is other text before the document.")
    return head[beginning.start() :]


def named(head: str) -> str:
    """What a text is that nobody expected, as part of a sentence."""
    if not head.strip("\0 \t\r\n"):
        return "an empty body"
    root = root_of(head)
    if root.lower() in _HTML or _HTML_TYPE.match(head):
        return "an HTML page"
    if root:
        return f"an XML document of <{root[:40]}>"
    if head.startswith("<"):
        return "markup without an element"
    if head.startswith(("{", "[")):
        return "a JSON document"
    if any(ord(c) < 9 or 0xDC80 <= ord(c) <= 0xDCFF for c in head[:512]):
        return "binary data"
    return "a text without a web address in it"

"""What an HTML page leads to: the pages that a listing lists and its next page, or the links that a rule follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from urllib.parse import urljoin

import orjson
from selectolax.lexbor import LexborNode

from recrawl.decide.urls import BadUrl, canonical_url
from recrawl.declare.finders import PAGE, Links, Listing
from recrawl.declare.selectors import split_css
from recrawl.extract.content import Content
from recrawl.extract.document import Document
from recrawl.model.fetched import Page

_NUMBER: Final = "recrawl-page-number"
_REL_NEXT: Final = 'link[rel~="next" i][href], a[rel~="next" i][href]'


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page leads to: addresses of pages as found, and of documents in the form that is asked for."""

    pages: tuple[str, ...]
    documents: tuple[str, ...]

    @property
    def digest(self) -> str:
        """SHA-256 (hex): equal where two readings lead to the same, whatever else stands on the page."""
        return sha256(orjson.dumps([self.pages, self.documents])).hexdigest()


def read_listing(page: Page, finder: Listing) -> Shown:
    """The pages that one page of a listing lists, in its order, and the page that follows it.

    A page that names itself as the next one is the last, and so is a numbered one that lists nothing. Raises Permanent
    for what is no HTML.
    """
    document = Document(page)
    if finder.links is None:
        found = [url for url in _all_links(document) if _fits(finder, url)]
    else:
        found = list(_selected(document, finder.links))
    following = [numbered(finder, page.url)] if finder.numbered and found else _next(document, finder)
    return Shown(tuple(dict.fromkeys(found)), tuple(following))


def _fits(finder: Listing, url: str) -> bool:
    try:
        return finder.wants(canonical_url(url))
    except BadUrl:
        return False


def _selected(document: Document, selector: str) -> Iterator[str]:
    path = split_css(selector)
    for node in document.root.css(path.css) if path.css else []:
        link = node.attributes.get(path.attribute) if path.attribute else _href(node)
        if link and (url := document.join(link)):
            yield url


def _href(node: LexborNode) -> str | None:
    """The href of an element, or of the first link inside of it."""
    if "href" in node.attributes:
        return node.attributes["href"]
    inner = node.css_first("a[href]")
    return inner.attributes["href"] if inner is not None else None


def _all_links(document: Document) -> Iterator[str]:
    for node in document.root.css("a[href], area[href]"):
        if url := document.join(node.attributes["href"] or ""):
            yield url


def _next(document: Document, finder: Listing) -> list[str]:
    if finder.numbered:
        return []
    here = {_named(document.page.url), _named(document.page.final_url)}
    first = next(_selected(document, finder.next or _REL_NEXT), None)
    return [first] if first is not None and _named(first) not in here else []


def _named(url: str) -> str:
    """One name for all forms of an address; what is no address keeps its own."""
    try:
        return canonical_url(url)
    except BadUrl:
        return url


def numbered(finder: Listing, url: str) -> str:
    """The address of the page of a numbered listing that comes after `url`; after one without a number comes page 2."""
    assert finder.next is not None
    before, after = urljoin(finder.url, finder.next.replace(PAGE, _NUMBER)).split(_NUMBER)
    number = re.fullmatch(rf"{re.escape(before)}(\d+){re.escape(after)}", url)
    return f"{before}{int(number[1]) + 1 if number else 2}{after}"


def read_links(page: Page, finder: Links) -> Shown:
    """The links of a page that are pages by the finder's rules, and those that are to be read for more links.

    A link with rel=nofollow, or on a page whose `<meta name=robots>` says nofollow, is not read for more links. Raises
    Permanent for a page beyond bounds; what is no HTML leads nowhere.
    """
    document = Document(page)
    if document.content not in (Content.HTML, Content.XML):
        return Shown((), ())
    kept = any("nofollow" in text.lower() for text in document.metas.get("robots", []))
    pages: dict[str, None] = {}
    documents: dict[str, None] = {}
    for node in document.root.css("a[href], area[href]"):
        url = document.join(node.attributes["href"] or "")
        if url is None:
            continue
        name = _named(url)
        if finder.wants(name):
            pages[url] = None
        if finder.leads(name) and not kept and "nofollow" not in (node.attributes.get("rel") or "").lower().split():
            documents[url] = None
    return Shown(tuple(pages), tuple(documents))

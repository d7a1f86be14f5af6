"""One page while it is read: parsed at most once in each form, shared by all that read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

import can_ada
from lxml import etree, html
from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.errors import Permanent
from recrawl.extract.bounds import check_bounds
from recrawl.extract.charset import decode
from recrawl.extract.content import Content, content_of
from recrawl.extract.inline import inline_values
from recrawl.extract.jsonld import objects_of
from recrawl.extract.jsontext import read_embedded, read_json
from recrawl.extract.text import Outline, text_of
from recrawl.model.fetched import Page

_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_DEEPEST_LXML = 2_000  # libxml2 loses text below 2,046 without a word


class Document:
    """A page's body in its forms. A form that the body cannot have raises Permanent."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.content = content_of(page.body, page.content_type)
        self.outlines: dict[int, Outline] = {}

    @cached_property
    def text(self) -> str:
        if self.content is Content.BINARY:
            raise self._refused("text")
        return decode(self.page.body, self.page.content_type)

    @cached_property
    def root(self) -> LexborNode:
        """The root element of the page."""
        if self.content in (Content.JSON, Content.BINARY):
            raise self._refused("HTML")
        check_bounds(self.text, self.page.url)
        root = LexborHTMLParser(self.text).root
        assert root is not None  # a document always has one
        return root

    def text_of(self, node: LexborNode) -> str:
        """The text of an element of the page."""
        return text_of(node, self.outlines)

    @cached_property
    def lxml_text(self) -> str:
        """The text of a page that nests no deeper than lxml can follow."""
        if self.content in (Content.JSON, Content.BINARY):
            raise self._refused("HTML")
        check_bounds(self.text, self.page.url, deepest=_DEEPEST_LXML)
        return self.text

    @cached_property
    def lxml_root(self) -> etree._Element | None:
        """The root for XPath; None for a page without any element."""
        return parse_lxml(self.lxml_text)

    @cached_property
    def json(self) -> Any:
        """The value of a JSON body."""
        try:
            return read_json(self.text)
        except ValueError as error:
            raise Permanent(
                f"the body is no JSON: {error}",
                place=self.page.url,
                action="Look at the body; if it is HTML, read it with css or xpath.",
            ) from None

    @cached_property
    def base(self) -> str:
        """What relative links start from: `<base href>`, else the address that the body came from."""
        nodes = self._addresses if self.content is Content.HTML else []
        given = next((node.attributes["href"] for node in nodes if node.tag == "base"), None)
        return (_joiner(self.page.final_url)(given) if given else None) or self.page.final_url

    def linked(self, rel: str) -> list[dict[str, str | None]]:
        """The attributes of each `<link href>` of the page with this relation, as they stand."""
        links = (node.attributes for node in self._addresses if node.tag == "link")
        return [given for given in links if rel in (given.get("rel") or "").lower().split()]

    @cached_property
    def _addresses(self) -> list[LexborNode]:
        return self.root.css("base[href], link[href]")

    @cached_property
    def join(self) -> Callable[[str], str | None]:
        """Makes a link absolute; None for what is no link to the web."""
        return _joiner(self.base)

    @property
    def embedded(self) -> Iterator[Any]:
        """The JSON that an HTML page carries, in the order in which it is searched, each kind read when it is asked
        for: `__NEXT_DATA__`, other scripts of a JSON type, what scripts assign as JSON, JSON-LD. Of a JSON body, the
        body itself."""
        if self.content is Content.JSON:
            yield self.json
            return
        yield from self._json_scripts
        yield from self._inline
        yield from self.jsonld

    @cached_property
    def _json_scripts(self) -> list[Any]:
        scripts = self.root.css('script[type="application/json" i], script[type$="+json" i]:not([type*="ld+json" i])')
        first = self.root.css("script#__NEXT_DATA__")
        known = {node.mem_id for node in first}
        nodes = first + [node for node in scripts if node.mem_id not in known]
        values = [read_embedded(node.text()) for node in nodes]
        return [value for value in values if value is not None]

    @cached_property
    def _inline(self) -> list[Any]:
        scripts = self.root.css("script:not([src])")
        return [
            value
            for node in scripts
            if "json" not in (node.attributes.get("type") or "").lower()
            for value in inline_values(node.text())
        ]

    @cached_property
    def jsonld(self) -> list[dict[str, Any]]:
        """The objects of the page's JSON-LD."""
        if self.content is Content.JSON:
            return objects_of([self.json])
        scripts = self.root.css('script[type="application/ld+json" i]')
        return objects_of([read_embedded(node.text()) for node in scripts])

    @cached_property
    def metas(self) -> dict[str, list[str]]:
        """The contents of `<meta>`, by name, property or http-equiv in lower case."""
        found: dict[str, list[str]] = {}
        if self.content is Content.JSON:
            return found
        for node in self.root.css("meta[content]"):
            given = node.attributes
            for key in {given.get("name"), given.get("property"), given.get("http-equiv")}:
                if key:
                    found.setdefault(key.strip().lower(), []).append(given["content"] or "")
        return found

    def _refused(self, wanted: str) -> Permanent:
        return Permanent(
            f"the body is {self.content}, and it is read as {wanted}",
            place=self.page.url,
            action="Keep such pages out with match or skip, or read them with another record or a function.",
        )


def _joiner(base: str) -> Callable[[str], str | None]:
    """Joins links to `base`, each once: pages repeat theirs."""
    try:
        start = can_ada.parse(base)
    except ValueError:
        return lambda _: None

    @cache
    def join(link: str) -> str | None:
        try:
            url = start + link.strip()
        except ValueError:
            return None
        return str(url.href) if url.protocol in ("http:", "https:") else None

    return join


def parse_lxml(text: str) -> etree._Element | None:
    try:
        # A text with a declaration of its bytes' encoding is refused by lxml.
        return html.document_fromstring(_DECLARATION.sub("", text), parser=html.HTMLParser(huge_tree=True))
    except etree.ParserError:
        return None

"""From a page's bytes to raw dicts, and to what the page says of itself. The same bytes always give the same."""

from __future__ import annotations

import traceback
from asyncio import CancelledError
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recrawl.declare.article import Article
from recrawl.declare.record import Record
from recrawl.declare.selectors import each_is_css
from recrawl.declare.source import Reader, Source
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec, Selector
from recrawl.errors import Permanent, RecrawlError
from recrawl.extract.article import read_article
from recrawl.extract.content import Content
from recrawl.extract.document import Document
from recrawl.extract.fetched import Fetched
from recrawl.extract.select import Scope, search_jmes, select
from recrawl.extract.structure import html_shape, json_shape
from recrawl.extract.text import text_of
from recrawl.model.fetched import Page

_FEEDS = ("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json", "text/xml")


@dataclass(frozen=True, slots=True)
class Raw:
    """One record as it was found. What was not found is no key of `values`."""

    spec: RecordSpec
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a page holds: plain values, which can go to another process.

    `structure_hash` is the SHA-256 (hex) of the shape of the HTML or JSON, None for plain text; `canonical` is
    rel=canonical, absolute, where the page names exactly one; `base` is what relative links start from; `feeds` are the
    feeds that the page points to.
    """

    rows: tuple[Raw, ...]
    structure_hash: str | None
    canonical: str | None
    title: str | None
    feeds: tuple[str, ...]
    base: str


def extract(page: Page, source: Source) -> Extracted:
    """Read a page by its source's declaration.

    Raises Permanent where the body cannot be read at all: binary, no JSON, nested beyond bounds, or the user's own
    reader failed.
    """
    return extract_from(Document(page), source)


def extract_from(document: Document, source: Source) -> Extracted:
    """The same of a page that others read too."""
    rows = tuple(_by_function(document, source.reader) if source.reader else _by_specs(document, source.records))
    is_html = document.content is Content.HTML
    return Extracted(
        rows,
        structure_hash=_shape(document),
        canonical=_canonical(document) if is_html else None,
        title=_title(document) if is_html else None,
        feeds=feeds_of(document) if is_html else (),
        base=document.base,
    )


def _by_specs(document: Document, specs: tuple[RecordSpec, ...]) -> Iterator[Raw]:
    for spec in specs:
        if spec is Article.__spec__:
            yield Raw(spec, read_article(document))
        else:
            for scope in _scopes(document, spec):
                yield Raw(spec, _values(spec, scope))


def _scopes(document: Document, spec: RecordSpec) -> Iterator[Scope]:
    """Where the records of one kind are to be looked for in a page."""
    by_css = each_is_css(spec)
    if spec.each is None:
        if document.content is Content.JSON and isinstance(document.json, list):
            # An array as a body is several records, with or without each=.
            yield from (Scope(document, part=[item]) for item in document.json)
        else:
            yield Scope(document)
    elif by_css:
        yield from (Scope(document, element=node) for node in document.root.css(spec.each))
    else:
        for value in document.embedded:
            found = search_jmes(spec.each, value)
            if found is not None:
                items = found if isinstance(found, list) else [found]
                yield from (Scope(document, part=[item]) for item in items)
                return


def _values(spec: RecordSpec, scope: Scope) -> dict[str, Any]:
    values: dict[str, Any] = {}
    own = None if scope.document.content is Content.JSON else scope.document.page.url
    for field in spec.fields:
        if own and field.selector is None and field.name == "url" and scope.part is None:
            values["url"] = own  # every page has one, whether it says so or not
            continue
        found = select(field.selector or Selector("names", (field.name,)), scope, first=not field.many)
        if found:
            values[field.name] = _linked(field, found, scope) if field.many else _linked(field, found[:1], scope)[0]
        elif own and field.selector is None and field.name == "url":
            values["url"] = own  # of a part that names none
    return values


def _linked(field: FieldSpec, found: list[Any], scope: Scope) -> list[Any]:
    """The values, with links made absolute: only here is known what they are relative to.

    Of a list of links those that lead to no page (`javascript:`, `mailto:`) are left out; a single one is an error of
    the page's, to be told.
    """
    if field.kind is not Kind.URL or scope.document.content is Content.JSON:
        return found
    joined = [(value, scope.document.join(value) if isinstance(value, str) and value else None) for value in found]
    if field.many:
        return [url for _, url in joined if url is not None]
    return [value if url is None else url for value, url in joined]


def _by_function(document: Document, reader: Reader) -> Iterator[Raw]:
    name = getattr(reader, "__name__", "the reader")
    try:
        for record in reader(Fetched(document)):
            found: object = record
            if not isinstance(found, Record):
                raise Permanent(f"{name} gave {found!r:.80}, which is no record", place=document.page.url)
            yield Raw(record.__spec__, vars(record).copy())
    except RecrawlError:
        raise
    except (Exception, SystemExit, CancelledError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise Permanent(
            f"{name} failed: {type(error).__name__}: {error}",
            place=f"{document.page.url}, {last.filename}, line {last.lineno}",
            action="Correct the function; dead letters can then be replayed.",
        ) from None


def _shape(document: Document) -> str | None:
    if document.content is Content.JSON:
        return json_shape(document.json)
    return html_shape(document.root) if document.content in (Content.HTML, Content.XML) else None


def _canonical(document: Document) -> str | None:
    nodes = document.root.css('link[rel~="canonical" i][href]')
    found = {document.join(node.attributes.get("href") or "") for node in nodes}
    return found.pop() if len(found) == 1 else None


def _title(document: Document) -> str | None:
    node = document.root.css_first("head > title") or document.root.css_first("body title")
    return (" ".join(text_of(node).split()) or None) if node else None


def feeds_of(document: Document) -> tuple[str, ...]:
    """The feeds that an HTML page points to (rel=alternate), absolute, each once."""
    found: dict[str, None] = {}
    for node in document.root.css('link[rel~="alternate" i][type][href]'):
        given = node.attributes
        kind = (given.get("type") or "").partition(";")[0].strip().lower()
        if kind in _FEEDS and (url := document.join(given.get("href") or "")):
            found[url] = None
    return tuple(found)

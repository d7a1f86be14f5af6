"""Reading feeds: RSS, Atom, RDF, CDF and JSON Feed.

lxml first reduces a feed to its entries and in them to the few fields that are wanted, so that feedparser, whose time
grows with the square of nesting and attributes, only ever sees a small and well-formed one. It is given bytes and never
fetches. Its dates are not used: it fills what is missing from today.
"""

from __future__ import annotations

import html
import io
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import tzinfo
from enum import StrEnum
from itertools import chain
from typing import Final
from urllib.parse import urljoin

import orjson
from lxml import etree

from recrawl.discover.dates import instant, rfc_date
from recrawl.discover.elements import elements
from recrawl.discover.markup import Mender, Problems, as_text, decoded, legal, unpacked
from recrawl.discover.sniff import named, root_of, without_preface
from recrawl.discover.zones import named_zone

__all__ = ["FeedDocument", "FeedEntry", "FeedKind", "read_feed", "rfc_date"]


class FeedKind(StrEnum):
    """What a document turned out to be."""

    RSS = "rss"
    ATOM = "atom"
    RDF = "rdf"
    JSON = "json"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One item. `id` is its guid or Atom id as written, or its link where the feed has that id on other items too.
    `url` is its address, absolute; an Atom id stands in for a link, so it can be of any scheme. `updated` and
    `published` are UTC instants (`YYYY-MM-DDTHH:MM:SSZ`). What the feed does not say, or not so that it can be
    understood, is None."""

    id: str | None
    url: str | None
    updated: str | None = None
    published: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """A whole feed. Where `complete` is False, some entries may be missing and `problems` says why. `next` is the
    address of the page with older entries, where the feed has pages (RFC 5005 section 3; JSON Feed's next_url)."""

    kind: FeedKind
    entries: list[FeedEntry]
    complete: bool
    problems: list[str]
    next: str | None = None


def read_feed(data: bytes, url: str, content_type: str | None = None, zone: str | None = None) -> FeedDocument:
    """Read a feed that came from `url`, the base of relative links. Never raises on what a server may send.

    `zone` is the source's time zone, for dates that name none or an ambiguous one; without it such a time is unknown.
    """
    own = named_zone(zone)
    problems = Problems()
    chunks = decoded(unpacked(data, problems), content_type, problems)
    head = without_preface(next(chunks, ""), problems)
    chunks = chain((head,), chunks)
    root = root_of(head).lower()
    following = _next_of(head, url)
    kind = _KINDS.get(root, FeedKind.INVALID)
    if head.startswith(("{", "[")):
        found, following = _json_items(chunks, url, own, problems)
        kind = FeedKind.INVALID if found is None else FeedKind.JSON
        entries = found or []
    elif root in _NEVER:
        entries = []
    else:
        entries = _xml_entries(chunks, url, own, problems)
        if entries and kind is FeedKind.INVALID:
            kind = FeedKind.RSS
    if kind is FeedKind.INVALID:
        problems.lost(f"This is no feed but {named(head)}.")
    return FeedDocument(kind, _told_apart(entries, problems), problems.complete, problems.texts, following)


_MOST_ENTRIES: Final = 10_000
_TOO_MANY: Final = f"There are more than {_MOST_ENTRIES:,} entries; the rest was not read."
_MOST_JSON: Final = 8 * 1024 * 1024  # characters; parsed it takes many times as much
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_LONGEST_FIELD: Final = 8192  # characters
_KINDS: Final = {
    **{"rss": FeedKind.RSS, "channel": FeedKind.RSS, "feed": FeedKind.ATOM, "entry": FeedKind.ATOM},
    **{"rdf": FeedKind.RDF},
}
_NEVER: Final = frozenset({"html", "urlset", "sitemapindex"})
_FIRST_ENTRY = re.compile(r"<(?:[\w-]+:)?(?:item|entry)[\s>]", re.IGNORECASE)
_LINK = re.compile(r"<(?:[\w-]+:)?link\s([^<>]{1,2000})>")
_ATTRIBUTE = re.compile(r"\b(rel|href)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ENTRY_TAGS: Final = ("{*}item", "{*}entry", "{*}ITEM", "{*}Item")
_FIELDS: Final = frozenset(
    {"id", "guid", "link", "title", "pubdate", "published", "issued", "updated", "modified", "date", "created"}
)
_ATTRIBUTES: Final = frozenset({"href", "rel", "type", "ispermalink", "about", "resource", "lastmod"})
_DUBLIN_CORE: Final = {"dc": "{http://purl.org/dc/elements/1.1/}", "dcterms": "{http://purl.org/dc/terms/}"}
_ATOM: Final = "{http://www.w3.org/2005/Atom}"
_RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"


def _next_of(head: str, url: str) -> str | None:
    """The address that a feed's own link with rel=next names; it stands before the entries."""
    first = _FIRST_ENTRY.search(head)
    for link in _LINK.finditer(head, 0, first.start() if first else len(head)):
        given = {name: html.unescape(double or single) for name, double, single in _ATTRIBUTE.findall(link[1])}
        if given.get("rel") == "next" and given.get("href"):
            return _absolute(url, given["href"].strip())
    return None


def _xml_entries(chunks: Iterable[str], url: str, zone: tzinfo | None, problems: Problems) -> list[FeedEntry]:
    root = etree.Element("rss")
    for entry in elements(
        Mender(problems, stray=as_text, keep_entities=True).mended(chunks), _ENTRY_TAGS, url, problems, entities=True
    ):
        if len(root) == _MOST_ENTRIES:
            problems.lost(_TOO_MANY)
            break
        _copy(entry, root)
    if len(root) == 0:
        return []
    import feedparser

    result = feedparser.parse(
        io.BytesIO(etree.tostring(root, encoding="utf-8")),
        response_headers={"content-type": "application/xml; charset=utf-8"},
        resolve_relative_uris=False,
        sanitize_html=False,
    )
    return [_from_feedparser(entry, zone) for entry in result.entries]


def _copy(entry: etree._Element, root: etree._Element) -> None:
    """Add to a small feed what is wanted of an entry, with links made absolute (RFC 4287 section 2: bases nest)."""
    namespace, name = _split(entry.tag)
    small = etree.SubElement(root, name.rpartition(":")[2], _attributes(entry))
    for child in entry:
        tag = _field(child.tag, namespace)
        if tag is None:
            continue
        text = legal("".join(map(str, child.itertext()))).strip()
        if len(text) > _LONGEST_FIELD:
            continue
        attributes = _attributes(child)
        if tag == "link" and text and not attributes.get("href"):
            text = _absolute(child.base or "", text)
            if "rel" in attributes:  # some write the address of an Atom link as its text
                attributes["href"] = text
        etree.SubElement(small, tag, attributes).text = text


def _field(tag: object, own: str) -> str | None:
    """The tag of a field that is wanted, else None: those of extensions (media:title) are not the entry's.

    Only Dublin Core keeps its namespace. Its prefix counts even if nobody declared it.
    """
    if not isinstance(tag, str):
        return None
    namespace, name = _split(tag)
    prefix, colon, rest = name.partition(":")
    if colon and prefix in _DUBLIN_CORE:
        namespace, name = _DUBLIN_CORE[prefix], rest
    if name.lower() not in _FIELDS:
        return None
    if namespace in _DUBLIN_CORE.values():
        return namespace + name
    return name if namespace in ("", _ATOM, own) else None


def _attributes(element: etree._Element) -> dict[str, str]:
    wanted = {}
    for key in map(str, element.attrib):  # not items(), which takes the square of their number
        namespace, name = _split(key)
        if namespace in ("", _RDF) and name.lower() in _ATTRIBUTES:
            value = legal(str(element.get(key)))
            wanted[key] = _absolute(element.base or "", value.strip()) if name.lower() == "href" else value
    return wanted


def _split(tag: str) -> tuple[str, str]:
    """`{namespace}` (or nothing) and local name of a tag as lxml writes it."""
    namespace, brace, name = tag.rpartition("}")
    return namespace + brace, name


def _from_feedparser(found: dict[str, object], zone: tzinfo | None) -> FeedEntry:
    # `dict.get`, because feedparser's own answers a question for one date with another.
    def text(name: str) -> str | None:
        value = dict.get(found, name)
        return value.strip() or None if isinstance(value, str) else None

    name = text("id")
    return FeedEntry(
        id=name,
        url=_alternate(found) or _address(text("link")) or _address(name),
        updated=instant(text("updated") or "", zone),
        published=instant(text("published") or text("created") or "", zone),
        title=text("title"),
    )


def _address(text: str | None) -> str | None:
    """A guid or link that is an address: relative ones were made absolute, so what is left is only a name."""
    return text if text and _SCHEME.match(text) else None


def _alternate(found: dict[str, object]) -> str | None:
    """The first of several addresses: feedparser's own choice is the last."""
    links = dict.get(found, "links")
    if not isinstance(links, list):
        return None
    return next((link["href"] for link in links if link.get("rel") == "alternate" and link.get("href")), None)


def _json_items(
    chunks: Iterable[str], url: str, zone: tzinfo | None, problems: Problems
) -> tuple[list[FeedEntry] | None, str | None]:
    """The items of a JSON Feed (jsonfeed.org, version 1.1) and its next page; None where the document is not one."""
    text = "".join(chunks)
    if len(text) > _MOST_JSON:
        problems.lost(f"The JSON has more than {_MOST_JSON:,} characters; it was not read.")
        return None, None
    try:
        document = orjson.loads(text)
    except ValueError as error:
        problems.lost(f"The JSON is broken: {error}.")
        return None, None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list):
        return None, None
    if len(items) > _MOST_ENTRIES:
        problems.lost(_TOO_MANY)
    found = [_json_item(item, url, zone) for item in items[:_MOST_ENTRIES] if isinstance(item, dict)]
    following = document.get("next_url")
    return found, _absolute(url, following.strip()) if isinstance(following, str) and following.strip() else None


def _json_item(item: dict[str, object], url: str, zone: tzinfo | None) -> FeedEntry:
    def text(name: str) -> str | None:
        value = item.get(name)
        return str(value).strip() or None if isinstance(value, str | int) else None

    link = text("url") or text("external_url")
    return FeedEntry(
        id=text("id"),
        url=_absolute(url, link) if link else None,
        updated=instant(text("date_modified") or "", zone),
        published=instant(text("date_published") or "", zone),
        title=text("title"),
    )


def _absolute(base: str, link: str) -> str:
    """A link as found, or joined to its base where it is relative."""
    try:
        return link if _SCHEME.match(link) else urljoin(base, link)
    except ValueError:
        return link


def _told_apart(entries: list[FeedEntry], problems: Problems) -> list[FeedEntry]:
    """Entries whose id is no id, because others have it too, get their link for an id."""
    links: defaultdict[str | None, set[str | None]] = defaultdict(set)
    for entry in entries:
        links[entry.id].add(entry.url)
    repeated = [found for found, urls in links.items() if found and len(urls - {None}) > 1]
    for found in repeated:
        problems.note(f"The id {found[:80]!r} stands on several entries; their links tell them apart.")
    doubtful = set(repeated)
    return [replace(entry, id=entry.url or entry.id) if entry.id in doubtful else entry for entry in entries]

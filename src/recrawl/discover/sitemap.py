"""Reading sitemaps: sitemaps.org protocol 0.9 in XML and text, and the feeds that sites use in their place.

What a document is, is told by its content. Elements are known by their local names, since half of the sites bind the
wrong namespace; those of the image, video and news extensions are no pages. A bad field never costs its entry, a bad
entry never costs the document: `problems` says what was wrong, and `complete` is True only if nothing can be missing,
for only then may absence mean anything.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import chain, repeat
from typing import Final
from urllib.parse import urljoin

from lxml import etree

from recrawl.discover.dates import instant
from recrawl.discover.elements import elements
from recrawl.discover.feed import read_feed
from recrawl.discover.markup import Mender, Problems, as_url_escape, cleaned, decoded, unpacked
from recrawl.discover.sniff import named, root_of, without_preface
from recrawl.discover.zones import named_zone


class SitemapKind(StrEnum):
    """What a document turned out to be."""

    URLSET = "urlset"
    INDEX = "index"
    TEXT = "text"
    RSS = "rss"
    ATOM = "atom"
    INVALID = "invalid"  # no sitemap at all: a page that says "not found", an empty body


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """One address. `url` is absolute and as found, but for white space round it; `modified` is a UTC instant
    (`YYYY-MM-DDTHH:MM:SSZ`), None where the document does not say it in a way that can be understood."""

    url: str
    modified: str | None = None


@dataclass(frozen=True, slots=True)
class SitemapBatch:
    """A slice of a document in its order. `entries` are pages, `children` are further sitemaps."""

    entries: list[SitemapEntry] = field(default_factory=list)
    children: list[SitemapEntry] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.entries) + len(self.children)


@dataclass(frozen=True, slots=True)
class SitemapDocument:
    """A whole sitemap. Where `complete` is False, some entries may be missing and `problems` says why."""

    kind: SitemapKind
    entries: list[SitemapEntry]
    children: list[SitemapEntry]
    complete: bool
    problems: list[str]


def read_sitemap(data: bytes, url: str, content_type: str | None = None, zone: str | None = None) -> SitemapDocument:
    """Read a sitemap, gzip or not, that came from `url`. Never raises on what a server may send.

    `zone` is the source's time zone, for dates that name none; without it such a time is unknown.
    """
    reading = iter_sitemap(data, url, content_type, zone=zone)
    whole = SitemapBatch()
    for batch in reading.batches():
        whole.entries.extend(batch.entries)
        whole.children.extend(batch.children)
    return SitemapDocument(reading.kind, whole.entries, whole.children, reading.complete, reading.problems)


def iter_sitemap(
    data: bytes, url: str, content_type: str | None = None, *, size: int = 1000, zone: str | None = None
) -> SitemapReading:
    """As `read_sitemap`, in batches of about `size` entries and in flat memory, for documents of any length."""
    return SitemapReading(data, url, content_type, size=size, zone=zone)


_KINDS: Final = {
    **{"urlset": SitemapKind.URLSET, "url": SitemapKind.URLSET, "sitemapindex": SitemapKind.INDEX},
    **{"rss": SitemapKind.RSS, "RDF": SitemapKind.RSS, "feed": SitemapKind.ATOM},
}
_LONGEST_URL: Final = 8192  # characters; the protocol says 2,048
_TRIM: Final = "".join(map(chr, [*range(33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200E), 0x2028, 0x2029, 0x202F])) + (
    "\u205f\u2060\u3000\ufeff"
)
_ADDRESS = re.compile(r"^[ \t]*https?://\S", re.IGNORECASE | re.MULTILINE)
_EXTENSION = re.compile(r"\{[^}]*(?:sitemap-\w+|xhtml)[^}]*\}")  # .../schemas/sitemap-image/1.1 and its kin
_ELEMENT = re.compile(r"<[A-Za-z]")
_BREAK = re.compile(r"[ \t]*[\r\n\t]\s*")


class SitemapReading:
    """A sitemap while it is read. `kind` is known at once, `complete` and `problems` when `batches` has ended."""

    def __init__(self, data: bytes, url: str, content_type: str | None, *, size: int, zone: str | None) -> None:
        self._data, self._url, self._content_type = data, url, content_type
        self._size = size
        self._zone_name, self._zone = zone, named_zone(zone)
        self._problems = Problems()
        self._ended = False
        self._found = 0
        chunks = decoded(unpacked(data, self._problems), content_type, self._problems)
        self._head = without_preface(next(chunks, ""), self._problems)
        self._chunks = chain((self._head,), chunks)
        self.kind = _KINDS.get(root_of(self._head), SitemapKind.INVALID)
        if not self._head.startswith(("<", "{", "[")) and _ADDRESS.search(self._head):
            self.kind = SitemapKind.TEXT

    @property
    def complete(self) -> bool:
        return self._ended and self._problems.complete

    @property
    def problems(self) -> list[str]:
        return self._problems.texts

    def batches(self) -> Iterator[SitemapBatch]:
        """The entries in the document's order, once."""
        batch = SitemapBatch()
        for child, entry in self._entries():
            self._found += 1
            (batch.children if child else batch.entries).append(entry)
            if len(batch) >= self._size:
                yield batch
                batch = SitemapBatch()
        self._ended = True
        if batch:
            yield batch

    def _entries(self) -> Iterator[tuple[bool, SitemapEntry]]:
        if self.kind is SitemapKind.TEXT:
            return self._lines()
        if self.kind in (SitemapKind.RSS, SitemapKind.ATOM):
            return self._items()
        if self.kind is SitemapKind.INVALID:
            self._problems.lost(f"This is no sitemap but {named(self._head)}.")
            return iter(())
        return self._elements()

    def _lines(self) -> Iterator[tuple[bool, SitemapEntry]]:
        newlines = io.IncrementalNewlineDecoder(None, translate=True)
        carry = ""
        for chunk in chain(self._chunks, ("\n",)):
            *lines, carry = (carry + newlines.decode(chunk)).split("\n")
            for line in map(str.strip, lines, repeat(_TRIM)):
                if _ADDRESS.match(line):
                    if url := self._address(cleaned(line, as_url_escape, self._problems).decode()):
                        yield False, SitemapEntry(url)
                elif line and not line.startswith("#"):
                    self._problems.lost(f"The line {line[:80]!r} is no web address.")
            if len(carry) > _LONGEST_URL:
                self._problems.lost(f"A line has more than {_LONGEST_URL:,} characters; the rest was not read.")
                return

    def _items(self) -> Iterator[tuple[bool, SitemapEntry]]:
        feed = read_feed(self._data, self._url, self._content_type, self._zone_name)
        for problem in feed.problems:
            self._problems.note(problem)
        self._problems.complete &= feed.complete
        for item in feed.entries:
            if url := self._address(item.url or ""):
                yield False, SitemapEntry(url, item.updated or item.published)

    def _elements(self) -> Iterator[tuple[bool, SitemapEntry]]:
        chunks = Mender(self._problems, stray=as_url_escape).mended(self._chunks)
        for element in elements(chunks, ("{*}url", "{*}sitemap"), self._url, self._problems):
            yield from self._element(element)
        if self._found == 0 and len(_ELEMENT.findall(self._head)) > 1:
            self._problems.lost("The document has elements, but no address in them.")

    def _element(self, element: etree._Element) -> Iterator[tuple[bool, SitemapEntry]]:
        """The addresses of one <url> or <sitemap>; some writers put several into one, each before its date."""
        role = _role(element.tag)
        if role is None:
            return
        url: str | None = None
        modified: str | None = None
        for child in element:
            match _role(child.tag):
                case "loc":
                    if url:
                        yield role == "sitemap", SitemapEntry(url, modified)
                    url, modified = self._address(_text(child)), None
                case "lastmod":
                    modified = modified or instant(_text(child), self._zone)
                case _:
                    pass
        if url is None and (bare := (element.text or "").strip(_TRIM)):
            url = self._address(bare)
        if url:
            yield role == "sitemap", SitemapEntry(url, modified)

    def _address(self, text: str) -> str | None:
        text = text.strip(_TRIM)
        if "\n" in text or "\t" in text:
            text = _BREAK.sub("", text)
        if len(text) > _LONGEST_URL or "\ufffd" in text:
            self._problems.lost(f"The address {text[:80]!r} cannot be read or is too long.")
            return None
        if text[:8].lower().startswith(("http://", "https://")):
            return text
        if not text:
            self._problems.note("There is an entry without an address.")
            return None
        try:
            joined = urljoin(self._url, text)
        except ValueError:
            joined = text
        if joined[:8].lower().startswith(("http://", "https://")):
            return joined
        self._problems.note(f"{text[:80]!r} is no web address.")
        return None


@lru_cache(maxsize=256)
def _role(tag: object) -> str | None:
    """What an element means here, by its local name; None for comments and for elements of extensions."""
    if not isinstance(tag, str) or _EXTENSION.search(tag):
        return None
    return tag.rpartition("}")[2]


def _text(element: etree._Element) -> str:
    return (element.text or "") if len(element) == 0 else "".join(map(str, element.itertext("*")))

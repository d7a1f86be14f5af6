"""Finders: ways of finding a source's pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Finder:
    """What all finders share.

    `name` names the stream in which sightings are counted (the default tells kind and address); a URL is a page only if
    it matches `match` and not `skip` (searched anywhere in the URL); `exhaustive` tells that reaching the end means
    having seen everything, so that what is no longer listed can be suspected of being gone.
    """

    _: KW_ONLY
    name: str | None = None
    match: str | re.Pattern[str] | None = None
    skip: str | re.Pattern[str] | None = None
    exhaustive: bool = True

    @property
    def addresses(self) -> tuple[str, ...]:
        """The URLs that the user named in this finder."""
        return ()

    @property
    def stream(self) -> str:
        return self.name or ":".join((type(self).__name__.lower(), *self.addresses[:1]))

    @property
    def streams(self) -> dict[str, bool]:
        """The names of its streams, and whether each is exhaustive."""
        return {self.stream: self.exhaustive}

    def wants(self, url: str) -> bool:
        """Whether this URL is a page."""
        if self.match is not None and not re.search(self.match, url):
            return False
        return self.skip is None or not re.search(self.skip, url)


@dataclass(frozen=True)
class _OneAddress(Finder):
    url: str

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.url,)


@dataclass(frozen=True)
class Sitemap(_OneAddress):
    """A sitemap or an index of sitemaps (sitemaps.org), as XML or text; its lastmod is a hint."""


@dataclass(frozen=True)
class Feed(_OneAddress):
    """An RSS, Atom or JSON feed. It holds the newest entries only, so it is never exhaustive."""

    _: KW_ONLY
    exhaustive: bool = False


@dataclass(frozen=True)
class Urls(Finder):
    """A list of URLs, each of which is a page."""

    urls: Sequence[str]

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(self.urls)

    @property
    def stream(self) -> str:
        return self.name or "urls"


@dataclass(frozen=True)
class Auto(_OneAddress):
    """No configuration: sitemaps and feeds of the site at this address are found by themselves."""


@dataclass(frozen=True)
class Listing(_OneAddress):
    """Pages that list others, one after the other: a category, search results, an archive.

    `links` is a CSS selector of what leads to pages; without it, all links that fit `match` do. `next` is a CSS
    selector of the link to the next page, or an address with `{page}` in it for numbered pages; without it, the link
    with rel=next. Of an element without `::attr(...)` its `href` is taken, or that of the first link inside of it.
    """

    _: KW_ONLY
    links: str | None = None
    next: str | None = None

    @property
    def numbered(self) -> bool:
        """Whether the pages of the listing are addressed by their numbers."""
        return self.next is not None and PAGE in self.next


PAGE = "{page}"
"""What stands for the number of a page in an address."""


@dataclass(frozen=True)
class Links(_OneAddress):
    """Links followed by rule from an address, breadth first, on the source's own site.

    `follow` and `pages` are regular expressions on URLs: those that fit `follow` are read for more links (without it,
    only the first address is), those that fit `pages` are pages; a URL can be both. `depth` is how many links away
    from the first address is still read (None: as far as they lead); where it cuts something off, not everything was
    seen.
    """

    _: KW_ONLY
    follow: str | re.Pattern[str] | None = None
    pages: str | re.Pattern[str] | None = None
    depth: int | None = None

    def wants(self, url: str) -> bool:
        return (self.pages is None or re.search(self.pages, url) is not None) and super().wants(url)

    def leads(self, url: str) -> bool:
        """Whether this URL is read for more links."""
        return self.follow is not None and re.search(self.follow, url) is not None


@runtime_checkable
class Named(Protocol):
    """A source, as far as a finder needs to know it."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class Derived(_OneAddress):
    """URLs made of another source's current rows in the same database.

    `url` is an address with names of columns in it, `https://x.example/{sku}`: their values are percent-encoded, and a
    row without one of them has no page. `source` is the other source, or its name; `table` is the table of the rows,
    needed where that source has several; `where` keeps to the rows whose columns have these values.
    """

    _: KW_ONLY
    source: str | Named
    table: str | None = None
    where: Mapping[str, str | int | bool | None] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.source, Named):
            object.__setattr__(self, "source", self.source.name)

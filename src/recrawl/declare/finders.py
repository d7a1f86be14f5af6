"""Finders: ways of finding a source's pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass


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

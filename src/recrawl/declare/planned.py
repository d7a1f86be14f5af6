"""Names that are agreed on and not there yet: a source that uses one is refused, and told what to use instead.

A release that brings one takes its line out of `NOT_YET`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from recrawl.declare.finders import Finder, _OneAddress
from recrawl.errors import Misuse


@dataclass(frozen=True)
class Listing(_OneAddress):
    _: KW_ONLY
    links: str | None = None
    next: str | None = None


@dataclass(frozen=True)
class Links(_OneAddress):
    _: KW_ONLY
    follow: str | None = None
    pages: str | None = None
    depth: int | None = None


class Keywords(Finder):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__()


class Derived(Finder):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__()


_INSTEAD = "Use Sitemap, Feed or Urls: Urls([...]) takes any list of addresses that you make yourself."

NOT_YET: dict[type, str] = {
    Listing: _INSTEAD,
    Links: _INSTEAD,
    Keywords: _INSTEAD,
    Derived: _INSTEAD,
}


def refuse_planned(kind: type, place: str) -> None:
    """Raise Misuse for a kind of thing that this release does not have yet."""
    if action := NOT_YET.get(kind):
        raise Misuse(f"{kind.__name__} is not there yet in this release", place=place, action=action)

"""Names that are agreed on and not there yet: a source that uses one is refused, and told what to use instead.

A release that brings one takes its line out of `NOT_YET`.
"""

from __future__ import annotations

from typing import Any

from recrawl.declare.finders import Finder
from recrawl.errors import Misuse


class Keywords(Finder):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__()


NOT_YET: dict[type, str] = {
    Keywords: "Use Sitemap, Feed or Urls: Urls([...]) takes any list of addresses that you make yourself.",
}


def refuse_planned(kind: type, place: str) -> None:
    """Raise Misuse for a kind of thing that this release does not have yet."""
    if action := NOT_YET.get(kind):
        raise Misuse(f"{kind.__name__} is not there yet in this release", place=place, action=action)

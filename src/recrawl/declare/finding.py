"""What finders must fulfil before anything is fetched: each problem is told with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter
from typing import Any

from recrawl.declare.checks import at_least, pattern
from recrawl.declare.finders import PAGE, Derived, Feed, Finder, Links, Listing, Urls
from recrawl.declare.selectors import check_css
from recrawl.errors import Misuse

_HOST_AND_MORE = re.compile(r"https?://[^{}/?#]+([/?#].*)?", re.DOTALL | re.IGNORECASE)


def check_finder(finder: Finder, place: str) -> None:
    """Raise Misuse for what a finder of its kind cannot do. Regular expressions in it are compiled."""
    match finder:
        case Urls():
            if not finder.urls:
                raise Misuse("the list of URLs is empty", place=f"{place}.urls", action="Name one at least.")
        case Feed():
            if finder.exhaustive:
                action = "A feed holds the newest entries only: leave exhaustive out."
                raise Misuse("a feed is never exhaustive", place=f"{place}.exhaustive", action=action)
        case Listing():
            _check_listing(finder, place)
        case Links():
            _check_links(finder, place)
        case Derived():
            _check_derived(finder, place)
        case _:
            pass


def _check_listing(finder: Listing, place: str) -> None:
    if finder.links is None and finder.match is None:
        action = "Write links= (a CSS selector such as 'h3 a') or match= (a regular expression on their URLs)."
        raise Misuse("nothing tells which links lead to pages", place=f"{place}.links", action=action)
    if finder.links is not None:
        check_css(finder.links, f"{place}.links")
    if finder.next is None:
        return
    if not finder.numbered:
        check_css(finder.next, f"{place}.next")
    elif finder.next.count(PAGE) > 1 or set("{}") & set(finder.next.replace(PAGE, "")):
        action = f"Write {PAGE} once, and no other braces: '/list?page={PAGE}'."
        raise Misuse(f"{finder.next!r} is no address of numbered pages", place=f"{place}.next", action=action)


def _check_links(finder: Links, place: str) -> None:
    for name in ("follow", "pages"):
        expression = getattr(finder, name)
        if expression is not None:
            object.__setattr__(finder, name, pattern(expression, f"{place}.{name}"))
    if finder.pages is None and finder.match is None:
        action = "Write pages=, a regular expression on the URLs of pages."
        raise Misuse("nothing tells which links lead to pages", place=f"{place}.pages", action=action)
    if finder.depth is not None:
        at_least(finder.depth, 0, f"{place}.depth")


def _check_derived(finder: Derived, place: str) -> None:
    if not _HOST_AND_MORE.fullmatch(finder.url) or not fields_of(finder.url):
        action = "Write it in full, with names of columns behind the host: 'https://x.example/{sku}'."
        raise Misuse(f"{finder.url!r} is no address to be filled in", place=f"{place}.url", action=action)
    values: Mapping[str, Any] = finder.where or {}
    for name, value in values.items():
        if value is not None and not isinstance(value, (str, int)):
            action = "Write a text, a whole number, true or false; None in Python for what is missing."
            raise Misuse(f"{value!r} cannot be compared with", place=f"{place}.where.{name}", action=action)


def fields_of(template: str) -> tuple[str, ...]:
    """The names in braces in an address, each once; none where the braces are not in order."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        return ()
    names = [name for _, name, _, _ in parts if name is not None]
    plain = all(not spec and not conversion for _, name, spec, conversion in parts if name is not None)
    return tuple(dict.fromkeys(names)) if plain and all(name.isidentifier() for name in names) else ()

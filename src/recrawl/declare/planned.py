"""Names that are agreed on and not there yet: a source that uses one is refused, and told what to use instead.

A release that brings one takes its line out of `NOT_YET`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from recrawl.declare.finders import Finder, _OneAddress
from recrawl.declare.policies import Span
from recrawl.errors import Misuse


@dataclass(frozen=True)
class Secret:
    """The name of an environment variable that holds a secret; the secret itself is nowhere in a declaration."""

    name: str


def env(name: str) -> Secret:
    """A secret that is read from the environment when it is needed."""
    return Secret(name)


@dataclass(frozen=True)
class Bearer:
    token: Secret


@dataclass(frozen=True)
class Basic:
    user: str | Secret
    password: Secret


@dataclass(frozen=True)
class Since:
    """The parameter by which an API is asked for what changed since then."""

    param: str
    _: KW_ONLY
    overlap: Span = "10m"
    missing: Literal["raise", "include", "exclude"] = "raise"


class Paging:
    """How an API is read page by page."""

    def __init__(self, *names: str, **options: str | int) -> None:
        self.names, self.options = names, options


class Offset(Paging): ...


class PageNumber(Paging): ...


class NextToken(Paging): ...


class NextLink(Paging): ...


class AfterId(Paging): ...


@dataclass(frozen=True)
class Api(_OneAddress):
    _: KW_ONLY
    items: str | None = None
    id: str | None = None
    updated: str | None = None
    version: str | None = None
    link: str | None = None
    since: Since | None = None
    pages: Paging | None = None
    method: str = "GET"
    params: Mapping[str, Any] | None = None
    json: Any = None


class Keywords(Finder):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__()


_INSTEAD = "Use Sitemap, Feed or Urls: Urls([...]) takes any list of addresses that you make yourself."

NOT_YET: dict[type, str] = {
    Api: "Use Urls([...]) with the addresses of the API's answers, each read as one page of JSON with jmes and each=.",
    Keywords: _INSTEAD,
    Bearer: "Leave auth= out: only what is public can be read.",
    Basic: "Leave auth= out: only what is public can be read.",
}


def refuse_planned(kind: type, place: str) -> None:
    """Raise Misuse for a kind of thing that this release does not have yet."""
    if action := NOT_YET.get(kind):
        raise Misuse(f"{kind.__name__} is not there yet in this release", place=place, action=action)

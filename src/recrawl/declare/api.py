"""The finder for JSON APIs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal
from urllib.parse import quote

from recrawl.declare.checks import checked
from recrawl.declare.finders import Finder, _OneAddress
from recrawl.declare.paging import AfterId, Paging, check_paging
from recrawl.declare.policies import Span
from recrawl.declare.secrets import Secret, check_headers
from recrawl.declare.selectors import check_jmes
from recrawl.errors import Misuse

IN_BODY = "json:"
"""Begins the name of a parameter that stands in the JSON body: `json:variables.after`."""

_EXPRESSIONS = ("items", "id", "updated", "version", "link")


@dataclass(frozen=True)
class Since:
    """The parameter by which an API is asked for what changed since then.

    It carries the greatest `updated` so far less `overlap`, or, where the API has no `updated`, the greatest id so far.
    `missing` is what becomes of an item without such a value, or with one that cannot be read: `raise` stops the
    stream there, `include` takes it in, `exclude` leaves it out and counts it.
    """

    param: str
    _: KW_ONLY
    overlap: Span = "10m"
    missing: Literal["raise", "include", "exclude"] = "raise"


@dataclass(frozen=True)
class Api(_OneAddress):
    """A JSON API.

    `items`, `id`, `updated`, `version` and `link` are JMESPaths: `items` into the answer, the others into an item. With
    `link` an item is a sighting of the page at that URL; without it the item itself is the page, and is never fetched.
    With `since` there are two streams: what changed, in each cycle, and all that there is, every `full_scan`.
    """

    _: KW_ONLY
    items: str = "@"
    id: str | None = None
    updated: str | None = None
    version: str | None = None
    link: str | None = None
    since: Since | None = None
    pages: Paging | None = None
    method: Literal["GET", "POST"] = "GET"
    params: Mapping[str, Any] | None = None
    json: Mapping[str, Any] | None = None
    headers: Mapping[str, Any] | None = None

    @property
    def whole(self) -> str:
        """The stream that reads everything."""
        return f"{self.stream}:full" if self.since else self.stream

    @property
    def streams(self) -> dict[str, bool]:
        if self.since is None:
            return {self.stream: self.exhaustive}
        return {self.stream: False} | ({self.whole: True} if self.exhaustive else {})

    def url_of(self, item: str) -> str:
        """The address of an item that is a page itself, by its id."""
        return f"{self.url.partition('#')[0]}#{quote(item, safe='')}"


def check_api(api: Api, place: str) -> Api:
    """The finder with its values checked. Raises Misuse."""
    for name in _EXPRESSIONS:
        if (expression := getattr(api, name)) is not None:
            check_jmes(expression, f"{place}.{name}")
    if api.id is None and (api.link is None or isinstance(api.pages, AfterId)):
        action = 'Say where an item holds its id: id="id"; or where it links to its page: link="url".'
        raise Misuse("the items have no id", place=f"{place}.id", action=action)
    if api.since is not None and api.updated is None and api.id is None:
        action = 'Say where an item holds its time or its id: updated="updated_at".'
        raise Misuse("since= has nothing to go by", place=f"{place}.since", action=action)
    check_headers(api.headers or {}, f"{place}.headers")
    _check_parameters(api, place)
    since = checked(api.since, f"{place}.since") if api.since else None
    pages = check_paging(api.pages, f"{place}.pages") if api.pages else None
    return replace(api, since=since, pages=pages)


def _check_parameters(api: Api, place: str) -> None:
    for name, value in (api.params or {}).items():
        parts = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(part, (str, int, float, Secret)) for part in parts):
            action = "Write a text, a number, true or false, env(...), or a list of these."
            raise Misuse(f"the parameter {name!r} cannot stand in a URL", place=f"{place}.params.{name}", action=action)
    in_body = [name for name in _named(api) if name.startswith(IN_BODY)]
    if (api.json is not None or in_body) and api.method != "POST":
        raise Misuse("a GET request has no body", place=f"{place}.method", action='Write method="POST".')
    for name in in_body:
        if not all(name.removeprefix(IN_BODY).split(".")):
            raise Misuse(f"{name!r} is no place in a body", place=place, action="Write for instance 'json:vars.after'.")


def _named(api: Api) -> Iterator[str]:
    if api.since:
        yield api.since.param
    if api.pages:
        yield from (value for name in ("param", "size_param") if (value := getattr(api.pages, name, None)))


def holds_items(finder: Finder) -> bool:
    """Whether the finder's answers hold whole pages."""
    return isinstance(finder, Api) and finder.link is None

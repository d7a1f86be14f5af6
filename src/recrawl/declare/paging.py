"""How an API is read answer by answer.

Where a parameter goes is said by its name: `offset` is a query parameter, `json:variables.after` stands in the JSON
body, under these keys. `total`, `last`, `token` and `next` are JMESPaths into the answer.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from recrawl.declare.checks import at_least, checked
from recrawl.declare.selectors import check_jmes

_EXPRESSIONS = ("total", "last", "token", "next")


@dataclass(frozen=True)
class Paging:
    """What all ways share: `size` items are asked for by the parameter `size_param`; None asks for no number."""

    _: KW_ONLY
    size: int | None = None
    size_param: str = "limit"


@dataclass(frozen=True)
class Offset(Paging):
    """`?offset=200&limit=100`: how many items are left out. The end is an empty answer, or `total` items."""

    param: str = "offset"
    _: KW_ONLY
    size: int | None = 100
    start: int = 0
    total: str | None = None


@dataclass(frozen=True)
class PageNumber(Paging):
    """`?page=3`: the number of the page, from `start` on. The end is an empty answer, the page with the number `last`,
    or a short one after `total` items."""

    param: str = "page"
    _: KW_ONLY
    size_param: str = "per_page"
    start: int = 1
    total: str | None = None
    last: str | None = None


@dataclass(frozen=True)
class NextToken(Paging):
    """Each answer holds the token of the next one, at `token`; it goes back as `param`. The last one holds none."""

    token: str
    param: str = "cursor"


@dataclass(frozen=True)
class NextLink(Paging):
    """Each answer holds the URL of the next one: at `next`, or in its Link header as rel="next" (RFC 8288)."""

    next: str | None = None


@dataclass(frozen=True)
class AfterId(Paging):
    """`?after=17`: items come in the order of their ids, and each answer begins behind the greatest id so far."""

    param: str = "after"


def check_paging(paging: Paging, place: str) -> Paging:
    """The paging with its values checked. Raises Misuse."""
    paging = checked(paging, place)
    for name in _EXPRESSIONS:
        if (expression := getattr(paging, name, None)) is not None:
            check_jmes(expression, f"{place}.{name}")
    if paging.size is not None:
        at_least(paging.size, 1, f"{place}.size")
    return paging

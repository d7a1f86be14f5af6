"""Where a field's raw value stands. Each function is used as the value of a field in a `Record`.

They are typed to return Any, so that `title: str = css("h1::text")` satisfies a type checker. A field without
`default=` whose value is missing makes the record invalid, unless its type is `T | None`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from recrawl.declare.specs import Selector


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING


@dataclass(frozen=True, slots=True)
class Field:
    """A selector and a default, before the type is known."""

    selector: Selector | None
    default: Any = MISSING


def css(selector: str, *, default: Any = MISSING) -> Any:
    """A CSS selector; `::text` (also without it) is the element's text, `::attr(name)` an attribute.

    Without a selector before it, `::attr(name)` is that of the part itself, in records with `each=`.
    """
    return Field(Selector("css", (selector,)), default)


def xpath(expression: str, *, default: Any = MISSING) -> Any:
    """An XPath 1.0 expression: elements give their text, attributes and text nodes themselves."""
    return Field(Selector("xpath", (expression,)), default)


def jmes(expression: str, *, default: Any = MISSING) -> Any:
    """A JMESPath over a JSON body, or over the JSON embedded in an HTML page: the first document that has it, of
    `__NEXT_DATA__`, other scripts of a JSON type, what scripts assign as JSON, and JSON-LD."""
    return Field(Selector("jmes", (expression,)), default)


def meta(name: str, *, default: Any = MISSING) -> Any:
    """The content of `<meta name=...>`, `property=` or `http-equiv=` of that name, in any case."""
    return Field(Selector("meta", (name,)), default)


def jsonld(path: str, *, default: Any = MISSING) -> Any:
    """A dotted path into the page's JSON-LD: `Product.offers.price`, or `offers.price` of whichever object has it."""
    return Field(Selector("jsonld", (path,)), default)


def names(*keys: str, default: Any = MISSING) -> Any:
    """Several raw names for one field: the first that holds a value."""
    return Field(Selector("names", keys), default)


SELECTORS = {"css": css, "xpath": xpath, "jmes": jmes, "meta": meta, "jsonld": jsonld, "names": names}

"""The grammar of selectors: what a declaration may say, checked before anything is fetched."""

from __future__ import annotations

import re
from typing import NamedTuple

from recrawl.declare.specs import RecordSpec, Selector
from recrawl.errors import Misuse

_PSEUDO = re.compile(r"(.*?)\s*::(text|attr\(\s*([^\s()]+)\s*\))", re.DOTALL)
_JSONLD = re.compile(r"@?[\w:-]+(\.@?[\w:-]+)*")


class CssPath(NamedTuple):
    """A CSS selector and what to take of what it matches: the attribute of that name, or None for the text."""

    css: str  # "" is the page or part itself
    attribute: str | None


def split_css(selector: str) -> CssPath:
    """Take `::text` or `::attr(name)` off the end of a selector."""
    found = _PSEUDO.fullmatch(selector.strip())
    return CssPath(found[1].strip(), found[3] and found[3].lower()) if found else CssPath(selector.strip(), None)


def each_is_css(spec: RecordSpec) -> bool:
    """Whether `each` is a CSS selector: it is when a field reads by css or xpath, else it is a JMESPath."""
    return any(field.selector is not None and field.selector.kind in ("css", "xpath") for field in spec.fields)


def check_selector(selector: Selector, place: str) -> None:
    """Raise Misuse, naming the expression and what is wrong with it."""
    if not selector.exprs:
        raise Misuse(f"{selector.kind} without a name", place=place, action='Write for instance names("price").')
    given: tuple[object, ...] = selector.exprs  # TOML can put anything here
    for expression in given:
        if not isinstance(expression, str) or not expression.strip():
            action = "Write a selector, or leave it out to read the raw field of that name."
            raise Misuse(f"{expression!r} is no {selector.kind} expression", place=place, action=action)
        _CHECKS[selector.kind](expression, place)


def check_css(expression: str, place: str) -> None:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    path = split_css(expression)
    if not path.css and expression.strip():
        return
    try:
        LexborHTMLParser("<p>").css(path.css)
    except SelectolaxError:
        raise Misuse(
            f"{expression!r} is no CSS selector",
            place=place,
            action="Write a CSS selector, with one ::text or ::attr(name) at its end if you like: 'h1.name::text'.",
        ) from None


def check_jmes(expression: str, place: str) -> None:
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        jmespath.compile(expression)
    except JMESPathError as error:
        reason = str(error).splitlines()[0]
        action = "Write for instance 'data.items[].name'; see jmespath.org."
        raise Misuse(f"{expression!r} is no JMESPath: {reason}", place=place, action=action) from None


def _check_xpath(expression: str, place: str) -> None:
    from lxml import etree, html

    try:
        etree.XPath(expression)(html.fromstring("<p>x"))
    except (etree.XPathError, ValueError) as error:
        action = "Write XPath 1.0, for instance '//h1/text()'."
        raise Misuse(f"{expression!r} is no XPath: {error}", place=place, action=action) from None


def _check_jsonld(expression: str, place: str) -> None:
    if not _JSONLD.fullmatch(expression):
        action = "Write names with dots between them: 'Product.offers.price'."
        raise Misuse(f"{expression!r} is no JSON-LD path", place=place, action=action)


def _check_name(expression: str, place: str) -> None:
    """Any text is a name."""


_CHECKS = {
    "css": check_css,
    "xpath": _check_xpath,
    "jmes": check_jmes,
    "meta": _check_name,
    "jsonld": _check_jsonld,
    "names": _check_name,
}

"""Selectors at work: from a selector and a page, or a part of one, to raw values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from lxml import etree
from selectolax.lexbor import LexborNode

from recrawl.declare.selectors import CssPath, split_css
from recrawl.declare.specs import Selector
from recrawl.extract.document import Document, parse_lxml
from recrawl.extract.jsonld import values_at
from recrawl.extract.text import text_of_lxml

_css_path: Callable[[str], CssPath] = lru_cache(4096)(split_css)
_jmes = lru_cache(4096)(jmespath.compile)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where one record is looked for: a page, an element of it, or a value in its JSON.

    meta and jsonld are always those of the whole page.
    """

    document: Document
    element: LexborNode | None = None
    part: list[Any] | None = None  # one value, in a list since null is one too

    @property
    def parts(self) -> list[Any]:
        return self.document.embedded if self.part is None else self.part


def select(selector: Selector, scope: Scope, *, first: bool = False) -> list[Any]:
    """The raw values that a selector finds, in order; with `first`, more than the first need not be looked for."""
    return _KINDS[selector.kind](selector.exprs, scope, first)


def _css(exprs: tuple[str, ...], scope: Scope, first: bool) -> list[Any]:
    path = _css_path(exprs[0])
    root = scope.element or scope.document.root
    nodes: list[LexborNode]
    if not path.css:
        nodes = [root]
    elif first and path.attribute is None:
        node = root.css_first(path.css)
        nodes = [] if node is None else [node]
    else:
        nodes = root.css(path.css)
    if path.attribute is None:
        return [scope.document.text_of(node) for node in nodes]
    # An attribute without a value is an empty one.
    found = (node.attributes for node in nodes)
    return [given[path.attribute] or "" for given in found if path.attribute in given]


def _xpath(exprs: tuple[str, ...], scope: Scope, first: bool) -> list[Any]:
    root: etree._Element | None
    if scope.element is None:
        root = scope.document.lxml_root
    else:
        root = _part_of_lxml(scope)
    if root is None:
        return []
    found = _compiled_xpath(exprs[0])(root)
    values = found if isinstance(found, list) else [found]
    return [_plain(value) for value in values[: 1 if first else None] if not isinstance(value, tuple)]


@cache
def _compiled_xpath(expression: str) -> etree.XPath:
    return etree.XPath(expression, smart_strings=False)


def _part_of_lxml(scope: Scope) -> etree._Element | None:
    """The part as a tree of its own, so that `//` cannot leave it."""
    assert scope.element is not None
    _ = scope.document.lxml_text  # a page within bounds has parts within bounds
    tree = parse_lxml(f"<recrawl-part>{scope.element.html or ''}</recrawl-part>")
    return None if tree is None else tree.find(".//recrawl-part/*")


def _plain(value: Any) -> Any:
    if isinstance(value, etree._Element):
        return text_of_lxml(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _jmespath(exprs: tuple[str, ...], scope: Scope, first: bool) -> list[Any]:
    for part in scope.parts:
        found = search_jmes(exprs[0], part)
        if found is not None:
            return found if isinstance(found, list) else [found]
    return []


def search_jmes(expression: str, value: Any) -> Any:
    """What a JMESPath finds, or None; a function applied to what it cannot take finds nothing."""
    try:
        return _jmes(expression).search(value)
    except (JMESPathError, RecursionError, TypeError, ValueError, ArithmeticError):
        return None


def _meta(exprs: tuple[str, ...], scope: Scope, first: bool) -> list[Any]:
    return scope.document.metas.get(exprs[0].strip().lower(), [])


def _jsonld(exprs: tuple[str, ...], scope: Scope, first: bool) -> list[Any]:
    return values_at(scope.document.jsonld, exprs[0])


def _names(exprs: tuple[str, ...], scope: Scope, first: bool) -> list[Any]:
    """The first that holds something; where none does, the first that is there."""
    there = [part[name] for part in scope.parts if isinstance(part, dict) for name in exprs if name in part]
    held = [value for value in there if value is not None and not (isinstance(value, str) and not value.strip())]
    for value in held or there:
        return value if isinstance(value, list) else [value]
    return []


_KINDS: dict[str, Callable[[tuple[str, ...], Scope, bool], list[Any]]] = {
    "css": _css,
    "xpath": _xpath,
    "jmes": _jmespath,
    "meta": _meta,
    "jsonld": _jsonld,
    "names": _names,
}

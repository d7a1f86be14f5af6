"""Declarations in TOML: the same names as in Python, ending in the same classes."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from types import new_class
from typing import Any

from recrawl.declare.annotations import parse_type, read_type
from recrawl.declare.api import Api
from recrawl.declare.article import Article
from recrawl.declare.checks import no_others, pattern, suggestion
from recrawl.declare.fields import MISSING, SELECTORS, Field
from recrawl.declare.finders import Auto, Derived, Feed, Finder, Links, Listing, Sitemap, Urls
from recrawl.declare.planned import Keywords, refuse_planned
from recrawl.declare.policies import Adaptive, Budget, Deletion, Failing, Identity, Pace
from recrawl.declare.record import Record
from recrawl.declare.source import Source
from recrawl.declare.specs import Kind, Selector
from recrawl.declare.toml_api import read_api, read_auth
from recrawl.errors import Misuse
from recrawl.model.values import Price

_FINDERS: dict[str, type[Any]] = {
    cls.__name__.lower(): cls for cls in (Sitemap, Feed, Urls, Auto, Listing, Links, Api, Keywords, Derived)
}
_POLICIES: dict[str, type] = {
    "revisit": Adaptive,
    "identity": Identity,
    "pace": Pace,
    "budget": Budget,
    "deletion": Deletion,
    "failing": Failing,
}
_RECORD_KEYS = ("table", "key", "each", "history", "updated", "version")
_SOURCE_KEYS = tuple(item.name for item in fields(Source) if item.name != "name")


def read_toml(data: bytes) -> list[Source]:
    """The sources of a TOML text. Raises Misuse with the path of what is wrong: `record.Book.fields.upc`."""
    try:
        document = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        action = "Correct it there; see toml.io for the form."
        raise Misuse(f"this is no TOML: {error}", action=action) from None
    no_others(document, ("record", "source"), "")
    records: dict[str, type[Record]] = {"Article": Article}
    for name, table in _tables(document, "record", "record"):
        records[name] = _record(name, table, f"record.{name}")
    return [_source(name, table, records, f"source.{name}") for name, table in _tables(document, "source", "source")]


def _tables(parent: dict[str, Any], key: str, place: str) -> list[tuple[str, dict[str, Any]]]:
    """The named tables under a key."""
    found = _table(parent.get(key, {}), place)
    return [(name, _table(value, f"{place}.{name}")) for name, value in found.items()]


def _table(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misuse(f"{value!r} is no table", place=place, action=f"Write [{place}], or {{ name = value }}.")
    return value


def _record(name: str, table: dict[str, Any], place: str) -> type[Record]:
    if name == "Article" or not name.isidentifier():
        action = "Write a name such as Book; Article is there already."
        raise Misuse(f"{name!r} is no name for a record of yours", place=place, action=action)
    no_others(table, (*_RECORD_KEYS, "fields"), place)
    namespace: dict[str, Any] = {"__annotations__": {}}
    for field, given in _tables(table, "fields", f"{place}.fields"):
        where = f"{place}.fields.{field}"
        annotation = _annotation(given, where)
        namespace["__annotations__"][field] = annotation
        namespace[field] = _field(given, read_type(annotation, where).kind, where)
    options = {key: table[key] for key in _RECORD_KEYS if key in table}
    return new_class(name, (Record,), options, lambda body: body.update(namespace))


def _annotation(given: dict[str, Any], place: str) -> Any:
    no_others(given, ("type", *SELECTORS, "default"), place)
    text = given.get("type")
    if not isinstance(text, str):
        raise Misuse("the field has no type", place=place, action='Write for instance type = "str".')
    return parse_type(text, f"{place}.type")


def _field(given: dict[str, Any], kind: Kind, place: str) -> Field:
    kinds = [key for key in given if key in SELECTORS]
    if len(kinds) > 1:
        raise Misuse(f"{' and '.join(kinds)} at once", place=place, action="Write one selector.")
    default = given.get("default", MISSING)
    if isinstance(default, list):
        default = [_value(item, kind, place) for item in default]
    else:
        default = _value(default, kind, place)
    if not kinds:
        return Field(None, default)
    expressions = given[kinds[0]]
    several = isinstance(expressions, list) and kinds[0] == "names"
    return Field(Selector(kinds[0], tuple(expressions) if several else (expressions,)), default)


def _value(default: Any, kind: Kind, place: str) -> Any:
    """A default; TOML writes a price as `{ amount = "9.99", currency = "GBP" }`."""
    if kind is not Kind.PRICE or not isinstance(default, dict):
        return default
    no_others(default, ("amount", "currency"), f"{place}.default")
    try:
        return Price(Decimal(str(default.get("amount"))), default.get("currency"))
    except InvalidOperation:
        action = 'Write for instance { amount = "9.99", currency = "GBP" }.'
        raise Misuse(f"{default!r} is no price", place=f"{place}.default", action=action) from None


def _source(name: str, table: dict[str, Any], records: dict[str, type[Record]], place: str) -> Source:
    no_others(table, _SOURCE_KEYS, place)
    if "find" not in table and "read" not in table:
        action = 'Write for instance find = { sitemap = "https://..." }, or only read = for records that are pushed.'
        raise Misuse("the source has no find", place=place, action=action)
    options = dict(table)
    if "auth" in options:
        options["auth"] = read_auth(options["auth"], f"{place}.auth")
    if "find" in options:
        options["find"] = _find(options["find"], f"{place}.find")
    if "page_id" in options:
        options["page_id"] = _page_id(options["page_id"], f"{place}.page_id")
    for key, cls in _POLICIES.items():
        if key in options:
            options[key] = _policy(cls, options[key], f"{place}.{key}")
    if "read" in options:
        options["read"] = _read(options["read"], records, f"{place}.read")
    return Source(name, **options)


def _policy(cls: type, value: Any, place: str) -> Any:
    table = _table(value, place)
    no_others(table, (item.name for item in fields(cls)), place)
    return cls(**table)


def _find(value: Any, place: str) -> Finder | list[Finder]:
    if isinstance(value, list):
        return [_finder(_table(item, f"{place}[{number}]"), f"{place}[{number}]") for number, item in enumerate(value)]
    return _finder(_table(value, place), place)


def _finder(table: dict[str, Any], place: str) -> Finder:
    named = {key: _options(_FINDERS[key]) for key in table if key in _FINDERS}
    # `links` is a finder, and what a listing links to.
    kinds = [key for key in named if not any(key in options for options in named.values())]
    if len(kinds) != 1:
        action = suggestion(next(iter(table), ""), _FINDERS)
        raise Misuse(f"{table!r} names {len(kinds) or 'no'} finders", place=place, action=f"Write one. {action}")
    cls = _FINDERS[kinds[0]]
    refuse_planned(cls, place)
    others = {key: value for key, value in table.items() if key != kinds[0]}
    no_others(others, _options(cls), place)
    finder: Finder = cls(table[kinds[0]], **(read_api(others, place) if cls is Api else others))
    return finder


def _options(cls: type[Any]) -> list[str]:
    return [item.name for item in fields(cls) if item.kw_only]


def _page_id(value: Any, place: str) -> Any:
    """The name of a field, several, or `{ match = '/a-(\\d+)' }` for the URL."""
    if not isinstance(value, dict):
        return value
    no_others(value, ("match",), place)
    return pattern(value.get("match", ""), f"{place}.match")


def _read(value: Any, records: dict[str, type[Record]], place: str) -> Any:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name not in records:
            action = suggestion(str(name), records)
            raise Misuse(f"{name!r} is no record of this file", place=place, action=action)
    found = [records[name] for name in names]
    return found if isinstance(value, list) else found[0]

"""What a declared record means, in a form that readers, cleaning and the store share.

`Record` subclasses and TOML tables both end here, so that nothing above `declare` looks at annotations again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The type of one value."""

    STR = "str"  # text, trimmed
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    DECIMAL = "Decimal"
    PRICE = "Price"  # columns x_amount, x_currency
    MOMENT = "Moment"  # columns x (UTC instant, first instant of what is known), x_precision, x_text
    COUNT = "Count"  # int out of texts such as 1.2万+
    STOCK = "Stock"
    URL = "Url"  # canonical URL
    TEXT = "Text"  # HTML stripped, white space and width normalised


@dataclass(frozen=True, slots=True)
class Selector:
    """Where a raw value stands.

    `kind` is css, xpath, jmes, meta, jsonld or names; `exprs` has one item, but for names.
    """

    kind: str
    exprs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a record."""

    name: str
    kind: Kind
    optional: bool = False  # `| None`
    many: bool = False  # list[T]
    volatile: bool = False  # stored, makes no version
    selector: Selector | None = None  # None: the raw field of that name
    has_default: bool = False
    default: object = None


@dataclass(frozen=True, slots=True)
class RecordSpec:
    """One record type: a table, a key and fields. `key` names fields; `each` is a CSS selector or JMESPath of the parts
    of a page that hold one record each; `updated` and `version` name the fields that order versions."""

    name: str
    table: str
    key: tuple[str, ...]
    fields: tuple[FieldSpec, ...]
    each: str | None = None
    history: bool = False
    updated: str | None = None
    version: str | None = None

    def field(self, name: str) -> FieldSpec:
        return next(spec for spec in self.fields if spec.name == name)


class ColumnType(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"
    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    INSTANT = "instant"
    JSON = "json"


_SINGLE = {
    Kind.STR: ColumnType.TEXT,
    Kind.INT: ColumnType.INTEGER,
    Kind.FLOAT: ColumnType.REAL,
    Kind.BOOL: ColumnType.BOOLEAN,
    Kind.DECIMAL: ColumnType.NUMERIC,
    Kind.COUNT: ColumnType.INTEGER,
    Kind.STOCK: ColumnType.TEXT,
    Kind.URL: ColumnType.TEXT,
    Kind.TEXT: ColumnType.TEXT,
}


def columns(spec: FieldSpec) -> tuple[tuple[str, ColumnType], ...]:
    """The columns that a field has in its record's table, in order."""
    if spec.many:
        return ((spec.name, ColumnType.JSON),)
    if spec.kind is Kind.PRICE:
        return ((f"{spec.name}_amount", ColumnType.NUMERIC), (f"{spec.name}_currency", ColumnType.TEXT))
    if spec.kind is Kind.MOMENT:
        return (
            (spec.name, ColumnType.INSTANT),
            (f"{spec.name}_precision", ColumnType.TEXT),
            (f"{spec.name}_text", ColumnType.TEXT),
        )
    return ((spec.name, _SINGLE[spec.kind]),)

"""From a field's type, as an annotation or as text, to what it means."""

from __future__ import annotations

import ast
import types
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Union, get_args, get_origin

from recrawl.declare.checks import suggestion
from recrawl.declare.specs import Kind
from recrawl.declare.values import VOLATILE, Count, Moment, Price, Stock, Text, Url
from recrawl.errors import Misuse

TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "Decimal": Decimal,
    "Price": Price,
    "Moment": Moment,
    "Count": Count,
    "Stock": Stock,
    "Url": Url,
    "Text": Text,
}
_KINDS = {value: Kind(name) for name, value in TYPES.items() if isinstance(value, type)}
_SHAPES = ("list[T]", "T | None", "Volatile[T]")


@dataclass(frozen=True, slots=True)
class FieldType:
    kind: Kind
    optional: bool = False
    many: bool = False
    volatile: bool = False


def read_type(annotation: Any, place: str) -> FieldType:
    """What an annotation means. Raises Misuse for a type that no column can hold."""
    volatile = optional = many = False
    inner = annotation
    while True:
        origin, args = get_origin(inner), get_args(inner)
        if origin is Annotated and VOLATILE in args[1:]:
            volatile, inner = True, args[0]
        elif origin in (Union, types.UnionType) and type(None) in args and len(args) == 2 and not many:
            optional, inner = True, next(arg for arg in args if arg is not type(None))
        elif (origin is list or inner is list) and not many:
            many, inner = True, args[0] if args else str
        else:
            break
    if origin is Annotated and isinstance(args[1], Kind):
        return FieldType(args[1], optional, many, volatile)
    if isinstance(inner, type) and inner in _KINDS:
        return FieldType(_KINDS[inner], optional, many, volatile)
    raise _unknown(getattr(inner, "__name__", None) or str(inner), place, inner in (datetime, date))


def _unknown(name: str, place: str, is_time: bool = False) -> Misuse:
    action = "Write Moment: it says how much of a time is known." if is_time else suggestion(name, [*TYPES, *_SHAPES])
    return Misuse(f"{name!r} is no type of a field", place=place, action=action)


def parse_type(text: str, place: str) -> Any:
    """The annotation that a text such as `"Volatile[int | None]"` spells. Nothing in it is ever run."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _unknown(text, place) from None
    return _annotation(tree, text, place)


def _annotation(node: ast.expr, text: str, place: str) -> Any:
    match node:
        case ast.Name(id=name) if name in TYPES:
            return TYPES[name]
        case ast.Constant(value=None):
            return None
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return Union[_annotation(left, text, place), _annotation(right, text, place)]  # noqa: UP007
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return list[_annotation(item, text, place)]  # type: ignore[misc]
        case ast.Subscript(value=ast.Name(id="Volatile"), slice=item):
            return Annotated[_annotation(item, text, place), VOLATILE]
        case ast.Name(id=name):
            raise _unknown(name, place, name in ("datetime", "date"))
    raise _unknown(text, place)

"""Records: what a user declares as a class, and the spec that comes of it."""

from __future__ import annotations

import inspect
import re
import sys
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, ForwardRef, dataclass_transform, get_origin

from recrawl.declare.annotations import FieldType, read_type
from recrawl.declare.checks import conform, suggestion
from recrawl.declare.fields import MISSING, Field, css, jmes, jsonld, meta, names, xpath
from recrawl.declare.selectors import check_css, check_jmes, check_selector, each_is_css
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec, columns
from recrawl.errors import Misuse
from recrawl.model.values import Moment, Price, Stock

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST_TABLE = 48  # PostgreSQL cuts names at 63, and `_history` and index names must fit
_LONGEST_FIELD = 50
_MOST_FIELDS = 500

OWN_TABLES = frozenset(
    [
        "sources",
        "pages",
        "aliases",
        "documents",
        "members",
        "versions",
        "yields",
        "bodies",
        "tasks",
        "batches",
        "batch_tasks",
        "cursors",
        "cycles",
        "runs",
        "dead_letters",
        "charges",
        "events",
        "hosts",
        "counters",
        "tokens",
        "pushes",
        "page_view",
        "version_view",
        "alembic_version",
    ]
)

_OPTIONS: dict[str, Any] = {
    "table": str,
    "key": str | tuple[str, ...],
    "each": str | None,
    "history": bool,
    "updated": str | None,
    "version": str | None,
}


@dataclass_transform(kw_only_default=True, field_specifiers=(css, xpath, jmes, meta, jsonld, names))
class Record:
    """One kind of row that pages hold.

    `table` and `key` (a field, or several) say where rows go and what makes one; `each` is a CSS selector or JMESPath
    of the parts of a page that hold one record each; `history` keeps a view of former values; `updated` and `version`
    name the fields by which the source orders its versions.
    """

    __spec__: ClassVar[RecordSpec]

    def __init_subclass__(
        cls,
        *,
        table: str = "",
        key: str | tuple[str, ...] = (),
        each: str | None = None,
        history: bool = False,
        updated: str | None = None,
        version: str | None = None,
    ) -> None:
        place = f"record.{cls.__name__}"
        # One frame up is the class statement: names that its annotations use may be local there.
        frame = sys._getframe(1)
        inherited = getattr(cls, "__spec__", None)
        fields = {spec.name: spec for spec in inherited.fields} if isinstance(inherited, RecordSpec) else {}
        fields |= _own_fields(cls, frame.f_globals, frame.f_locals, place)
        options = {
            "table": table,
            "key": key,
            "each": each,
            "history": history,
            "updated": updated,
            "version": version,
        }
        cls.__spec__ = _make_spec(cls.__name__, tuple(fields.values()), options)

    def __init__(self, **values: Any) -> None:
        spec = self.__spec__
        for name in values:
            if name not in (known := [field.name for field in spec.fields]):
                raise TypeError(f"{spec.name} has no field {name!r}. {suggestion(name, known)}")
        for field in spec.fields:
            if field.name in values:
                value = values[field.name]
            elif field.has_default or field.optional:
                value = list(field.default) if isinstance(field.default, tuple) else field.default
            else:
                raise TypeError(f"{spec.name} needs a value for {field.name!r}")
            setattr(self, field.name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def _own_fields(cls: type, module: dict[str, Any], local: Any, place: str) -> dict[str, FieldSpec]:
    annotations = inspect.get_annotations(cls)
    for name, value in list(vars(cls).items()):
        if isinstance(value, Field) and name not in annotations:
            action = f"Write for instance `{name}: str = ...`."
            raise Misuse(f"the field {name!r} has no type", place=f"{place}.fields.{name}", action=action)
    found = {}
    for name, annotation in annotations.items():
        where = f"{place}.fields.{name}"
        resolved = _resolve(annotation, module, local, where)
        if resolved is ClassVar or get_origin(resolved) is ClassVar:
            continue
        given = cls.__dict__.get(name, MISSING)
        field = given if isinstance(given, Field) else Field(None, given)
        found[name] = _make_field(name, read_type(resolved, where), field, where)
        if given is not MISSING:
            delattr(cls, name)
    return found


def _resolve(annotation: Any, module: dict[str, Any], local: Any, place: str) -> Any:
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, module, dict(local))
    except Exception as error:
        action = "Import the type, or correct its name."
        raise Misuse(f"the type {annotation!r} is not known: {error}", place=place, action=action) from None


def _make_field(name: str, kind: FieldType, field: Field, place: str) -> FieldSpec:
    """A field's spec. Raises Misuse for a name, a selector or a default that cannot be."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_FIELD:
        action = f"Write letters, digits and _, at most {_LONGEST_FIELD}, a letter first."
        raise Misuse(f"{name!r} is no name of a field", place=place, action=action)
    if field.selector is not None:
        check_selector(field.selector, place)
    has_default = field.default is not MISSING
    default = _default(kind, field.default, place) if has_default else None
    return FieldSpec(name, kind.kind, kind.optional, kind.many, kind.volatile, field.selector, has_default, default)


_PLAIN: dict[Kind, tuple[type[Any], ...]] = {
    Kind.INT: (int,),
    Kind.COUNT: (int,),
    Kind.FLOAT: (float, int),
    Kind.BOOL: (bool,),
    Kind.DECIMAL: (Decimal, int, str),
    Kind.PRICE: (Price,),
    Kind.MOMENT: (Moment,),
    Kind.STOCK: (Stock, str),
}


def _default(kind: FieldType, value: Any, place: str) -> Any:
    if value is None and kind.optional:
        return None
    if not kind.many:
        return _default_item(kind.kind, value, place)
    if not isinstance(value, (list, tuple)):
        raise Misuse(f"the default {value!r} is no list", place=place, action="Write default=[...].")
    return tuple(_default_item(kind.kind, item, place) for item in value)


def _default_item(kind: Kind, value: Any, place: str) -> Any:
    fitting: tuple[type[Any], ...] = _PLAIN.get(kind, (str,))
    if isinstance(value, fitting) and (kind is Kind.BOOL or not isinstance(value, bool)):
        try:
            return Decimal(value) if kind is Kind.DECIMAL else Stock(value) if kind is Kind.STOCK else value
        except (InvalidOperation, ValueError):
            pass
    none = " or make the type `| None`" if value is None else ""
    raise Misuse(f"the default {value!r} is no {kind}", place=place, action=f"Write a default of that type{none}.")


def _make_spec(name: str, fields: tuple[FieldSpec, ...], options: dict[str, Any]) -> RecordSpec:
    """A record's spec. Raises Misuse for what a table could not hold, and for names that are no fields."""
    place = f"record.{name}"
    for option, hint in _OPTIONS.items():
        options[option] = conform(options[option], hint, f"{place}.{option}")
    table, each = options["table"], options["each"]
    keys = (options["key"],) if isinstance(options["key"], str) else tuple(options["key"])
    _check_table(table, place)
    _check_columns(fields, place)
    known = [field.name for field in fields]
    if not keys:
        action = f"Say which field makes a row: key={known[0]!r}." if known else "Declare fields, and say key=."
        raise Misuse("there is no key", place=f"{place}.key", action=action)
    for role, named in (*(("key", item) for item in keys), *((role, options[role]) for role in ("updated", "version"))):
        if named is not None and named not in known:
            raise Misuse(f"{named!r} is no field", place=f"{place}.{role}", action=suggestion(str(named), known))
    spec = RecordSpec(name, table, keys, fields, each, options["history"], options["updated"], options["version"])
    for item in keys:
        field = spec.field(item)
        if field.optional or field.many or field.volatile:
            action = "A key is one value that is always there and never changes."
            raise Misuse(f"{item!r} cannot be a key", place=f"{place}.key", action=action)
    if each is not None:
        (check_css if each_is_css(spec) else check_jmes)(each, f"{place}.each")
    return spec


def _check_table(table: str, place: str) -> None:
    place = f"{place}.table"
    if not table:
        raise Misuse("there is no table", place=place, action='Say where rows go: table="books".')
    if not _NAME.fullmatch(table) or len(table) > _LONGEST_TABLE:
        action = f"Write letters, digits and _, at most {_LONGEST_TABLE}, a letter first."
        raise Misuse(f"{table!r} is no name of a table", place=place, action=action)
    if table.lower() in OWN_TABLES or table.lower().endswith("_history"):
        raise Misuse(f"the name {table!r} is taken by recrawl", place=place, action="Choose another name.")


def _check_columns(fields: tuple[FieldSpec, ...], place: str) -> None:
    if len(fields) > _MOST_FIELDS:
        action = f"Keep to {_MOST_FIELDS}."
        raise Misuse(f"{len(fields)} fields are more than a table can hold", place=f"{place}.fields", action=action)
    taken: dict[str, str] = {}
    for field in fields:
        for column, _ in columns(field):
            # Column names fold case in SQLite.
            other = taken.setdefault(column.lower(), field.name)
            if other != field.name:
                action = "Rename one: a Price x has columns x_amount and x_currency, a Moment x, x_precision, x_text."
                problem = f"the fields {other!r} and {field.name!r} share the column {column!r}"
                raise Misuse(problem, place=f"{place}.fields.{field.name}", action=action)

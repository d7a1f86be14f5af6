"""Dicts to records: the only way from what a reader found to what the store keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import orjson
from pydantic_core import SchemaValidator, ValidationError, core_schema

from recrawl.clean.form import form
from recrawl.clean.plain import storable
from recrawl.clean.values import CleanContext, as_columns, blank_is_missing, schema
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec, columns
from recrawl.model.record import FieldError, Json, RecordRow

__all__ = ["CleanContext", "clean_record", "clean_records"]

_LONGEST_KEY = 1_000
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class _Field:
    spec: FieldSpec
    sources: tuple[str, ...]  # raw names, the first that holds a value counts
    columns: tuple[str, ...]
    blank_is_missing: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """A record spec made ready: building the validator takes longer than cleaning a thousand records."""

    spec: RecordSpec
    fields: tuple[_Field, ...]
    validator: SchemaValidator
    volatile: frozenset[str]
    key_columns: tuple[str, ...]


# By identity, since hashing a spec costs as much as cleaning a record; the plan keeps its spec alive, so no id returns.
_plans: dict[int, _Plan] = {}


def _plan(spec: RecordSpec) -> _Plan:
    plan = _plans.get(id(spec))
    if plan is None:
        if len(_plans) > 1_000:
            _plans.clear()
        plan = _plans[id(spec)] = _make_plan(spec)
    return plan


def _make_plan(spec: RecordSpec) -> _Plan:
    fields = []
    volatile: set[str] = set()
    schemas = {}
    for each in spec.fields:
        names = tuple(name for name, _ in columns(each))
        aliases = each.selector.exprs if each.selector and each.selector.kind == "names" else ()
        fields.append(_Field(each, (*aliases, each.name), names, blank_is_missing(each)))
        if each.volatile:
            volatile.update(names)
        elif each.kind is Kind.MOMENT and not each.many:
            volatile.add(f"{each.name}_text")  # how a time is worded is not the time
        schemas[each.name] = core_schema.typed_dict_field(schema(each), required=not each.optional)
    first = {each.spec.name: each.columns[0] for each in fields}
    return _Plan(
        spec,
        tuple(fields),
        SchemaValidator(core_schema.typed_dict_schema(schemas)),
        frozenset(volatile),
        tuple(first[name] for name in spec.key),
    )


def clean_record(spec: RecordSpec, raw: Mapping[str, object], context: CleanContext) -> RecordRow | list[FieldError]:
    """The row that a raw dict makes, or everything that is wrong with it.

    A field is looked up under its aliases (`names(...)`) and its own name; null and absent are the same, and so is an
    empty text where the field is no text: the default stands, or null for an optional field, or the error `missing`.
    Raw names that the record does not declare are ignored.
    """
    plan = _plan(spec)
    given: dict[str, object] = {}
    for each in plan.fields:
        value = _lookup(each, raw)
        if value is not None:
            given[each.spec.name] = value
    try:
        values = plan.validator.validate_python(given, context=context)
    except ValidationError as error:
        return _errors(error)
    data: dict[str, Json] = {}
    for each in plan.fields:
        value = values.get(each.spec.name)
        if value is None:
            data.update(dict.fromkeys(each.columns))
        else:
            data.update(zip(each.columns, as_columns(each.spec, value), strict=True))
    key = _key(plan, data)
    if isinstance(key, FieldError):
        return [key]
    return RecordRow(spec.table, key, data, plan.volatile)


def _lookup(field: _Field, raw: Mapping[str, object]) -> object:
    for source in field.sources:
        value = raw.get(source)
        if value is not None and not (field.blank_is_missing and isinstance(value, str) and not value.strip()):
            return value
    return field.spec.default if field.spec.has_default else None


def _errors(error: ValidationError) -> list[FieldError]:
    return [
        FieldError(
            field=str(each["loc"][0]),
            kind=each["type"],
            message=storable(each["msg"])[:_SHOWN],
            value="" if each["type"] == "missing" else _shown(each["input"]),
            form="" if each["type"] == "missing" else storable(form(each["input"])),
        )
        for each in error.errors(include_url=False, include_context=False)
    ]


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length():,} bits"
    text = value[:_SHOWN] if isinstance(value, str) else repr(value)
    return storable(text[:_SHOWN])


def _key(plan: _Plan, data: Mapping[str, Json]) -> str | FieldError:
    parts = [data[column] for column in plan.key_columns]
    for name, part in zip(plan.spec.key, parts, strict=True):
        if part is None or part == "":
            return FieldError(name, "missing", "a key field without a value")
    text = str(parts[0]) if len(parts) == 1 else orjson.dumps(parts).decode()
    if len(text) > _LONGEST_KEY:
        where = ",".join(plan.spec.key)
        return FieldError(where, "too_long", f"a key of more than {_LONGEST_KEY:,} characters", text[:_SHOWN])
    return text


def clean_records(
    rows: Iterable[tuple[RecordSpec, Mapping[str, object]]], context: CleanContext
) -> tuple[list[RecordRow], list[FieldError]]:
    """All records of one page, in order, and all that is wrong with them.

    Rows with the same table, key and business content are one row. Where the content differs, none of them can be
    chosen: neither is returned, and the error `duplicate_key` says so.
    """
    found: dict[tuple[str, str], RecordRow] = {}
    clashing: dict[tuple[str, str], FieldError] = {}
    errors: list[FieldError] = []
    for number, (spec, raw) in enumerate(rows, 1):
        row = clean_record(spec, raw, context)
        if isinstance(row, list):
            errors += (replace(each, message=f"{spec.name} {number}: {each.message}") for each in row)
            continue
        place = (row.table, row.key)
        known = found.setdefault(place, row)
        if known is not row and _business(known) != _business(row):
            message = f"{spec.name} {number}: another record of this page has this key and other values"
            clashing.setdefault(place, FieldError(",".join(spec.key), "duplicate_key", message, row.key[:_SHOWN]))
    errors += clashing.values()
    return [row for place, row in found.items() if place not in clashing], errors


def _business(row: RecordRow) -> dict[str, Json]:
    return {name: value for name, value in row.data.items() if name not in row.volatile}

"""Drift: when a field starts to fail for most records of a source, which new raw field looks like it?

Raw records that fail are compared with raw records that were read well not long before. A raw field that came with the
failures is a candidate if its values can be read as the field that is missing; names and values say which is likeliest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from statistics import median

from recrawl.clean.form import form
from recrawl.clean.records import clean_record
from recrawl.clean.values import CleanContext
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec
from recrawl.model.record import RecordRow

READABLE = 0.9
"""A raw field whose values can be read in a smaller share of the failing records is no candidate."""

_DEEPEST = 3
_MOST_NAMES = 500
_RARE = 0.05
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A raw field that may be the missing one. All shares are from 0 to 1.

    `raw` is its name, dotted where it is nested; `parses` is the share of failing records in which it can be read as
    the field; `is_new` tells that records which were read well did not have it; `name_likeness` and `value_likeness`
    compare it with the field's names and with what the field held before.
    """

    raw: str
    field: str
    parses: float
    is_new: bool
    name_likeness: float
    value_likeness: float

    @property
    def score(self) -> float:
        return self.parses * (0.4 * self.name_likeness + 0.4 * self.value_likeness + 0.2 * self.is_new)


def candidates(
    spec: RecordSpec,
    field: str,
    failing: Sequence[Mapping[str, object]],
    good: Sequence[Mapping[str, object]],
    context: CleanContext,
) -> list[Candidate]:
    """Raw fields that could be `field` of the failing records, the likeliest first.

    A raw field that the record declares for another field, or that good records have had all along beside the one that
    is missing, is none. Without `good` every undeclared raw field is taken for a new one.
    """
    if not failing:
        return []
    wanted, alone = spec.field(field), _alone(spec.field(field))
    declared = {name for each in spec.fields for name in (each.name, *_aliases(each))}
    flat = [dict(_flat(raw)) for raw in failing]
    before = [dict(_flat(raw)) for raw in good]
    names = sorted({name for raw in flat for name in raw} - declared)[:_MOST_NAMES]
    known = [value for raw in before if (value := _first(raw, (*_aliases(wanted), wanted.name))) is not None]
    found = []
    for name in names:
        if before and sum(name in raw for raw in before) > _RARE * len(before):
            continue
        values = [raw[name] for raw in flat if raw.get(name) is not None]
        read = (clean_record(alone, {"id": 1, "value": value}, context) for value in values)
        parses = sum(isinstance(row, RecordRow) for row in read) / len(flat)
        if parses >= READABLE:
            likeness = max(name_likeness(name, other) for other in (wanted.name, *_aliases(wanted)))
            found.append(Candidate(name, field, parses, bool(before), likeness, value_likeness(values, known)))
    return sorted(found, key=lambda each: (-each.score, each.raw))


def name_likeness(one: str, other: str) -> float:
    """How alike two names are: by the words that they share (`salePrice`, `price`), else by their letters."""
    here, there = _words(one), _words(other)
    letters = SequenceMatcher(None, "".join(here), "".join(there)).ratio()
    if not here or not there:
        return letters
    shared = len(set(here) & set(there)) / min(len(set(here)), len(set(there)))
    return max(letters, 0.9 * shared)


def value_likeness(values: Iterable[object], known: Iterable[object]) -> float:
    """How alike two sets of values are: by the forms in which they are written and, for numbers, by their size."""
    here, there = list(values), list(known)
    if not here or not there:
        return 0.0
    forms = {form(value) for value in there}
    same_form = sum(form(value) in forms for value in here) / len(here)
    sizes = [number for value in here if (number := _number(value)) is not None]
    before = [number for value in there if (number := _number(value)) is not None]
    if not sizes or not before:
        return same_form
    apart = abs(math.log10(1 + median(sizes)) - math.log10(1 + median(before)))
    return (same_form + max(0.0, 1.0 - apart)) / 2


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _aliases(spec: FieldSpec) -> tuple[str, ...]:
    return spec.selector.exprs if spec.selector and spec.selector.kind == "names" else ()


def _first(raw: Mapping[str, object], names: Iterable[str]) -> object:
    return next((raw[name] for name in names if raw.get(name) is not None), None)


def _flat(raw: Mapping[str, object], above: str = "", depth: int = 1) -> Iterator[tuple[str, object]]:
    for name, value in raw.items():
        if isinstance(value, Mapping) and depth < _DEEPEST:
            yield from _flat(value, f"{above}{name}.", depth + 1)
        elif isinstance(name, str):
            yield f"{above}{name}", value


def _alone(field: FieldSpec) -> RecordSpec:
    """A record of this field only, in which it must have a value."""
    value = replace(field, name="value", optional=False, has_default=False, selector=None)
    return RecordSpec("Value", "value", ("id",), (FieldSpec("id", Kind.INT), value))


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return abs(float(value)) if math.isfinite(value) else None
    if isinstance(value, str) and (digits := re.search(r"\d[\d,]*(?:\.\d+)?", value)):
        return float(digits[0].replace(",", "")[:30])
    return None

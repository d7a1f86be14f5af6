"""What differs between two looks at the same pages, seconds apart: fields that say something new at every look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recrawl.declare.specs import FieldSpec, RecordSpec, columns
from recrawl.model.record import Json, RecordRow


@dataclass(frozen=True, slots=True)
class Restless:
    """A field that differed on `differing` of `pages` pages, with one example. `proposal` is the type to declare it
    with; None for a part of the key, which cannot be volatile."""

    record: str
    field: str
    differing: int
    pages: int
    before: Json
    after: Json
    proposal: str | None


Looks = tuple[Sequence[RecordRow], Sequence[RecordRow]]


def restless(specs: Iterable[RecordSpec], pages: Sequence[Looks]) -> list[Restless]:
    """The fields that differ between two looks, each page's first and second rows given; volatile ones left out.

    Rows are matched by key, and where a page has one row of a table at each look by that.
    """
    found = (_of_field(spec, field, pages) for spec in specs for field in spec.fields if not field.volatile)
    return sorted((one for one in found if one), key=lambda one: (-one.differing, one.record, one.field))


def _of_field(spec: RecordSpec, field: FieldSpec, pages: Sequence[Looks]) -> Restless | None:
    # The wording of a time is no content.
    names = [name for name, _ in columns(field) if not name.endswith("_text")]
    pairs: list[tuple[Json, Json]] = []
    for looks in pages:
        for before, after in _matched(spec, looks):
            one, two = ([row.data.get(name) for name in names] for row in (before, after))
            if one != two:
                pairs.append((one[0], two[0]))
                break
    if not pairs:
        return None
    proposal = None if field.name in spec.key else f"Volatile[{spelled(field)}]"
    return Restless(spec.name, field.name, len(pairs), len(pages), *pairs[0], proposal)


def _matched(spec: RecordSpec, looks: Looks) -> list[tuple[RecordRow, RecordRow]]:
    first, second = ([row for row in rows if row.table == spec.table] for rows in looks)
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    later = {row.key: row for row in second}
    return [(row, later[row.key]) for row in first if row.key in later]


def spelled(field: FieldSpec) -> str:
    """The type of a field as it is written in a declaration."""
    kind = f"list[{field.kind}]" if field.many else str(field.kind)
    return f"{kind} | None" if field.optional else kind

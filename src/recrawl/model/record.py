"""Records on their way into the store."""

from __future__ import annotations

from dataclasses import dataclass, field

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One validated record, in the form in which it is stored.

    `key` is the text of the record's key: `str(value)` of a single key field, a compact JSON array of several.
    `data` maps each column to a JSON-able value (Decimal as text, instants as ISO 8601 in UTC). `volatile` names the
    columns that are stored but never make a version.
    """

    table: str
    key: str
    data: dict[str, Json]
    volatile: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class FieldError:
    """Why one field of one record could not become data.

    `kind` is a short stable word, and `form` how the value is written (`字` for `价格面议`): errors that have both in
    common are told as one.
    """

    field: str
    kind: str
    message: str
    value: str = ""
    form: str = ""

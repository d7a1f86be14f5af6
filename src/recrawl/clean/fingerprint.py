"""What counts as the same business content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import orjson

from recrawl.clean.moment import window
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec
from recrawl.model.record import Json, RecordRow
from recrawl.model.values import Precision

# Changes only together with the form below: stored hashes are compared with new ones.
_FORM = b"recrawl content 1\n"


def content_hash(rows: Sequence[RecordRow]) -> str:
    """SHA-256 (hex) over the business content of a page's rows, whatever order they came in.

    Canonical JSON keeps values apart from their neighbours and types apart from each other (1, "1", 1.0 and true all
    differ). Volatile columns do not enter, nor do nulls: a column that is null and one that does not exist yet are the
    same content. The wording of a time (`x_text`) is volatile; its instant and precision enter.
    """
    content = sorted(
        ([row.table, row.key, _content(row)] for row in rows),
        key=lambda each: (each[0], each[1]),
    )
    return hashlib.sha256(_FORM + orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _content(row: RecordRow) -> dict[str, Json]:
    return {name: value for name, value in row.data.items() if value is not None and name not in row.volatile}


_RANK = {precision: rank for rank, precision in enumerate(Precision)}


def settle_moments(new: RecordRow, old_data: Mapping[str, Json] | None, spec: RecordSpec) -> RecordRow:
    """The new row, with the stored time wherever the new text says nothing else.

    "1 hour ago" turns into "2 hours ago" without anything having happened, and "3 hours ago" into a date. Where the
    stored instant lies in the time that the new text can mean, and is not known less exactly, the stored instant,
    precision and text are kept; the fingerprint is taken after that.
    """
    if old_data is None:
        return new
    kept: dict[str, Json] = {}
    for field in spec.fields:
        if field.kind is Kind.MOMENT and not field.many and _says_the_same(field, new.data, old_data):
            kept |= {name: old_data.get(name) for name in _columns(field)}
    return replace(new, data={**new.data, **kept}) if kept else new


def _columns(field: FieldSpec) -> tuple[str, str, str]:
    return field.name, f"{field.name}_precision", f"{field.name}_text"


def _says_the_same(field: FieldSpec, new: Mapping[str, Json], old: Mapping[str, Json]) -> bool:
    at, precision, text = _columns(field)
    stored, said = _instant(old.get(at)), _instant(new.get(at))
    try:
        had, has = Precision(str(old.get(precision))), Precision(str(new.get(precision)))
    except ValueError:
        return False
    if stored is None or said is None or _RANK[had] < _RANK[has]:
        return False
    wording = new.get(text)
    try:
        begin, end = window(said, has, wording if isinstance(wording, str) else "")
    except (OverflowError, ValueError):
        return stored == said
    return begin <= stored < end


def _instant(value: Json | datetime) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None

"""What a pushed line means: the record itself, or an envelope that tells more about it.

An envelope is an object with `data` (an object, or a list of them) and nothing beside but the names of `_ABOUT`; any
other object is bare data.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

_LONG_NUMBER = re.compile(rb"\d{17}")
_ABOUT = frozenset({"id", "url", "source_version", "source_updated_at", "fetched_at"})
ENVELOPE = _ABOUT | {"data"}


@dataclass(frozen=True, slots=True)
class Envelope:
    """One pushed record. `fetched_at` is when the spider saw it: relative times are counted from there."""

    data: dict[str, Any] | list[Any]
    id: str | None = None
    url: str | None = None
    source_version: str | None = None
    source_updated_at: datetime | None = None
    fetched_at: datetime | None = None


def read_line(line: bytes) -> Any:
    """The value of a JSON text (RFC 8259). Raises ValueError that says why it is none.

    Integers keep all their digits; a lone surrogate written as an escape is let through, as many serialisers write it,
    and so is a byte order mark.
    """
    if not _LONG_NUMBER.search(line):
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            pass
    # orjson makes floats of integers beyond 64 bits, and refuses lone surrogates.
    try:
        return json.loads(line.decode("utf-8-sig"), parse_float=_finite, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"no UTF-8: {error.reason} at byte {error.start}") from None


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is beyond what can be computed with")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def envelope(value: Any) -> Envelope:
    """The envelope that a JSON value is. Raises ValueError that says what is wrong with it."""
    if isinstance(value, dict) and "data" in value and value.keys() <= ENVELOPE:
        data = value["data"]
        if isinstance(data, dict) or (isinstance(data, list) and data):
            return Envelope(
                data,
                id=_text(value, "id"),
                url=_text(value, "url"),
                source_version=_text(value, "source_version"),
                source_updated_at=_instant(value, "source_updated_at"),
                fetched_at=_instant(value, "fetched_at"),
            )
        if value.keys() & _ABOUT:
            raise ValueError("data is neither an object nor a list of them")
    if isinstance(value, dict):
        return Envelope(value)
    raise ValueError(f"a record is a JSON object, not {_kind(value)}")


def _kind(value: Any) -> str:
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "null")


def _text(value: dict[str, Any], name: str) -> str | None:
    given = value.get(name)
    if given is None or given == "":
        return None
    if isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool)):
        return str(given)
    raise ValueError(f"{name} is neither a text nor a whole number")


def _instant(value: dict[str, Any], name: str) -> datetime | None:
    """An ISO 8601 time (RFC 3339); one without an offset is UTC, as a number is seconds since 1970."""
    given = value.get(name)
    if given is None or given == "":
        return None
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            return datetime.fromtimestamp(given, UTC)
        found = datetime.fromisoformat(given)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise ValueError(f"{name} is no time: write it as 2026-11-30T12:00:00Z") from None

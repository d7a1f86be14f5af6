"""Addresses with names of values in them, filled in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

_DOTS = (".", "..")  # would be taken for steps in a path, escaped or not


def filled(template: str, values: Mapping[str, object]) -> str | None:
    """The address with each `{name}` replaced by its value, percent-encoded whole (RFC 3986 section 2.1).

    None where a value is missing or empty, or could not stand in an address.
    """
    texts = {name: _text(value) for name, value in values.items()}
    if any(not text or text in _DOTS for text in texts.values()):
        return None
    try:
        return template.format_map({name: quote(text, safe="") for name, text in texts.items()})
    except UnicodeEncodeError:  # a lone surrogate
        return None


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, datetime) else str(value)

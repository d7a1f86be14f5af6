"""JSON as the web writes it."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_LONG_NUMBER = re.compile(r"\d{17}")
_WRAPPING = re.compile(
    r"^\s*(?:<!--|//\s*<!\[CDATA\[|/\*\s*<!\[CDATA\[\s*\*/|<!\[CDATA\[)|(?:-->|//\s*\]\]>|\]\]>)\s*$"
)


def read_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError.

    Integers and decimals keep all their digits as far as Python's numbers can; nesting is bounded.
    """
    text = text.removeprefix("\ufeff")
    try:
        # orjson makes floats of integers beyond 64 bits, and ids are such integers.
        return orjson.loads(text) if not _LONG_NUMBER.search(text) else json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def read_embedded(text: str) -> Any:
    """The value of a JSON text inside of HTML, or None: comment and CDATA marks around it and raw line breaks inside of
    its strings are forgiven."""
    try:
        return read_json(text)
    except ValueError:
        pass
    try:
        return json.loads(_WRAPPING.sub("", text).strip().rstrip(";"), strict=False)
    except (ValueError, RecursionError):
        return None

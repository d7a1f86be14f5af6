"""One text for one declaration, whatever file it stands in and whatever process reads it, and its hash."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from dataclasses import fields, is_dataclass
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from types import CodeType, FunctionType
from typing import Any

from recrawl.declare.checks import hints_of, is_span
from recrawl.declare.policies import seconds
from recrawl.declare.specs import RecordSpec

READER_FORMAT = 2
"""Raised by a release of recrawl that reads the same bytes under the same rules differently: all pages are reread."""


def digest(value: Any) -> str:
    """SHA-256 (hex) over a canonical form of declarations and plain values."""
    text = json.dumps(_canonical(value), ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def reading(spec: RecordSpec) -> dict[str, Any]:
    """What of a record decides how bytes become rows; whether former values are kept does not."""
    return {item.name: getattr(spec, item.name) for item in fields(spec) if item.name != "history"}


def _canonical(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, re.Pattern):
        return ["regex", value.pattern, value.flags]
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, type):
        return _canonical(value.__spec__)  # type: ignore[attr-defined]
    if isinstance(value, FunctionType):
        return ["function", value.__qualname__, _code_of(value)]
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if is_dataclass(value):
        return [type(value).__name__, {name: _field(value, name, hint) for name, hint in hints_of(type(value)).items()}]
    assert isinstance(value, Decimal) or hasattr(value, "isoformat"), f"{value!r} has no canonical form"
    return str(value)


def _field(value: Any, name: str, hint: Any) -> Any:
    held = getattr(value, name)
    return seconds(held) if is_span(hint) and held is not None else _canonical(held)


def _code_of(function: FunctionType) -> str:
    try:
        return inspect.cleandoc("\n" + inspect.getsource(function))
    except (OSError, TypeError):
        return _code_text(function.__code__)


def _code_text(code: CodeType) -> str:
    # Not repr(code): it holds an address, and a process has its own.
    constants = (_code_text(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts)
    return " ".join((code.co_code.hex(), *code.co_names, *constants))

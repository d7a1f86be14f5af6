"""How a value is written, without what it says: by this, wrong values of one kind are told as one."""

from __future__ import annotations

import re

_LONG = 40
_RUNS = re.compile(r"(?P<digits>\d+)|(?P<letters>[A-Za-z]+(?: +[A-Za-z]+)*)|(?P<signs>[^\W\d_A-Za-z]+)|\s+")
_MARKS = {"digits": "9", "letters": "a", "signs": "字", None: " "}


def form(value: object) -> str:
    """`¥1,299.00` is `¥9,9.9`, `价格面议` is `字`, `No. 12` is `a. 9`; a long text is `text`, others their type."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, (int, float)):
        return "9"
    if not isinstance(value, str):
        return type(value).__name__
    text = value.strip()
    return "text" if len(text) > _LONG else _RUNS.sub(lambda run: _MARKS[run.lastgroup], text)

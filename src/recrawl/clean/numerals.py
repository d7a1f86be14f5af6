"""Chinese numerals and magnitudes: 三十五, 1.2万, 1亿2000万."""

from __future__ import annotations

import re
from decimal import Decimal

DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_TENS = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}

HANZI = "[零〇一二两兩三四五六七八九十百千万萬亿億]"
MAGNITUDE = "(?:百万|百萬|千万|千萬|[百千万萬亿億])"


def hanzi(text: str) -> int | None:
    """The number that Chinese numerals spell, or None: 三十五 is 35, 两千 is 2000, 二〇二四 is 2024."""
    if len(text) > 20 or not text:
        return None
    if all(char in DIGITS for char in text):
        return int("".join(str(DIGITS[char]) for char in text))
    total = section = digit = 0
    for char in text:
        if char in DIGITS:
            digit = DIGITS[char]
        elif char in _TENS:
            section += (digit or 1) * _TENS[char]
            digit = 0
        elif char in _MYRIADS:
            total = (total + section + digit or 1) * _MYRIADS[char]
            section = digit = 0
        else:
            return None
    return total + section + digit


def magnitude(text: str) -> Decimal:
    """What a magnitude such as 万 or 百万 multiplies by."""
    value = Decimal(1)
    for char in text:
        value *= _TENS.get(char) or _MYRIADS[char]
    return value


_COMPOUND = re.compile(rf"(\d+(?:\.\d+)?)\s?({MAGNITUDE})(?=\d+\s?{MAGNITUDE})(\d+)\s?({MAGNITUDE})")


def fold_compounds(text: str) -> str:
    """`1亿2000万` written as one number, 120000000, so that the parts are not taken for two numbers."""

    def sum_up(match: re.Match[str]) -> str:
        head, large, tail, small = match.groups()
        value = Decimal(head) * magnitude(large) + Decimal(tail) * magnitude(small)
        return format(value.normalize(), "f")

    return _COMPOUND.sub(sum_up, text)

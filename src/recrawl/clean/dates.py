"""Calendar dates in English, Chinese and numeric writing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from recrawl.clean.numerals import DIGITS, hanzi
from recrawl.model.values import Precision

_MONTHS = {
    name: number
    for number, names in enumerate(
        [
            "jan january",
            "feb february",
            "mar march",
            "apr april",
            "may",
            "jun june",
            "jul july",
            "aug august",
            "sep sept september",
            "oct october",
            "nov november",
            "dec december",
        ],
        1,
    )
    for name in names.split()
}
_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_AFTER_CLOCK = r"\s+\d{1,2}:\d\d(?::\d\d)?(?:\s+[a-z]{2,5}|\s+[+-]\d{4})?\s+"

DATE = re.compile(
    rf"""
      (?<!\d)(?P<zy>\d{{4}}|\d\d)\s?年\s?(?P<zm>\d{{1,2}})\s?月份?(?:\s?(?P<zd>\d{{1,2}})(?:\s?[日号號]|(?!\d|\s?[::时時点點])))?
    | (?<!\d)(?P<yy>\d{{4}})\s?年(?!\s?[前后後])
    | (?<!\d)(?P<nm>\d{{1,2}})\s?月\s?(?P<nd>\d{{1,2}})(?:\s?[日号號]|(?!\d|\s?[::时時点點个個]))
    | (?<![\d.])(?P<iy>\d{{4}})(?P<is>[-/.])(?P<im>\d{{1,2}})(?P=is)(?P<id>\d{{1,2}})(?![\d]|\.\d)
    | (?<![\d.])(?P<ua>\d{{1,2}})(?P<us>[-/.])(?P<ub>\d{{1,2}})(?P=us)(?P<uy>\d{{4}})(?!\d)
    | \b(?P<am>{_MONTH})\s?(?P<ad>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)
        (?:(?:,\s?|\s)(?P<ay>\d{{4}})\b|(?={_AFTER_CLOCK}(?P<ac>\d{{4}})\b))?
    | (?<!\d)(?P<bd>\d{{1,2}})(?:st|nd|rd|th|\.)?(?:\s?of)?[\s-]?(?P<bm>{_MONTH}),?
        (?:[\s-]?(?P<by>\d{{4}}|'?\d\d(?=$|\s\d|,))(?![:\d]))?
    | \b(?P<my>{_MONTH}),?\s?(?P<myy>\d{{4}})\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar date as far as the text gives it; without a year it is the latest one that is not in the future."""

    year: int | None
    month: int | None
    day: int | None

    @property
    def precision(self) -> Precision:
        if self.day is not None:
            return Precision.DAY
        return Precision.YEAR if self.month is None else Precision.MONTH

    def first(self, today: date) -> date | None:
        """The first day of what is known, or None for a date that no calendar has."""
        years = [self.year] if self.year is not None else range(today.year, max(today.year - 9, 0), -1)
        for year in years:
            try:
                found = date(year, self.month or 1, self.day or 1)
            except ValueError:
                continue
            if self.year is not None or found <= today:
                return found
        return None


def read_date(match: re.Match[str]) -> Day | None:
    """The date of a DATE match; None where day and month cannot be told apart."""
    part = match.groupdict()
    if part["zy"]:
        return Day(_full(part["zy"]), int(part["zm"]), _number(part["zd"]))
    if part["yy"]:
        return Day(int(part["yy"]), None, None)
    if part["nm"]:
        return Day(None, int(part["nm"]), int(part["nd"]))
    if part["iy"]:
        return Day(int(part["iy"]), int(part["im"]), int(part["id"]))
    if part["uy"]:
        return day_or_month_first(int(part["ua"]), int(part["ub"]), int(part["uy"]))
    if part["am"]:
        return Day(_number(part["ay"] or part["ac"]), _month(part["am"]), int(part["ad"]))
    if part["bm"]:
        year = part["by"]
        return Day(_full(year.lstrip("'")) if year else None, _month(part["bm"]), int(part["bd"]))
    return Day(int(part["myy"]), _month(part["my"]), None)


def day_or_month_first(one: int, two: int, year: int | None) -> Day | None:
    """03/04 is March in one country and April in another: known only where one number can be no month."""
    if one > 12 or one == two:
        return Day(year, two, one)
    return Day(year, one, two) if two > 12 else None


def _month(name: str) -> int:
    return _MONTHS[name.lower().rstrip(".")]


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _full(year: str) -> int:
    """Two digits as RFC 2822 (section 4.3) reads them: 00 to 49 are of this century."""
    number = int(year)
    if len(year) > 2:
        return number
    return number + (2000 if number < 50 else 1900)


def arabic_years(text: str) -> str:
    """二〇二四年一月 with Arabic digits."""
    return re.sub(
        "[〇零一二三四五六七八九]{4}年|(?<=[年月])[一二三四五六七八九十]{1,3}(?=[月日号])",
        lambda match: _arabic(match[0]),
        text,
    )


def _arabic(text: str) -> str:
    if text.endswith("年"):
        return "".join(str(DIGITS[char]) for char in text[:-1]) + "年"
    return str(hanzi(text))

"""Times that are told by their distance from now: `3分钟前`, `2 hours ago`, `in 1 year 2 months`, `刚刚`."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import IntEnum

from recrawl.clean.numerals import hanzi
from recrawl.model.values import Precision


class Unit(IntEnum):
    """Units of distance, from coarse to fine."""

    DECADE = 0
    YEAR = 1
    MONTH = 2
    WEEK = 3
    DAY = 4
    HOUR = 5
    MINUTE = 6
    SECOND = 7


PRECISION = {
    Unit.DECADE: Precision.YEAR,
    Unit.YEAR: Precision.YEAR,
    Unit.MONTH: Precision.MONTH,
    Unit.WEEK: Precision.DAY,
    Unit.DAY: Precision.DAY,
    Unit.HOUR: Precision.HOUR,
    Unit.MINUTE: Precision.MINUTE,
    Unit.SECOND: Precision.SECOND,
}
_MONTHS = {Unit.DECADE: 120, Unit.YEAR: 12, Unit.MONTH: 1}
SECONDS = {Unit.WEEK: 604_800, Unit.DAY: 86_400, Unit.HOUR: 3_600, Unit.MINUTE: 60, Unit.SECOND: 1}

_UNITS = {
    name: unit
    for unit, names in {
        Unit.DECADE: "decade decades",
        Unit.YEAR: "year years yr yrs y 年",
        Unit.MONTH: "month months mon mons mo mos 个月 個月 月",
        Unit.WEEK: "week weeks wk wks w 周 週 星期 个星期 個星期 礼拜 個禮拜 个礼拜 禮拜",
        Unit.DAY: "day days d 天 日",
        Unit.HOUR: "hour hours hr hrs h 小时 小時 个小时 個小時 钟头 个钟头 鐘頭 個鐘頭 時間 时",
        Unit.MINUTE: "minute minutes min mins m 分钟 分鐘 分",
        Unit.SECOND: "second seconds sec secs s 秒 秒钟 秒鐘",
    }.items()
    for name in names.split()
}
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve"
_WORDS = {"a": 1.0, "an": 1.0, "last": 1.0, "next": 1.0, "半": 0.5} | {
    word: float(number) for number, word in enumerate(_NUMBERS.split(), 1)
}


def _names(chinese: bool) -> str:
    names = [name for name in _UNITS if name.isascii() is not chinese]
    return "|".join(sorted(names, key=len, reverse=True))


_EN_TERM = (
    rf"(?P<sign>[-+]\s?)?(?P<number>\d+(?:[.,]\d+)?|\b(?:an?|{_NUMBERS.replace(' ', '|')})\b)"
    rf"\s?(?P<unit>{_names(chinese=False)})(?![a-z])\.?"
)
_ZH_TERM = (
    r"(?P<sign>[-+]\s?)?(?P<number>\d+(?:\.\d+)?|[一二两兩三四五六七八九十百]+|半)\s?"
    rf"(?P<half>[个個]半)?(?P<unit>{_names(chinese=True)})(?P<over>半)?"
)
_TERM = {False: re.compile(_EN_TERM), True: re.compile(_ZH_TERM)}


def _bare(term: str) -> str:
    return re.sub(r"\?P<\w+>", "?:", term)


_EN_RUN = rf"{_bare(_EN_TERM)}(?:(?:\s?,\s?(?:and\s)?|\s?and\s|\s)?{_bare(_EN_TERM)})*"
_ZH_RUN = rf"{_bare(_ZH_TERM)}(?:[\s,、零又]?\s?{_bare(_ZH_TERM)})*"
_ABOUT = r"(?:(?:about|around|approximately|approx\.?|almost|nearly|over|more than|~|約|约|大约|大約)\s?)?"

_EN_PAST = re.compile(rf"(?P<run>{_EN_RUN})\s(?:ago|before|earlier|back)\b")
_EN_NEXT = re.compile(rf"(?:\bin|\bafter)\s{_ABOUT}(?P<run>{_EN_RUN})|(?P<later>{_EN_RUN})\s(?:later|from now|hence)\b")
_EN_ALONE = re.compile(rf"(?:now\s)?{_ABOUT}(?P<run>{_EN_RUN})")
_EN_TURN = re.compile(r"\b(?P<turn>last|next) (?P<unit>decade|year|month|week)\b")
_ZH_PAST = re.compile(rf"(?P<run>{_ZH_RUN})\s?(?:[以之]?前)(?![台端往后後沿列排者进進景途世言提])")
_ZH_NEXT = re.compile(rf"(?P<run>{_ZH_RUN})\s?(?:[以之]?[后後])(?![台续續期勤卫衛])")
_ZH_TURN = re.compile(r"[上下][个個]?(?:周|週|星期)(?![一二三四五六日天])")
_ZH_ALONE = re.compile(rf"{_ABOUT}(?P<run>{_ZH_RUN})")
_NOW = re.compile(
    r"刚刚|刚才|剛剛|剛才|几秒前|數秒前|数秒前|\b(?:just|right) now\b|\bmoments? ago\b|\bfew seconds ago\b"
    r"|^seconds ago$|^now$|^刚$|^现在$|^現在$|\bless than a minute ago\b|(?:不到|少于)1分钟"
)


@dataclass(frozen=True, slots=True)
class Ago:
    """A distance from now; `unit` is the smallest that the text names. `span` is where it stands in the text."""

    unit: Unit
    months: int = 0
    seconds: float = 0.0
    span: tuple[int, int] = field(default=(0, 0), compare=False)
    just_now: bool = False

    def instant(self, now: datetime, zone: tzinfo) -> datetime:
        """The instant so far from `now`. Calendar units move the local wall clock, hours and less the instant."""
        local = now.astimezone(zone).replace(microsecond=0)
        if self.months:
            local = datetime.combine(add_months(local.date(), self.months), local.time(), zone)
        if self.unit <= Unit.DAY:
            return local + timedelta(seconds=self.seconds)
        return (local.astimezone(UTC) + timedelta(seconds=self.seconds)).astimezone(zone)

    def first(self, now: datetime, zone: tzinfo) -> datetime:
        """The first instant of what is known: of the year, month or day, or the instant itself."""
        at = self.instant(now, zone)
        if self.unit > Unit.DAY:
            return at
        if self.unit > Unit.MONTH:
            return datetime.combine(at.date(), time(), zone)
        return datetime(at.year, 1 if self.unit < Unit.MONTH else at.month, 1, tzinfo=zone)


def read_ago(text: str) -> Ago | None:
    """The distance that a text (plain, lower case) tells, or None. Without "ago" or "in" it must be the whole text."""
    if now := _NOW.search(text):
        return Ago(Unit.MINUTE, span=now.span(), just_now=True)
    if turn := _EN_TURN.search(text):
        return _sum(f"1 {turn['unit']}", -1 if turn["turn"] == "last" else 1, turn.span(), chinese=False)
    if not text.isascii() and (found := _chinese(text)):
        return found
    if match := _EN_NEXT.search(text):
        return _sum(match["run"] or match["later"], 1, match.span(), chinese=False)
    if match := _EN_PAST.search(text) or _EN_ALONE.fullmatch(text):
        return _sum(match["run"], -1, match.span(), chinese=False)
    return None


def _chinese(text: str) -> Ago | None:
    if ("后" in text or "後" in text) and (match := _ZH_NEXT.search(text)):
        return _sum(match["run"], 1, match.span(), chinese=True)
    if "前" in text and (match := _ZH_PAST.search(text)):
        return _sum(match["run"], -1, match.span(), chinese=True)
    if match := _ZH_TURN.search(text):
        return _sum("1周", -1 if match[0][0] == "上" else 1, match.span(), chinese=True)
    match = _ZH_ALONE.fullmatch(text)
    # 5月 alone is May, 2012年 a year: only 个月 and small numbers of years are spans.
    if match is None or re.search(r"(?<![个個])月|\d{4}\s?年|[日时分]$|^\d+\s?年$", match["run"]):
        return None
    return _sum(match["run"], -1, match.span(), chinese=True)


def _sum(run: str, sign: int, span: tuple[int, int], *, chinese: bool) -> Ago | None:
    months = seconds = 0.0
    finest = Unit.DECADE
    for term in _TERM[chinese].finditer(run):
        unit = _UNITS[term["unit"]]
        if term["sign"]:
            sign = 1 if "+" in term["sign"] else -1
        number = _quantity(term["number"])
        if number is None:
            return None
        if chinese and (term["half"] or term["over"]):
            number += 0.5
        if unit in _MONTHS:
            months += sign * number * _MONTHS[unit]
        else:
            seconds += sign * number * SECONDS[unit]
        if number % 1 and unit <= Unit.YEAR:
            unit = Unit.MONTH
        elif number == 0.5 and unit in (Unit.MONTH, Unit.DAY):
            unit = Unit.DAY if unit is Unit.MONTH else Unit.HOUR
        finest = max(finest, unit)
    whole = int(months)
    return Ago(finest, whole, seconds + (months - whole) * 30 * 86_400, span)


def _quantity(text: str) -> float | None:
    if text in _WORDS:
        return _WORDS[text]
    if text[0].isdigit():
        return float(text.replace(",", ".")) if len(text) < 16 else None
    spelt = hanzi(text)
    return None if spelt is None else float(spelt)


def add_months(day: date, months: int) -> date:
    """The same day so many months on, or the last of a shorter month. Raises ValueError beyond the years 1 to 9999."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))

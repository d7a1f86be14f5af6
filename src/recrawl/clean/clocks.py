"""Times of day, with the zone that a text names for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from recrawl.model.values import Precision

_WORDING = (
    "凌晨 清晨 早上 早晨 上午 中午 正午 下午 午后 午後 傍晚 晚上"
    " 晚间 晚間 夜里 夜間 深夜 今晚 昨晚 今早 今晨 明早 明晚 午夜"
)
_PARTS = _WORDING.split()
_CLOCK = re.compile(
    r"""
      (?<![\d:.])(?P<h>\d{1,2})
      (?: \s?[:时時点點]\s?(?P<mi>\d\d)(?:\s?[:分]\s?(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?秒?|分)?(?!\d)
        (?:\s?(?P<ap>[ap])\.?m\b\.?)?
        | \s?(?P<ap2>[ap])\.?m\b\.?
        | \s?[时時点點](?P<half>半|钟|鐘|整)?(?![前后後间間])
      )
      (?:\s?(?P<tz>z\b|(?:utc|gmt)?\s?[+-]\d{1,2}(?::?\d\d)?(?!\d)|\(?[a-z]{2,5}\)?(?![a-z])|\(?北京时间\)?))?
    """,
    re.VERBOSE | re.IGNORECASE,
)

# RFC 822 and RFC 2822 name the North American ones; the rest are in common use with one meaning.
_OFFSETS = {
    name: hours
    for names, hours in {
        "utc gmt z ut wet": 0,
        "est cdt": -5,
        "edt": -4,
        "cst mdt": -6,
        "mst pdt": -7,
        "pst": -8,
        "cet mez west bst": 1,
        "cest mesz mest eet": 2,
        "eest msk": 3,
        "hkt sgt": 8,
        "jst kst": 9,
        "aest": 10,
        "aedt": 11,
        "nzst": 12,
        "nzdt": 13,
    }.items()
    for name in names.split()
}


_AMBIGUOUS = frozenset({"ist", "ast", "amt", "ect"})
_REGIONS = {"et": "America/New_York", "ct": "America/Chicago", "mt": "America/Denver", "pt": "America/Los_Angeles"}


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day; `days` is 1 for 24:00. `zone` is what the text itself says."""

    hour: int
    minute: int
    second: int
    micro: int
    precision: Precision
    zone: tzinfo | None = None
    days: int = 0

    def on(self, day: date, zone: tzinfo) -> datetime:
        at = datetime(day.year, day.month, day.day, self.hour, self.minute, self.second, self.micro, self.zone or zone)
        return at + timedelta(days=self.days)


class BadClock(ValueError):
    """Digits in the form of a clock that no clock shows, such as 25:70."""


def read_clock(text: str, day: date, zone: tzinfo) -> Clock | None:
    """The first clock time of a text; None without one. Raises BadClock."""
    match = _CLOCK.search(text)
    if match is None:
        return None
    before = text[: match.start()].rstrip()
    part = "" if text.isascii() else next((part for part in _PARTS if before.endswith(part)), "")
    clock = _clock(match, part)
    said = match["tz"]
    return replace(clock, zone=_zone(said, clock, day, zone)) if said else clock


def _clock(match: re.Match[str], part: str) -> Clock:
    hour, minute, second = int(match["h"]), int(match["mi"] or 0), match["s"]
    half = (match["ap"] or match["ap2"] or "").lower()
    if match["half"] == "半":
        minute = 30
    if hour == 12 and part in _NIGHT:
        raise BadClock(match[0])  # midnight, but before or after this day?
    if (half == "p" or _is_afternoon(part, hour)) and hour < 12:
        hour += 12
    elif hour == 12 and (half == "a" or part in ("凌晨", "午夜")):
        hour = 0
    clock = make_clock(hour, minute, second, match["f"])
    known = match["mi"] is not None or match["half"] == "半"
    return clock if known else replace(clock, precision=Precision.HOUR)


def make_clock(hour: int, minute: int, second: str | None, fraction: str | None) -> Clock:
    """A clock without a zone. 24:00 is the next midnight, a leap second the second before it. Raises BadClock."""
    seconds = min(int(second or 0), 59)
    next_day = hour == 24 and not minute and not seconds
    if (hour > 23 and not next_day) or minute > 59 or int(second or 0) > 60:
        raise BadClock(f"{hour}:{minute}:{seconds}")
    micro = int(fraction[:6].ljust(6, "0")) if fraction else 0
    known = Precision.SECOND if second else Precision.MINUTE
    return Clock(0 if next_day else hour, minute, seconds, micro, known, days=int(next_day))


def is_span(sign: str, start: tuple[str, str], second: str | None, end: tuple[str, str | None]) -> bool:
    """Whether `10:00-12:00` is an opening time rather than a time twelve hours behind UTC."""
    later = end[1] is not None and (int(end[0]), int(end[1])) > (int(start[0]), int(start[1]))
    return sign == "-" and second is None and later


_NIGHT = frozenset({"晚上", "晚间", "晚間", "今晚", "昨晚", "明晚", "夜里", "深夜"})
_AFTERNOON = _NIGHT | {"下午", "午后", "午後", "傍晚", "夜間"}


def _is_afternoon(part: str | None, hour: int) -> bool:
    return part in _AFTERNOON or (part in ("中午", "正午") and (hour == 12 or hour < 4))


def _zone(said: str, clock: Clock, day: date, zone: tzinfo) -> tzinfo | None:
    name = said.strip("()").lower()
    if name == "北京时间":
        return ZoneInfo("Asia/Shanghai")
    offset = re.fullmatch(r"(?:utc|gmt)?\s?([+-])(\d{1,2}):?(\d\d)?", name)
    if offset:
        sign, hours, minutes = offset.groups()
        second = None if clock.precision is Precision.MINUTE else "0"
        if is_span(sign, (str(clock.hour), str(clock.minute)), second, (hours, minutes)) and name[0] == "-":
            return None
        return utc_offset(sign, int(hours), int(minutes or 0))
    if name in _OFFSETS and name != "cst":
        return timezone(timedelta(hours=_OFFSETS[name]))
    # CST is Chicago's and Shanghai's: the source's own zone decides where it goes by that name.
    if clock.on(day, zone).strftime("%Z").lower() == name:
        return zone
    if name in _AMBIGUOUS:
        raise BadClock(said)
    if name in _REGIONS:
        return ZoneInfo(_REGIONS[name])
    return timezone(timedelta(hours=-6)) if name == "cst" else None


def utc_offset(sign: str, hours: int, minutes: int) -> timezone:
    """The zone so far from UTC. Raises BadClock beyond the 18 hours that ISO 8601 writers use."""
    if hours > 18 or minutes > 59:
        raise BadClock(f"{sign}{hours}:{minutes}")
    span = timedelta(hours=hours, minutes=minutes)
    return timezone(-span if sign == "-" else span)

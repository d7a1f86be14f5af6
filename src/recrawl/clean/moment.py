"""Times as sites write them, as far as they are known."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from recrawl.clean.ago import PRECISION, SECONDS, Ago, Unit, add_months, read_ago
from recrawl.clean.clocks import is_span, make_clock, read_clock, utc_offset
from recrawl.clean.dates import DATE, Day, arabic_years, day_or_month_first, read_date
from recrawl.clean.foreign import may_be_foreign, read_foreign
from recrawl.clean.numerals import DIGITS
from recrawl.clean.plain import plain
from recrawl.errors import Misuse
from recrawl.model.values import Moment, Precision

_LONGEST = 200

# The common forms of a whole text: ISO 8601, its relatives with a slash or a blank, and 2026年11月30日 12:30.
_ISO = re.compile(
    r"(\d{4})(?:-(\d\d?)-|/(\d\d?)/|年(\d\d?)月)(\d\d?)日?"
    r"(?:[T ]?(?<=[日T ])(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(?:(Z)|([+-])(\d\d):?(\d\d)?)?)?",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"(\d{10})(?:\.\d+)?|(\d{13})")
_COMPACT = re.compile(r"((?:19|20)\d\d)(\d\d)(\d\d)")
_YEAR = re.compile(r"[12]\d{3}")
_YEAR_MONTH = re.compile(r"(\d{4})[-/.](\d\d?)")
# Without a year: month-day with a hyphen (the Chinese habit), either order with a slash.
_MONTH_DAY = re.compile(r"(\d\d?)([-/])(\d\d?)(?=$|\s)")

_LABEL = re.compile(
    r"(?:(?:最后|最近|首次)?(?:发布|发表|编辑|更新|修改|创建|回复|上架|收录|提问|回答|發布|發表|編輯)"
    r"(?:于|於|时间|時間|日期)?|时间|日期"
    r"|(?:date|(?:first )?published|posted|(?:last )?(?:updated|modified)|created|edited)\b(?: on\b| at\b)?)"
    r"\s?:?\s?(?=.)",
    re.IGNORECASE,
)
_MAY_HOLD_DATE = re.compile("[-/.年月a-z]")
_DAYS = {
    "大前天": -3,
    "the day before yesterday": -2,
    "day before yesterday": -2,
    "前天": -2,
    "前日": -2,
    "昨天": -1,
    "昨日": -1,
    "昨晚": -1,
    "yesterday": -1,
    "今天": 0,
    "今日": 0,
    "今晨": 0,
    "今早": 0,
    "今晚": 0,
    "today": 0,
    "the day after tomorrow": 2,
    "day after tomorrow": 2,
    "明天": 1,
    "明日": 1,
    "明早": 1,
    "明晚": 1,
    "tomorrow": 1,
    "大后天": 3,
    "后天": 2,
    "後天": 2,
}
_DAY_WORD = re.compile("|".join(sorted(_DAYS, key=len, reverse=True)))
_KEEPS_CLOCK = ("昨晚", "今晚", "今早", "今晨", "明早", "明晚")
_WEEKDAY_ZH = re.compile("(上上|上|本|这|這|下)?(?:周|週|星期|礼拜|禮拜)([一二三四五六日天])")
_WEEKDAY_EN = re.compile(
    r"(?:on |last |this )?(mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nesday|r|rs|rsday|urday)?(?=$|[ ,])"
)
_YEAR_WORD = {"前年": -2, "去年": -1, "今年": 0, "明年": 1}
_MONTH_WORD = {"上个月": -1, "上個月": -1, "上月": -1, "本月": 0, "这个月": 0, "這個月": 0, "下个月": 1, "下月": 1}
_SHIFTED = re.compile("|".join((*_YEAR_WORD, *_MONTH_WORD)))


def parse_moment(text: str | None, now: datetime, zone: str | tzinfo) -> Moment | None:
    """The time that a text tells, as far as it tells it, or None where it tells none or an ambiguous one.

    `now` (aware) is what relative texts are relative to: the time of the fetch, on replay too. `zone` (IANA name or
    tzinfo) is the source's own, for texts that name none, and decides between meanings of CST. Nothing else decides:
    not the machine's clock, not its zone. A day without a year is the latest that is not in the future; `03/04/2024` is
    None; `昨天` is a day, never an hour. Raises Misuse for a zone that does not exist.
    """
    if not text or len(text) > _LONGEST:
        return None
    where = zone_of(zone)
    folded = plain(text)
    if not folded[:1].isdigit():
        folded = _LABEL.sub("", folded, count=1) if _LABEL.match(folded) else folded
    try:
        found = _iso(folded, where) or _digits(folded, now.astimezone(where), where)
        if found is None:
            found = _words(folded.lower(), now, where)
        if found is None and may_be_foreign(folded):
            found = read_foreign(folded, now.astimezone(where), where)
        if found is None:
            return None
        found[0].astimezone(UTC)  # beyond the years 1 to 9999 there is no instant to store
    except (ValueError, OverflowError):
        return None
    return Moment(found[0], found[1], text)


Found = tuple[datetime, Precision]


def zone_of(zone: str | tzinfo) -> tzinfo:
    """The zone of that name. Raises Misuse where there is none."""
    if isinstance(zone, tzinfo):
        return zone
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Misuse(f"{zone!r} is not a time zone", action="Use an IANA name such as Asia/Shanghai.") from error


def _iso(text: str, zone: tzinfo) -> Found | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    year, hyphen, slash, hanzi, day, hour, minute, second, fraction, zulu, sign, hours, minutes = match.groups()
    if year < "0002":
        raise ValueError("the zero of other systems' clocks")
    first = date(int(year), int(hyphen or slash or hanzi), int(day))
    if hour is None:
        return datetime.combine(first, time(), zone), Precision.DAY
    if sign and "T" not in text.upper() and is_span(sign, (hour, minute), second, (hours, minutes)):
        return None
    if zulu:
        zone = UTC
    elif sign:
        zone = utc_offset(sign, int(hours), int(minutes or 0))
    clock = make_clock(int(hour), int(minute), second, fraction)
    return clock.on(first, zone), clock.precision


def _digits(text: str, local: datetime, zone: tzinfo) -> Found | None:
    """Forms that are times only as a whole text."""
    if not text[:1].isdigit():
        return None
    if match := _EPOCH.fullmatch(text):
        seconds = float(text) if match[1] else int(text) / 1000
        return datetime.fromtimestamp(seconds, zone), Precision.SECOND
    if match := _COMPACT.fullmatch(text):
        return datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=zone), Precision.DAY
    if _YEAR.fullmatch(text):
        return datetime(int(text), 1, 1, tzinfo=zone), Precision.YEAR
    if match := _YEAR_MONTH.fullmatch(text):
        return datetime(int(match[1]), int(match[2]), 1, tzinfo=zone), Precision.MONTH
    if match := _MONTH_DAY.match(text):
        one, two = int(match[1]), int(match[3])
        day = Day(None, one, two) if match[2] == "-" else day_or_month_first(one, two, None)
        rest = text[match.end() :]
        if day is None or (rest and not re.fullmatch(r" \d{1,2}:\d\d(:\d\d)?", rest)):
            return None
        return _at(day, rest, local, zone)
    return None


def _words(text: str, now: datetime, zone: tzinfo) -> Found | None:
    local = now.astimezone(zone)
    if not text.isascii():
        text = arabic_years(_SHIFTED.sub(lambda match: _shifted(match[0], local), text))
    days = set()
    rest = text
    for found in DATE.finditer(text) if _MAY_HOLD_DATE.search(text) else ():
        days.add(read_date(found))
        rest = rest[: found.start()] + " " * len(found[0]) + rest[found.end() :]
    if days:
        day = days.pop()
        # Of two dates in one text it is not known which one is meant.
        return _at(day, rest, local, zone) if day and not days else None
    if ago := read_ago(text):
        return _ago(ago, text, now, zone)
    if match := _DAY_WORD.search(text):
        rest = text if match[0] in _KEEPS_CLOCK else text[: match.start()] + " " + text[match.end() :]
        today = local.date() + timedelta(days=_DAYS[match[0]])
        return _at(Day(today.year, today.month, today.day), rest, local, zone)
    return _weekday(text, local, zone)


def _shifted(word: str, local: datetime) -> str:
    """去年 and 上个月 as the year and month they are today."""
    if word in _YEAR_WORD:
        return f"{local.year + _YEAR_WORD[word]}年"
    months = local.year * 12 + local.month - 1 + _MONTH_WORD[word]
    return f"{months // 12}年{months % 12 + 1}月"


def _at(day: Day, rest: str, local: datetime, zone: tzinfo) -> Found | None:
    first = day.first(local.date())
    if first is None:
        return None
    clock = read_clock(rest, first, zone) if day.precision is Precision.DAY else None
    if clock is None:
        return datetime.combine(first, time(), zone), day.precision
    return clock.on(first, zone), clock.precision


def _ago(ago: Ago, text: str, now: datetime, zone: tzinfo) -> Found | None:
    first = ago.first(now, zone)
    if ago.unit in (Unit.DAY, Unit.WEEK):
        rest = text[: ago.span[0]] + " " + text[ago.span[1] :]
        clock = read_clock(rest, first.date(), zone)
        if clock is not None:
            return clock.on(first.date(), zone), clock.precision
    return first, PRECISION[ago.unit]


def _weekday(text: str, local: datetime, zone: tzinfo) -> Found | None:
    """The last such day, today included, or that of the week that the text names."""
    match = _WEEKDAY_ZH.search(text) or _WEEKDAY_EN.match(text)
    if match is None:
        return None
    if match.re is _WEEKDAY_ZH:
        wanted = DIGITS.get(match[2], 7) - 1
        weeks = {"上上": -2, "上": -1, "本": 0, "这": 0, "這": 0, "下": 1}.get(match[1])
    else:
        wanted = ("mon", "tue", "wed", "thu", "fri", "sat", "sun").index(match[1])
        weeks = None
    today = local.date()
    rest = text[: match.start()] + " " + text[match.end() :]
    if weeks is not None:
        day = today - timedelta(days=today.weekday()) + timedelta(days=wanted, weeks=weeks)
    else:
        day = today - timedelta(days=(today.weekday() - wanted) % 7)
    found = _at(Day(day.year, day.month, day.day), rest, local, zone)
    if found and weeks is None and found[0] > local:
        earlier = found[0] - timedelta(days=7)
        return earlier, found[1]
    return found


_WIDTHS = {Unit.DECADE: 3653, Unit.YEAR: 366, Unit.MONTH: 31, Unit.WEEK: 7, Unit.DAY: 1}
_JUST_NOW = timedelta(minutes=10)


def window(first: datetime, precision: Precision, text: str) -> tuple[datetime, datetime]:
    """From when until before when the time can lie that `text` told as `first`. Raises OverflowError at year 9999.

    "2 hours ago" is rounded, down or to the nearest, so that it can be an hour off on either side, and so can what was
    stored when the text said "1 hour ago".
    """
    folded = plain(text).lower()
    ago = None if _MAY_HOLD_DATE.search(folded) and DATE.search(folded) else read_ago(folded)
    after = _end(first, precision)
    if ago is None or PRECISION[ago.unit] is not precision:
        return first, after
    if ago.just_now:
        return first - _JUST_NOW, first + _JUST_NOW
    width = timedelta(days=_WIDTHS[ago.unit]) if ago.unit in _WIDTHS else timedelta(seconds=SECONDS[ago.unit])
    return first - width, (after if ago.unit in _WIDTHS else first + timedelta(microseconds=1)) + width


def _end(first: datetime, precision: Precision) -> datetime:
    if precision is Precision.YEAR or precision is Precision.MONTH:
        months = 12 if precision is Precision.YEAR else 1
        return datetime.combine(add_months(first.date(), months), first.timetz())
    unit = {Precision.DAY: Unit.DAY, Precision.HOUR: Unit.HOUR, Precision.MINUTE: Unit.MINUTE}.get(
        precision, Unit.SECOND
    )
    return first + timedelta(seconds=SECONDS[unit])

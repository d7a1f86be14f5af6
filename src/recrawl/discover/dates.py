"""The dates that sitemaps and feeds hold, read as instants.

The answer depends on the text and the source's zone alone, never on today. A text with two readings, or a time of day
without any zone, is unknown. What a text leaves out at its end (`2003-12`, `2003-12-31`) makes it the first instant of
what it names: in the source's zone, in UTC where none is given.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from recrawl.discover.zones import OFFSET, offset_of

_LONGEST: Final = 100  # characters; the longest real form is JavaScript's, with its zone spelt out

_CLOCK = r"""(?P<before>上午|下午|오전|오후)?\s*
    (?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{1,2})(?:[.,]\d+)?)?
    (?:\s*(?P<after>[ap]\.?m\.?)(?![a-z]))?"""
_ZONE = rf"(?:\s*(?P<zone>{OFFSET}))?(?:\s*\([^()]*\))?"
_WEEKDAY = r"(?:[^\W\d]+(?:\.,?|,|\s)\s*)?"
_MONTH = r"(?P<word>[^\W\d]{3,})\.?"


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.VERBOSE | re.IGNORECASE)


# Year first: W3C-DTF and ISO 8601, also with slashes or dots, a weekday, a month's name, a space for the T.
_YEAR_FIRST = _form(
    rf"""{_WEEKDAY}(?P<year>\d{{4}})
    (?:(?P<sep>[-/.])(?:(?P<month>0?\d{{1,2}})|(?P<word>[^\W\d]{{3,}}))
      (?:(?P=sep)(?P<day>\d{{1,2}})(?:(?:T|\s+){_CLOCK}{_ZONE})?)?)?"""
)
_BASIC = _form(
    rf"""(?P<year>\d{{4}})(?P<month>\d{{2}})(?P<day>\d{{2}})
    (?:[T ]?(?P<hour>\d{{2}})(?P<minute>\d{{2}})(?P<second>\d{{2}}){_ZONE})?"""
)
_ORDINAL = _form(r"(?P<year>\d{4})-?(?P<ordinal>\d{3})")
# ISO 8601:1988 with a year of two digits; digits alone only where they cannot be YYYYMM or a year.
_SHORT = _form(r"(?P<year>\d\d)-(?P<month>\d\d)-(?P<day>\d\d)")
_SHORT_MONTH = _form(r"-(?P<year>\d\d)-?(?P<month>\d\d)")
_SHORT_DIGITS = _form(r"(?!(?:19|20)(?:0\d|1[0-2]))(?P<year>\d\d)(?P<month>\d\d)(?P<day>\d\d)")
_SHORT_ORDINAL = _form(r"(?P<year>0\d)(?P<ordinal>\d{3})")
# RFC 822, 1123 and 850, with the slips that feeds make.
_DAY_FIRST = _form(
    rf"""{_WEEKDAY}(?P<day>\d{{1,2}})[\s-]+{_MONTH},?[\s-]+(?P<year>\d{{4}}|\d\d),?(?:\s+{_CLOCK}{_ZONE})?"""
)
_MONTH_FIRST = _form(
    rf"""{_WEEKDAY}{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}}),?(?:\s+{_CLOCK}{_ZONE})?"""
)
_ASCTIME = _form(rf"{_WEEKDAY}{_MONTH}\s+(?P<day>\d{{1,2}})\s+{_CLOCK}{_ZONE}\s+(?P<year>\d{{4}})")
_WRITTEN = _form(
    rf"""(?P<year>\d{{4}})\s*[年년]\s*(?P<month>\d{{1,2}})\s*[月월]\s*(?P<day>\d{{1,2}})\s*[日일]
    (?:\s*{_CLOCK}{_ZONE})?"""
)
_FORMS: Final = (
    *(_YEAR_FIRST, _DAY_FIRST, _MONTH_FIRST, _ASCTIME, _BASIC, _ORDINAL),
    *(_SHORT, _SHORT_MONTH, _SHORT_DIGITS, _SHORT_ORDINAL, _WRITTEN),
)
# The form of nearly all sitemaps, which the standard library reads ten times faster.
_COMMON = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)")
_UNIX = re.compile(r"1\d{9}(?:\d{3})?")
_HANGUL = re.compile("[가-힣]")
_SEOUL: Final = ZoneInfo("Asia/Seoul")

# Names of months without accents, shortened to what tells them apart.
_MONTHS: Final = {
    name: number
    for line in (
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "jan feb mrz apr mai jun jul aug sep okt nov dez",
        "janv fev mars avr mai juin juil aout sept oct nov dec",
        "ene feb mar abr may jun jul ago set oct nov dic",
        "gen feb mar apr mag giu lug ago set ott nov dic",
        "jan fev mar abr mai jun jul ago set out nov dez",
        "jan feb mrt apr mei jun jul aug sep okt nov dec",
        "jan feb mar apr maj jun jul aug sze okt nov dec",
        "ιαν φεβ μαρ απρ μαι ιουν ιουλ αυγ σεπ οκτ νοε δεκ",
        "янв фев мар апр мая июн июл авг сен окт ноя дек",
    )
    for number, name in enumerate(line.split(), 1)
}


def instant(text: str, zone: tzinfo | None = None) -> str | None:
    """The UTC instant that a text names, as `YYYY-MM-DDTHH:MM:SSZ`; None where it is unknown.

    W3C-DTF, ISO 8601, RFC 822, 850, 1123 and 3339, asctime, Unix seconds and milliseconds, and the written forms of
    China and Korea. `zone` is the source's: it places times that have no zone, and decides what an ambiguous zone name
    (CST, IST, BST) means. Fractions of a second are cut.
    """
    text = text.strip()
    if _COMMON.fullmatch(text):
        return _common(text)
    return _instant(text, zone, None) if 0 < len(text) <= _LONGEST else None


def rfc_date(text: str) -> str | None:
    """As `instant`, but a time without a zone is UTC in the forms of the RFCs and the W3C."""
    text = text.strip()
    return _instant(text, None, UTC) if 0 < len(text) <= _LONGEST else None


def _common(text: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
        return f"{text[:19]}Z" if text.endswith(("Z", "+00:00")) else _utc(moment)
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=8192)
def _instant(text: str, zone: tzinfo | None, default: tzinfo | None) -> str | None:
    try:
        if _UNIX.fullmatch(text):
            return _utc(datetime.fromtimestamp(int(text[:10]), UTC))
        for form in _FORMS:
            if found := form.fullmatch(text):
                if form is _WRITTEN or _HANGUL.search(text):
                    default = _SEOUL if _HANGUL.search(text) else None
                return _place(found.groupdict(), zone, default)
    except (ValueError, OverflowError):
        return None
    return None


def _place(found: dict[str, str | None], zone: tzinfo | None, default: tzinfo | None) -> str | None:
    day = _date(found)
    if found.get("hour") is None:
        return _utc(datetime.combine(day, time(), zone or UTC))
    local = datetime.combine(day, time(_hour(found), int(found["minute"] or 0), int(found["second"] or 0)))
    if written := found["zone"]:
        offset = offset_of(written, local, zone)
        return None if offset is None else _utc((local - offset).replace(tzinfo=UTC))
    own = zone or default
    return None if own is None else _utc(local.replace(tzinfo=own))


def _date(found: dict[str, str | None]) -> date:
    year = _year(found["year"] or "")
    if ordinal := found.get("ordinal"):
        day = date(year, 1, 1) + timedelta(days=int(ordinal) - 1)
        if day.year != year:
            raise ValueError(f"{year} has no day {ordinal}")
        return day
    word = found.get("word")
    month = _month(word) if word else int(found.get("month") or 1)
    return date(year, month, int(found.get("day") or 1))


def _year(digits: str) -> int:
    if len(digits) > 2:
        return int(digits)
    return int(digits) + (2000 if digits < "50" else 1900)  # RFC 5322 section 4.3


def _month(word: str) -> int:
    plain = "".join(c for c in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(c))
    month = _MONTHS.get(plain[:4]) or _MONTHS.get(plain[:3])
    if month is None:
        raise ValueError(f"{word!r} is no month")
    return month


def _hour(found: dict[str, str | None]) -> int:
    hour = int(found["hour"] or 0)
    half = (found.get("before") or found.get("after") or "").lower()
    if half.startswith(("p", "下", "오후")):
        return hour % 12 + 12 if hour <= 12 else hour
    if half and hour > 12:
        raise ValueError(f"{hour} o'clock is not in the morning")
    return hour % 12 if half else hour


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"

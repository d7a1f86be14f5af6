"""Times in other languages than English and Chinese, by dateparser, held to the rule that no part is invented."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, tzinfo

from recrawl.clean.dates import Day
from recrawl.model.values import Precision

_LANGUAGES = ["de", "fr", "es", "it", "pt", "nl", "ru", "pl", "ja", "ko", "sv", "da", "cs", "tr", "uk", "vi", "id"]
_COARSE = {"year": Precision.YEAR, "month": Precision.MONTH, "week": Precision.DAY, "day": Precision.DAY}
# Far from now in every part, so that a part which dateparser fills in from its base shows by being different.
_ELSEWHERE = timedelta(days=443, hours=6, minutes=17)


def may_be_foreign(text: str) -> bool:
    """Whether asking is worth its milliseconds: letters with digits, or one longer word; Han alone is Chinese."""
    if not 5 <= len(text) <= 60 or not re.search(r"[a-z]{3}|[^\W\d_A-Za-z]", text.lower()):
        return False
    if all((char.isascii() and not char.isalpha()) or "\u4e00" <= char <= "\u9fff" for char in text):
        return False
    return any(map(str.isdigit, text)) or text.isalpha()


def read_foreign(text: str, local: datetime, zone: tzinfo) -> tuple[datetime, Precision] | None:
    """First instant and precision, or None where dateparser finds no time or had to make a part of it up."""
    base = local.replace(tzinfo=None, microsecond=0)
    for parser, read in (("absolute-time", _absolute), ("relative-time", _relative)):
        here = _ask(text, parser, base)
        there = _ask(text, parser, base - _ELSEWHERE) if here else None
        if here and there:
            return read(text, here, there, base, zone)
    return None


_Answer = tuple[datetime, str]


def _ask(text: str, parser: str, base: datetime) -> _Answer | None:
    from dateparser.date import DateDataParser

    settings = {
        "RELATIVE_BASE": base,
        "PREFER_DATES_FROM": "past",
        "RETURN_TIME_AS_PERIOD": True,
        "PARSERS": [parser],
    }
    answer = DateDataParser(languages=_LANGUAGES, settings=settings).get_date_data(text)
    return (answer.date_obj, answer.period) if answer.date_obj else None


def _absolute(
    text: str, here: _Answer, there: _Answer, base: datetime, zone: tzinfo
) -> tuple[datetime, Precision] | None:
    (at, period), (other, _) = here, there
    known = _COARSE.get(period) or _clock_precision(text)
    if at == other or (known is Precision.MONTH and (at.year, at.month) == (other.year, other.month)):
        return _first(at, known, zone), known
    if known is Precision.YEAR and at.year == other.year:
        return _first(at, known, zone), known
    if at.replace(year=4) == other.replace(year=4) and re.search(r"[^\W\d]{3}", text):
        day = Day(None, at.month, at.day).first(base.date())
        return (_first(at.replace(year=day.year), known, zone), known) if day else None
    return None


def _relative(
    text: str, here: _Answer, there: _Answer, base: datetime, zone: tzinfo
) -> tuple[datetime, Precision] | None:
    (at, period), (other, _) = here, there
    known = _COARSE.get(period)
    if known is None:
        distance = int((base - at).total_seconds())
        if at.time() == other.time():
            known = _clock_precision(text)
        else:
            known = Precision.SECOND if distance % 60 else Precision.MINUTE if distance % 3600 else Precision.HOUR
    return _first(at, known, zone), known


def _clock_precision(text: str) -> Precision:
    return Precision.SECOND if re.search(r"\d\d:\d\d:\d\d", text) else Precision.MINUTE


def _first(at: datetime, known: Precision, zone: tzinfo) -> datetime:
    where = at.tzinfo or zone
    if known is Precision.YEAR:
        return datetime(at.year, 1, 1, tzinfo=where)
    if known is Precision.MONTH:
        return datetime(at.year, at.month, 1, tzinfo=where)
    if known is Precision.DAY:
        return datetime.combine(at.date(), time(), where)
    return at.replace(tzinfo=where)

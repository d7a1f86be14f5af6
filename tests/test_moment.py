"""Times: as far as the text tells them, and never further."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.clean.moment import parse_moment
from recrawl.errors import Misuse
from recrawl.model.values import Precision
from tests.checks import failures

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=timezone(timedelta(hours=8)))  # a Wednesday
ZONE = "Asia/Shanghai"


def told(text: str, now: datetime = NOW, zone: str = ZONE) -> str | None:
    moment = parse_moment(text, now, zone)
    return moment.isoformat() if moment else None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "待定",
        "TBD",
        "上架",
        "2月30日",
        "2026-02-30",
        "2026-13-01",
        "2026-01-02 25:10",
        "12:30",
        "几分钟前",
        "5 stars",
        "03/04/2026",
        "03/04",
        "v1.2.3",
        "2026-01-02T10:00:00-99:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59-10:00",
        "2026-01-02T10:00:00Z 2025-01-02T10:00:00Z",
        "99999999999 years ago",
        "9999999 天前",
        "2天内发货",
        "24小时前台",
        "x" * 500,
    ],
)
def test_what_is_no_time_or_an_unclear_one_is_none(text: str) -> None:
    assert told(text) is None


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2026", "2026"),
        ("2026 年", "2026"),
        ("2026年2月", "2026-02"),
        ("2026-02", "2026-02"),
        ("Feb 2026", "2026-02"),
        ("2026.02.03", "2026-02-03"),
        ("2026年2月3日 星期二", "2026-02-03"),
        ("二〇二六年二月三日", "2026-02-03"),
        ("26年2月3日", "2026-02-03"),
        ("20260203", "2026-02-03"),
        ("2/25/2026", "2026-02-25"),
        ("25/2/2026", "2026-02-25"),
        ("Feb 3rd, 2026", "2026-02-03"),
        ("3 February 2026", "2026-02-03"),
        ("昨天", "2026-03-03"),
        ("3天前", "2026-03-01"),
        ("2 weeks ago", "2026-02-18"),
        ("两个月前", "2026-01"),
        ("5 years ago", "2021"),
        ("上个月", "2026-02"),
        ("去年", "2025"),
        ("上周三", "2026-02-25"),
        ("周二", "2026-03-03"),
    ],
)
def test_only_the_parts_that_the_text_gives_are_known(text: str, want: str) -> None:
    assert told(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2026-02-03T04:05:06Z", "2026-02-03T04:05:06+00:00"),
        ("2026-02-03 04:05", "2026-02-03T04:05:00+08:00"),
        ("2026-02-03T24:00", "2026-02-04T00:00:00+08:00"),
        ("2026/2/3 4:05", "2026-02-03T04:05:00+08:00"),
        ("２０２６年２月３日　１２:３０", "2026-02-03T12:30:00+08:00"),
        ("2026年2月3日 下午3点半", "2026-02-03T15:30:00+08:00"),
        ("2026年2月3日 凌晨12:30", "2026-02-03T00:30:00+08:00"),
        ("2026-02-03 10:00-12:00", "2026-02-03T10:00:00+08:00"),
        ("Tue, 03 Feb 2026 04:05:06 GMT", "2026-02-03T04:05:06+00:00"),
        ("Tue, 03 Feb 26 04:05:06 -0700", "2026-02-03T04:05:06-07:00"),
        ("Tue Feb 03 04:05:06 2026", "2026-02-03T04:05:06+08:00"),
        ("Feb 3, 2026, 5:30 p.m. ET", "2026-02-03T17:30:00-05:00"),
        ("1770091506", "2026-02-03T12:05:06+08:00"),
        ("1770091506000", "2026-02-03T12:05:06+08:00"),
        ("刚刚", "2026-03-04T12:00:00+08:00"),
        ("3分鐘前", "2026-03-04T11:57:00+08:00"),
        ("半小时前 · 来自手机", "2026-03-04T11:30:00+08:00"),
        ("Posted about 2 hours ago by Kim", "2026-03-04T10:00:00+08:00"),
        ("in 1 hour and 30 minutes", "2026-03-04T13:30:00+08:00"),
        ("编辑于昨天 20:15", "2026-03-03T20:15:00+08:00"),
        ("昨晚8点", "2026-03-03T20:00:00+08:00"),
        ("Yesterday at 5:30 PM", "2026-03-03T17:30:00+08:00"),
        ("3天前 12:30", "2026-03-01T12:30:00+08:00"),
        ("发布于 02-03 08:30", "2026-02-03T08:30:00+08:00"),
    ],
)
def test_an_instant_carries_the_zone_of_the_text_or_else_of_the_source(text: str, want: str) -> None:
    assert told(text) == want


@pytest.mark.parametrize("text", ["12月31日", "12-31", "12/31", "Dec 31", "31 Dec"])
def test_a_day_without_a_year_is_never_in_the_future(text: str) -> None:
    assert told(text) == "2025-12-31"
    assert told(text, datetime(2026, 12, 31, 23, 59, tzinfo=UTC), "UTC") == "2026-12-31"


def test_a_leap_day_without_a_year_is_the_last_there_was() -> None:
    assert told("2月29日") == "2024-02-29"


def test_cst_is_what_the_sources_zone_calls_cst() -> None:
    text = "Wed, 19 Aug 2026 18:28:00 CST"
    assert told(text, zone="Asia/Shanghai") == "2026-08-19T18:28:00+08:00"
    assert told(text, zone="UTC") == "2026-08-19T18:28:00-06:00"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("vor 3 Stunden", "2026-03-04T09:00:00+08:00"),
        ("3. Februar 2026, 12:30 Uhr", "2026-02-03T12:30:00+08:00"),
        ("3 февраля 2026 г.", "2026-02-03"),
        ("février 2026", "2026-02"),
    ],
)
def test_other_languages_are_read_without_inventing_parts(text: str, want: str) -> None:
    assert told(text) == want


def test_hours_and_weeks_keep_their_precision() -> None:
    precisions = {text: parse_moment(text, NOW, ZONE) for text in ("3小时前", "1周前", "5分钟前", "10 seconds ago")}
    assert [moment.precision for moment in precisions.values() if moment] == [
        Precision.HOUR,
        Precision.DAY,
        Precision.MINUTE,
        Precision.SECOND,
    ]


def test_days_are_counted_on_the_wall_clock_and_hours_on_the_instant() -> None:
    morning_after_the_change = datetime(2026, 3, 29, 10, 0, tzinfo=UTC)
    assert told("1 day ago at 11:30", morning_after_the_change, "Europe/Berlin") == "2026-03-28T11:30:00+01:00"
    assert told("24 hours ago", morning_after_the_change, "Europe/Berlin") == "2026-03-28T11:00:00+01:00"


def test_a_zone_that_does_not_exist_is_the_users_mistake() -> None:
    with pytest.raises(Misuse, match="Mars/Base"):
        parse_moment("昨天", NOW, "Mars/Base")


def test_the_machines_zone_and_clock_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["昨天 12:30", "12月31日", "2026-02-03 04:05", "3小时前", "gestern um 12:30", "3 Feb", "1770091506"]
    before = [told(text) for text in texts]
    monkeypatch.setitem(os.environ, "TZ", "America/Los_Angeles")
    time.tzset()
    try:
        assert [told(text) for text in texts] == before
    finally:
        monkeypatch.undo()
        time.tzset()


WORDS = "in a 2 3.5 days ago last week May 2024 Dec 31 12:30 pm now - + EST"
NUMERIC = st.from_regex(r"[\d年月日时分秒前后:/. T+Z-]{0,25}")
ENGLISH = st.lists(st.sampled_from(WORDS.split()), max_size=6)
TEXTS = st.text(st.characters(), max_size=40) | NUMERIC | ENGLISH.map(" ".join)
NOWS = st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(TEXTS, NOWS)
@settings(deadline=None)
def test_no_text_raises_and_what_is_told_reads_back(text: str, now: datetime) -> None:
    moment = parse_moment(text, now, ZONE)
    if moment is None:
        return
    moment.first.astimezone(UTC)
    if 1000 <= moment.first.year < 3000:
        again = parse_moment(moment.isoformat(), now, ZONE)
        assert again is not None
        assert again.isoformat() == moment.isoformat()


def test_the_shared_rows_agree(cases: Path) -> None:
    found = failures(cases, "time")
    assert all(wrong == 0 for wrong in found.values()), found

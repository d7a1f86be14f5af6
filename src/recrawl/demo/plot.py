"""What happens on the demo site from day to day, and which of its pages misbehave in which way.

`story` is the truth against which what recrawl found can be held.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache

from recrawl.demo.content import Article, Item, Offer, everything, morning
from recrawl.errors import Misuse

DAYS = 3


class Kind(StrEnum):
    """What can happen to a page between two days. Only ADDED, EDITED, REMOVED, RESTORED and MOVED are real changes."""

    ADDED = "added"
    EDITED = "edited"
    REMOVED = "removed"  # 404, and gone from the sitemap
    RESTORED = "restored"
    MOVED = "moved"  # 301 to another address, the same content there
    NOISE = "noise"  # other bytes, the same business content
    TEMPLATE = "template"  # a new frame around all pages below `url`
    TROUBLE = "trouble"  # nothing changed, but the answer looks as if something had, or is none


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the story. `before` and `after` are the words that were exchanged; of a move, `after` is the new
    address; of a trouble, what is wrong. A `silent` edit leaves the sitemap's lastmod as it was."""

    kind: Kind
    url: str
    before: str = ""
    after: str = ""
    silent: bool = False

    def __str__(self) -> str:
        words = " -> ".join(word for word in (self.before, self.after) if word)
        return " ".join(part for part in (f"{self.kind:8}", self.url, words, "(silently)" * self.silent) if part)


class Quirk(StrEnum):
    """How a page misbehaves. What is not listed in `QUIRKS` behaves."""

    BUSY = "503 with Retry-After at the first request of a day"
    CAPTCHA = "a captcha with status 200 on day 2"
    DATED = "Last-Modified without an ETag"
    FRESH_ETAG = "another ETag at every request for the same bytes"
    GBK = "GBK bytes declared as gb2312"
    LOGIN = "302 to a login page"
    LOST = "listed, but 404"
    NOISY = "counters and a token that differ at every request, no validators"
    OLD_ADDRESS = "listed under its old address, 301 to the new one"
    SILENT = "no validators"
    SLOW = "answers after 0.3 s"


QUIRKS = {
    "/news/en/1002-library-reopens": Quirk.SILENT,
    "/news/en/1003-bridge-repairs": Quirk.FRESH_ETAG,
    "/news/en/1009-recycling": Quirk.BUSY,
    "/news/en/1010-football-cup": Quirk.SLOW,
    "/news/en/harbour-museum": Quirk.OLD_ADDRESS,
    "/news/en/lost-page": Quirk.LOST,
    "/news/en/members-letter": Quirk.LOGIN,
    "/news/harbour-notice.txt": Quirk.DATED,
    "/news/tide-tables.md": Quirk.DATED,
    "/news/zh/2001-yejian-gongjiao": Quirk.NOISY,
    "/news/zh/2003-tushuguan-yanshi": Quirk.FRESH_ETAG,
    "/news/zh/2017-dulun-hangxian": Quirk.GBK,
    "/shop/zh/HB-2013": Quirk.CAPTCHA,
}
OLD_ADDRESSES = {"/news/en/harbour-museum": "/news/en/1008-lighthouse-museum"}
CAPTCHA_DAY = 2
RESTAMPED = frozenset({"/shop/en/HB-1011", "/shop/en/HB-1012", "/shop/en/HB-1013"})
"""Their lastmod is always today, whatever happened."""
FRAME_DAY = 2
"""The day on which the shop gets another frame, and its English half another lastmod."""

PLOT = {
    2: (
        Change(Kind.EDITED, "/news/en/1005-storm-drains", "two thirds", "three quarters"),
        Change(Kind.EDITED, "/news/en/1017-night-bus", "before October", "before November"),
        Change(Kind.EDITED, "/news/zh/2009-laji-fenlei", "百分之六十八", "百分之六十六"),
        Change(Kind.EDITED, "/shop/en/HB-1001", "$49.99", "$44.99"),
        Change(Kind.EDITED, "/shop/en/HB-1019", "$245.00", "$259.00"),
        Change(Kind.EDITED, "/shop/zh/HB-2001", "¥1,299.00", "¥1,199.00"),
        Change(Kind.EDITED, "/shop/zh/HB-2005", "价格面议", "¥8,800.00"),
        Change(Kind.EDITED, "/shop/en/HB-1008", "Out of stock", "In stock"),
        Change(Kind.EDITED, "/shop/zh/HB-2007", "仅剩 3 件", "缺货"),
        Change(Kind.NOISE, "/news/en/1012-library-reopens", "12", "31"),
        Change(Kind.ADDED, "/news/en/1030-football-cup"),
        Change(Kind.ADDED, "/news/zh/2030-zuqiu-liansai"),
        Change(Kind.ADDED, "/shop/zh/HB-2028"),
        Change(Kind.REMOVED, "/news/en/1007-night-bus"),
        Change(Kind.REMOVED, "/shop/zh/HB-2024"),
        Change(Kind.MOVED, "/shop/en/HB-1022", after="/shop/en/sailcloth-tote-bag"),
        Change(Kind.TEMPLATE, "/shop/"),
    ),
    3: (
        Change(Kind.EDITED, "/news/zh/2012-laojie-xiushan", "提前六周", "提前八周"),
        Change(Kind.EDITED, "/news/en/1014-market-hall", "at the old gasworks", "behind the old gasworks", silent=True),
        Change(Kind.EDITED, "/shop/en/HB-1017", "$184.00", "$169.00"),
        Change(Kind.EDITED, "/shop/zh/HB-2004", "¥320.00", "价格面议"),
        Change(Kind.EDITED, "/shop/zh/HB-2012", "缺货", "有货"),
        Change(Kind.RESTORED, "/news/en/1007-night-bus"),
    ),
}


@dataclass(slots=True)
class World:
    """The site on one day: what stands at which address, which address moved where, and the lastmod of each item."""

    day: int
    items: dict[str, Item]
    moved: dict[str, str] = field(default_factory=dict)
    lastmod: dict[str, str] = field(default_factory=dict)


def check_day(day: int) -> int:
    """The day itself. Raises Misuse for one that the demo does not have."""
    if not 1 <= day <= DAYS:
        raise Misuse(f"The demo site has no day {day}", action=f"Take a day from 1 to {DAYS}.")
    return day


@cache
def world(day: int) -> World:
    """The site as it stands on a day, from 1 to DAYS."""
    check_day(day)
    later = {change.url for changes in PLOT.values() for change in changes if change.kind is Kind.ADDED}
    items = {path: item for path, item in everything().items() if path not in later}
    moved = dict(OLD_ADDRESSES)
    lastmod = {path: item.modified.isoformat() for path, item in items.items()}
    for today in range(2, day + 1):
        for change in PLOT[today]:
            _apply(change, today, items, moved)
            if change.url in items and not change.silent:
                lastmod[change.url] = morning(today).isoformat()
            elif change.after in items:
                lastmod[change.after] = morning(today).isoformat()
    for path, item in items.items():
        if path in RESTAMPED:
            lastmod[path] = morning(day).date().isoformat()
        elif path in QUIRKS or (isinstance(item, Offer) and item.lang == "zh"):
            lastmod.pop(path, None)
        elif isinstance(item, Offer) and day >= FRAME_DAY:
            lastmod[path] = max(lastmod[path][:10], morning(FRAME_DAY).date().isoformat())
    return World(day, items, moved, lastmod)


def _apply(change: Change, day: int, items: dict[str, Item], moved: dict[str, str]) -> None:
    path, now = change.url, morning(day)
    match change.kind:
        case Kind.EDITED:
            items[path] = _exchanged(items[path], change.before, change.after, day)
        case Kind.NOISE:
            article = items[path]
            assert isinstance(article, Article)
            items[path] = replace(article, noise=change.after, modified=now)
        case Kind.ADDED:
            item = everything()[path]
            dates = {"published": now, "modified": now} if isinstance(item, Article) else {"modified": now}
            items[path] = replace(item, **dates)  # type: ignore[arg-type]
        case Kind.RESTORED:
            items[path] = replace(everything()[path], modified=now)
        case Kind.REMOVED:
            del items[path]
        case Kind.MOVED:
            items[change.after] = replace(items.pop(path), path=change.after, modified=now)
            moved[path] = change.after
        case Kind.TEMPLATE | Kind.TROUBLE:
            pass


def _exchanged(item: Item, before: str, after: str, day: int) -> Item:
    """The item with some of its words exchanged. A plot whose words are not in the item is wrong, and raises."""
    words: dict[str, object] = {}
    for name in (part.name for part in fields(item)):
        value = getattr(item, name)
        if isinstance(value, str) and before in value:
            words[name] = value.replace(before, after)
        elif isinstance(value, tuple) and any(before in text for text in value):
            words[name] = tuple(text.replace(before, after) for text in value)
    if not words:
        raise ValueError(f"{before!r} does not stand in {item.path}")
    return replace(item, modified=morning(day), **words)  # type: ignore[arg-type]


def story(day: int) -> list[Change]:
    """What truly happened to the site on a day, then what only looks as if it had. On day 1 everything is new."""
    check_day(day)
    changes = PLOT[day] if day in PLOT else tuple(Change(Kind.ADDED, path) for path in world(day).items)
    return [
        *changes,
        *(
            Change(Kind.TROUBLE, path, after=str(quirk))
            for path, quirk in QUIRKS.items()
            if quirk is not Quirk.CAPTCHA or day == CAPTCHA_DAY
        ),
    ]

"""What the demo site is about: the news and the shop of a harbour town, in English and Chinese.

Everything here is the same on every machine and in every year: no clock, no randomness.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache
from importlib.resources import files

ZONE = timezone(timedelta(hours=8))
MONDAY = datetime(2025, 6, 2, 8, 0, tzinfo=ZONE)
"""When day 1 begins. Long past, so that no reader takes a date of the site for one of the future."""

_PLACES = {"en": ("Northgate", "Millbank", "Eastquay"), "zh": ("临江区", "望海区", "青石镇")}
_PEOPLE = {
    "en": ("Maud Harrow", "Idris Pell", "Tamsin Okoro", "Joan Whitlock", "Piet Lander", "Ruth Amadi", "Owen Sear"),
    "zh": ("沈若安", "周启明", "李喆", "韩素云", "吴海潮", "林晚", "郑百川"),
}
_AUTHORS = {"en": ("Nell Corrie", "Hugh Banting", "Asha Verity"), "zh": ("陈一舟", "方晓岚", "许知行")}
_FIRST_NUMBER = {"en": 1001, "zh": 2001}


@dataclass(frozen=True, slots=True)
class Article:
    """One piece of news. `modified` is when its text last changed; `noise` is what the page shows beside its text."""

    path: str
    number: int
    lang: str
    title: str
    author: str
    published: datetime
    paragraphs: tuple[str, ...]
    modified: datetime
    noise: str = "12"


@dataclass(frozen=True, slots=True)
class Offer:
    """One product of the shop. Price and stock are the words that a visitor sees."""

    path: str
    sku: str
    lang: str
    name: str
    price: str
    stock: str
    blurb: str
    modified: datetime


@dataclass(frozen=True, slots=True)
class Note:
    """A text that is no HTML page."""

    path: str
    media_type: str
    text: str
    modified: datetime


Item = Article | Offer | Note


def morning(day: int) -> datetime:
    """Eight o'clock of a day of the demo; day 1 is a Monday."""
    return MONDAY + timedelta(days=day - 1)


def _data(name: str) -> str:
    return files("recrawl.demo").joinpath("data", name).read_text(encoding="utf-8")


def _articles(lang: str) -> list[Article]:
    topics = [block.strip().split("\n", 1) for block in _data(f"news.{lang}.txt").split("===")]
    found = []
    for index in range(len(topics) * len(_PLACES[lang])):
        variant, topic = divmod(index, len(topics))
        heading, text = topics[topic]
        slug, title = heading.split(" | ")
        paragraphs = text.strip().split("\n\n")
        # Each district tells its story with another paragraph left out, so that no two pages are near copies.
        del paragraphs[2 + variant]
        words = {
            "place": _PLACES[lang][variant],
            "person": _PEOPLE[lang][index % len(_PEOPLE[lang])],
            "count": str(42 + 37 * index % 400),
        }
        number = _FIRST_NUMBER[lang] + index
        published = MONDAY - timedelta(days=1 + 7 * index % 26, minutes=11 * index)
        found.append(
            Article(
                path=f"/news/{lang}/{number}-{slug}",
                number=number,
                lang=lang,
                title=title.format(**words),
                author=_AUTHORS[lang][index % len(_AUTHORS[lang])],
                published=published,
                paragraphs=tuple(paragraph.format(**words) for paragraph in paragraphs),
                modified=published,
            )
        )
    return found


def _offers() -> list[Offer]:
    rows = [line.split("\t") for line in _data("goods.tsv").splitlines()]
    return [
        Offer(f"/shop/{lang}/{sku}", sku, lang, name, price, stock, blurb, MONDAY - timedelta(days=1 + index % 40))
        for index, (sku, lang, name, price, stock, blurb) in enumerate(rows)
    ]


def _notes() -> list[Note]:
    written = MONDAY - timedelta(days=3)
    return [
        Note("/news/tide-tables.md", "text/markdown", _data("tide-tables.md"), written),
        Note("/news/harbour-notice.txt", "text/plain", _data("harbour-notice.txt"), written),
    ]


@cache
def everything() -> dict[str, Item]:
    """Every item that is ever on the site, by path, in its first form."""
    items: list[Item] = [*_articles("en"), *_articles("zh"), *_offers(), *_notes()]
    return {item.path: item for item in items}

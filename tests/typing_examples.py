"""Declarations as users write them: they must satisfy a strict type checker, and load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from recrawl.declare import (
    Adaptive,
    Api,
    Bearer,
    Count,
    Deletion,
    Feed,
    Identity,
    Moment,
    Offset,
    Pace,
    Price,
    Record,
    Since,
    Sitemap,
    Source,
    Stock,
    Text,
    Url,
    Urls,
    Volatile,
    css,
    env,
    jmes,
    jsonld,
    meta,
    names,
    xpath,
)
from recrawl.extract.fetched import Fetched


class Book(Record, table="books", key="upc"):
    upc: str = css("table td::text")
    title: str = css("h1::text")
    price: Price | None = css(".price::text")
    viewers: Volatile[int | None] = css(".viewers::text")


books = Source(
    "books",
    find=Sitemap("https://books.example/sitemap.xml", match=r"/book/"),
    read=Book,
    page_id="upc",
    currency="GBP",
    revisit=Adaptive(min="6h", max="30d"),
)

news = Source(
    "news",
    find=[Feed("https://news.example/feed.xml"), Sitemap("https://news.example/news-sitemap.xml", exhaustive=False)],
    page_id=re.compile(r"/a-(\d+)"),
    zone="Asia/Shanghai",
)


class Item(Record, table="items", key="id", history=True, updated="updated_at"):
    id: int
    name: str = jmes("attributes.name")
    price: Price | None = names("price", "salePrice")
    updated_at: Moment


items = Source(
    "items",
    find=Api(
        "https://api.example/v1/items",
        items="data",
        id="id",
        updated="updated_at",
        since=Since("updated_since", overlap="10m", missing="raise"),
        pages=Offset(),
    ),
    read=Item,
    order="updated",
    auth=Bearer(env("API_TOKEN")),
    full_scan="1d",
)


class Everything(Record, table="everything", key=("shop", "sku"), each="li.product", version="revision"):
    shop: str = meta("og:site_name")
    sku: str = css("::attr(data-sku)")
    revision: int = css(".revision::text", default=0)
    rating: float | None = jsonld("Product.aggregateRating.ratingValue")
    sold: Count | None = css(".sold::text")
    stock: Stock = css(".stock::text", default=Stock.UNKNOWN)
    weight: Decimal | None = xpath(".//b/text()")
    image: Url | None = css("img::attr(src)")
    about: Text | None = css(".about")
    tags: list[str] = css(".tag::text", default=[])
    seen: Volatile[bool] = css(".seen", default=False)


def read_shelf(page: Fetched) -> Iterator[Book]:
    for title in page.css("h2::text"):
        yield Book(upc=f"{page.url}#{title}", title=title, price=None, viewers=1)


shelves = Source(
    "shelves",
    find=Urls(["https://books.example/shelf/1", "https://books.example/shelf/2"]),
    read=read_shelf,
    identity=Identity(drop=("ref",), slash=True),
    pace=Pace(concurrency=2, delay="1s"),
    deletion=Deletion(suspect_after=3),
    hosts=["cdn.books.example"],
)

"""Scrapy: the same title, links and text as items to SQLite; with a third argument through its RFC 2616 cache.

python -m benchmarks.peers.scrapy_peer LISTING DATABASE [CACHE]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import Response

from benchmarks.peers.items import CONCURRENCY, Items, Stopwatch, urls_of

SETTINGS = {
    "AUTOTHROTTLE_ENABLED": False,
    "CONCURRENT_REQUESTS": CONCURRENCY,
    "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
    "DOWNLOAD_DELAY": 0,
    "LOG_LEVEL": "ERROR",
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
}
watch = Stopwatch()


class Pages(Spider):
    name = "pages"

    def parse(self, response: Response, *_: Any, **__: Any) -> Iterator[dict[str, Any]]:
        # string() gives Scrapy its fastest way to a text: `body ::text` would double the time of a page.
        yield {
            "url": response.url,
            "title": response.css("title::text").get(),
            "links": [response.urljoin(link) for link in response.css("a::attr(href)").getall()],
            "text": response.xpath("string(//body)").get() or "",
        }


class Store:
    """The pipeline."""

    def __init__(self, crawler: Crawler) -> None:
        self._items = Items(crawler.settings["DATABASE"], watch)
        crawler.signals.connect(watch.begin, signals.request_reached_downloader)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Store:
        return cls(crawler)

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        self._items.add(**item)
        return item

    def close_spider(self) -> None:
        self._items.close()
        watch.tell(self._items.count)


def main(listing: str, database: str, cache: str | None = None) -> None:
    settings: dict[str, Any] = {**SETTINGS, "DATABASE": database, "ITEM_PIPELINES": {Store: 100}}
    if cache is not None:
        settings |= {
            "HTTPCACHE_ENABLED": True,
            "HTTPCACHE_DIR": str(Path(cache).resolve()),
            "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
        }
    process = CrawlerProcess(settings)
    process.crawl(Pages, start_urls=urls_of(listing))
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])

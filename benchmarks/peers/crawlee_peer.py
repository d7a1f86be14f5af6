"""Crawlee: its HTTP crawler with Parsel; the same title, links and text to SQLite.

python -m benchmarks.peers.crawlee_peer LISTING DATABASE
"""

from __future__ import annotations

import asyncio
import logging
import sys
from urllib.parse import urljoin

from crawlee import ConcurrencySettings
from crawlee.crawlers import BasicCrawlingContext, ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

from benchmarks.peers.items import CONCURRENCY, Items, Stopwatch, urls_of


async def main(listing: str, database: str) -> None:
    watch = Stopwatch()
    items = Items(database, watch)
    crawler = ParselCrawler(
        concurrency_settings=ConcurrencySettings(CONCURRENCY, CONCURRENCY, desired_concurrency=CONCURRENCY),
        storage_client=MemoryStorageClient(),
        respect_robots_txt_file=False,
        configure_logging=False,
    )

    async def begin(_: BasicCrawlingContext) -> None:
        watch.begin()

    async def read(context: ParselCrawlingContext) -> None:
        page = context.selector
        url = context.request.url
        items.add(
            url,
            title=page.css("title::text").get(),
            links=[urljoin(url, link) for link in page.css("a::attr(href)").getall()],
            text=page.xpath("string(//body)").get() or "",
        )

    crawler.pre_navigation_hook(begin)
    crawler.router.default_handler(read)
    await crawler.run(urls_of(listing))
    items.close()
    watch.tell(items.count)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    asyncio.run(main(*sys.argv[1:]))

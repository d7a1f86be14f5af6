"""A spider of offers, run in a process of its own: a listing says when each was updated, and what a page shows is an
item. Told on standard output: each item when Scrapy has counted it as scraped, and the statistics at the end.

python -m tests.support.spider SITE
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response


class Offers(scrapy.Spider):
    name = "offers"

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        for link in json.loads(response.text):
            hint = {"id": link["sku"], "updated": link["updated"]}
            yield response.follow(link["href"], self.parse_offer, meta={"recrawl": hint})

    def parse_offer(self, response: Response) -> Iterator[Any]:
        yield json.loads(response.text)


def main(site: str) -> None:
    process = CrawlerProcess(
        {
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "ITEM_PIPELINES": {"recrawl.contrib.scrapy.RecrawlPipeline": 900},
            "SPIDER_MIDDLEWARES": {"recrawl.contrib.scrapy.SkipUnchanged": 100},
            "RECRAWL_SOURCE": os.environ.get("SPIDER_SOURCE"),
            "RECRAWL_STORE": os.environ.get("SPIDER_STORE"),
        }
    )
    crawler = process.create_crawler(Offers)
    crawler.signals.connect(_tell, signals.item_scraped, weak=False)
    process.crawl(crawler, start_urls=[f"{site}/offers"])
    process.start()
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    print(json.dumps({name: count for name, count in stats.items() if isinstance(count, int)}))


def _tell(item: dict[str, Any]) -> None:
    print(json.dumps(item["sku"]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

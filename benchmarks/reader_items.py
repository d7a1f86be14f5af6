"""The 200,000 items whose sitemaps tell when each changed. `RECRAWL_BENCH` is the site's address."""

import os

from recrawl import Record, Sitemap, Source, Url, css


class Item(Record, table="items", key="url"):
    url: Url
    title: str = css("title::text")


items = Source(
    "items",
    find=Sitemap(os.environ["RECRAWL_BENCH"] + "/items.xml"),
    read=Item,
    forced_looks=0,  # 1 % would be 2,000 requests: what is measured is the comparison
)

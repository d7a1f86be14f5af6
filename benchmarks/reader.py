"""What recrawl reads of each page in the benchmark: the same as its peers. `RECRAWL_BENCH` is the site's address."""

import os

from recrawl import Adaptive, Record, Sitemap, Source, Url, css

# A `Url` is one of the web: what these stand for cannot become one, and would make a page's record invalid.
_OTHER = ", ".join(f'[href^="{scheme}:" i]' for scheme in ("javascript", "mailto", "ftp", "news"))


class Page(Record, table="docs", key="url"):
    url: Url
    title: str | None = css("title::text")
    links: list[Url] = css(f"a[href]:not({_OTHER})::attr(href)", default=[])
    text: str = css("body::text", default="")


pages = Source(
    "pages",
    find=Sitemap(os.environ["RECRAWL_BENCH"] + "/pages.xml"),
    read=Page,
    revisit=Adaptive(min="0s"),  # due again in the very next run
    forced_looks=0.0,  # the peers trust the server too
)

"""Keep a local, versioned database in step with websites and APIs.

The names below are the public ones. They are imported when they are first used, so that `import recrawl` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recrawl.version import __version__ as __version__

if TYPE_CHECKING:
    from recrawl.clean.count import parse_count
    from recrawl.clean.moment import parse_moment
    from recrawl.clean.price import parse_price
    from recrawl.clean.stock import parse_stock
    from recrawl.decide.urls import canonical_url
    from recrawl.declare import (
        Adaptive,
        AfterId,
        Api,
        Article,
        Auto,
        Basic,
        Bearer,
        Budget,
        Count,
        Deletion,
        Derived,
        Failing,
        Feed,
        Finder,
        Identity,
        Keywords,
        Links,
        Listing,
        Moment,
        NextLink,
        NextToken,
        Offset,
        Pace,
        PageNumber,
        Precision,
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
        from_url,
        jmes,
        jsonld,
        meta,
        names,
        xpath,
    )
    from recrawl.discover.feed import read_feed
    from recrawl.discover.sitemap import read_sitemap
    from recrawl.errors import Misuse, Permanent, RecrawlError, StoreUnavailable, Transient
    from recrawl.fetch.robots import robots_allows
    from recrawl.operate.sync import sync


_HOMES = {
    "sync": "recrawl.operate.sync",
    "canonical_url": "recrawl.decide.urls",
    "read_sitemap": "recrawl.discover.sitemap",
    "read_feed": "recrawl.discover.feed",
    "robots_allows": "recrawl.fetch.robots",
    "parse_price": "recrawl.clean.price",
    "parse_moment": "recrawl.clean.moment",
    "parse_count": "recrawl.clean.count",
    "parse_stock": "recrawl.clean.stock",
    "Misuse": "recrawl.errors",
    "Permanent": "recrawl.errors",
    "RecrawlError": "recrawl.errors",
    "StoreUnavailable": "recrawl.errors",
    "Transient": "recrawl.errors",
}

__all__ = [
    "Adaptive",
    "AfterId",
    "Api",
    "Article",
    "Auto",
    "Basic",
    "Bearer",
    "Budget",
    "Count",
    "Deletion",
    "Derived",
    "Failing",
    "Feed",
    "Finder",
    "Identity",
    "Keywords",
    "Links",
    "Listing",
    "Misuse",
    "Moment",
    "NextLink",
    "NextToken",
    "Offset",
    "Pace",
    "PageNumber",
    "Permanent",
    "Precision",
    "Price",
    "Record",
    "RecrawlError",
    "Since",
    "Sitemap",
    "Source",
    "Stock",
    "StoreUnavailable",
    "Text",
    "Transient",
    "Url",
    "Urls",
    "Volatile",
    "canonical_url",
    "css",
    "env",
    "from_url",
    "jmes",
    "jsonld",
    "meta",
    "names",
    "parse_count",
    "parse_moment",
    "parse_price",
    "parse_stock",
    "read_feed",
    "read_sitemap",
    "robots_allows",
    "sync",
    "xpath",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'recrawl' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "recrawl.declare")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

"""How the demo site is declared: what a user of recrawl would write for it."""

from __future__ import annotations

from recrawl.declare import Feed, Price, Record, Sitemap, Source, Stock, Volatile, css


class Product(Record, table="products", key="sku", history=True):
    """One product of the shop. The number of viewers is kept, and is no reason for a new version."""

    sku: str = css(".sku::text")
    name: str = css("h1.name::text")
    price: Price | None = css(".price::text")
    stock: Stock = css(".stock::text")
    viewers: Volatile[int | None] = css(".viewers::text")


def declarations(base_url: str) -> list[Source]:
    """The two sources of the demo site that stands at `base_url` (without a slash at its end)."""
    shop = Source(
        "shop",
        find=Sitemap(f"{base_url}/sitemaps/shop.xml", match=r"/shop/"),
        read=Product,
        page_id="sku",
        currency="CNY",
        zone="Asia/Shanghai",
    )
    news = Source(
        "news",
        find=[Sitemap(f"{base_url}/sitemaps/news.xml", match=r"/news/"), Feed(f"{base_url}/feed.xml")],
        zone="Asia/Shanghai",
    )
    return [shop, news]

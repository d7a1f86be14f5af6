"""What tells a machine which pages the demo site has: robots.txt, sitemaps, a feed and a JSON API."""

from __future__ import annotations

import json
import re
from email.utils import format_datetime
from html import escape
from urllib.parse import parse_qs

from recrawl.demo.content import Article, Offer, morning
from recrawl.demo.plot import QUIRKS, Quirk, World

_LISTED_ANYWAY = (Quirk.LOST, Quirk.LOGIN, Quirk.OLD_ADDRESS)
_FEED_LENGTH = 20
_PER_PAGE = 20
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"


def robots(base: str) -> str:
    return f"User-agent: *\nDisallow: /private/\n\nSitemap: {base}/sitemap.xml\n"


def sitemap_index(world: World, base: str) -> str:
    parts = "".join(
        f"  <sitemap><loc>{base}/sitemaps/{name}.xml</loc>"
        f"<lastmod>{morning(world.day).isoformat()}</lastmod></sitemap>\n"
        for name in ("news", "shop")
    )
    return f'{_XML}<sitemapindex xmlns="{_SITEMAPS}">\n{parts}</sitemapindex>\n'


def sitemap(world: World, base: str, section: str) -> str:
    """The pages below `/{section}/`. An address that moved today is still listed, as it is on most sites."""
    paths = {path: path for path in world.items if path.startswith(f"/{section}/")}
    for old, new in world.moved.items():
        if new in paths and world.items[new].modified == morning(world.day):
            paths[new] = old
    listed = [*paths.items()]
    listed += [
        (path, path) for path, quirk in QUIRKS.items() if quirk in _LISTED_ANYWAY and path.startswith(f"/{section}/")
    ]
    parts = "".join(f"  <url><loc>{base}{path}</loc>{_lastmod(world, key)}</url>\n" for key, path in listed)
    return f'{_XML}<urlset xmlns="{_SITEMAPS}">\n{parts}</urlset>\n'


def _lastmod(world: World, path: str) -> str:
    value = world.lastmod.get(path)
    return f"<lastmod>{value}</lastmod>" if value else ""


def feed(world: World, base: str) -> str:
    """RSS 2.0 with the latest articles. Its links carry a tracking parameter, as those of real feeds do."""
    articles = [item for item in world.items.values() if isinstance(item, Article)]
    latest = sorted(articles, key=lambda item: (item.published, item.path), reverse=True)[:_FEED_LENGTH]
    items = "".join(
        f"    <item><title>{escape(item.title)}</title><link>{base}{item.path}?utm_source=rss</link>"
        f'<guid isPermaLink="false">gazette-{item.number}</guid>'
        f"<pubDate>{format_datetime(item.published)}</pubDate>"
        f"<description>{escape(item.paragraphs[0])}</description></item>\n"
        for item in latest
    )
    return (
        f'{_XML}<rss version="2.0"><channel><title>The Saltmere Gazette 盐湾日报</title><link>{base}/</link>'
        f"<description>News of the harbour</description>\n{items}</channel></rss>\n"
    )


def api_items(world: World, base: str, query: str) -> str | None:
    """One page of the shop's products as JSON, `?page=` from 1; None if the page number is none."""
    wanted = parse_qs(query).get("page", ["1"])[0]
    if not re.fullmatch(r"[1-9][0-9]{0,3}", wanted):
        return None
    page = int(wanted)
    offers = [item for item in world.items.values() if isinstance(item, Offer)]
    pages = -(-len(offers) // _PER_PAGE)
    part = offers[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    answer = {
        "page": page,
        "pages": pages,
        "total": len(offers),
        "next": f"{base}/api/items?page={page + 1}" if page < pages else None,
        "items": [
            {
                "id": int(item.sku[3:]),
                "sku": item.sku,
                "name": item.name,
                "price": item.price,
                "stock": item.stock,
                "url": base + item.path,
                "updated_at": item.modified.isoformat(),
            }
            for item in part
        ],
    }
    return json.dumps(answer, ensure_ascii=False, indent=1)

"""The demo site at work, on a free port of the loopback address.

It changes only by `DemoSite.step`; nothing that a client sends changes it.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import format_datetime
from http import HTTPStatus
from typing import Self

from recrawl.demo import listings, pages
from recrawl.demo.content import Article, Note, Offer
from recrawl.demo.pages import Visit
from recrawl.demo.plot import CAPTCHA_DAY, FRAME_DAY, QUIRKS, Change, Quirk, World, check_day, story, world
from recrawl.demo.server import Reply, Server, revalidated

_HTML = "text/html; charset=utf-8"
_XML = "application/xml; charset=utf-8"
_SLOW_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Served:
    """One request as the site saw it; `conditional` if it carried validators."""

    day: int
    target: str
    status: int
    conditional: bool


class DemoSite:
    """The site, a context manager: entering it starts the server, leaving it stops the server.

    `url` is where it stands, without a slash at its end; `served` has every request so far, in order.
    """

    def __init__(self) -> None:
        self.day = 1
        self.served: list[Served] = []
        self._visits: Counter[str] = Counter()
        self._today: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server = Server(self.answer)
        self.url = self._server.url

    def start(self) -> str:
        """Begin to answer, and return the site's URL."""
        self._server.start()
        return self.url

    def stop(self) -> None:
        """Answer no more, not even on connections that are open."""
        self._stopping.set()
        self._server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self, day: int) -> None:
        """Let the site be as it is on a day, from 1 to DAYS. Raises Misuse for any other."""
        check_day(day)
        with self._lock:
            self.day = day
            self._today.clear()

    def story(self, day: int) -> list[Change]:
        """What truly happens on a day, with absolute URLs: the truth against which a crawl can be held."""
        return [
            replace(change, url=self.url + change.url, after=self.url * change.after.startswith("/") + change.after)
            for change in story(day)
        ]

    def answer(self, target: str, headers: Mapping[str, str]) -> Reply:
        """The answer to a GET of a request target; `headers` by lower-case names."""
        path, _, query = target.partition("?")
        with self._lock:
            self._visits[path] += 1
            self._today[path] += 1
            visit = Visit(path, self._visits[path])
            first_today = self._today[path] == 1
            today = world(self.day)
        reply = self._document(today, path, query) or self._page(today, visit, first_today)
        reply = revalidated(reply, headers)
        conditional = "if-none-match" in headers or "if-modified-since" in headers
        with self._lock:
            self.served.append(Served(today.day, target, reply.status, conditional))
        return reply

    def _document(self, today: World, path: str, query: str) -> Reply | None:
        base, items = self.url, today.items.values()
        match path:
            case "/robots.txt":
                return _tagged(listings.robots(base), "text/plain; charset=utf-8")
            case "/sitemap.xml":
                return _tagged(listings.sitemap_index(today, base), _XML)
            case "/sitemaps/news.xml":
                return _tagged(listings.sitemap(today, base, "news"), _XML)
            case "/sitemaps/shop.xml":
                return _tagged(listings.sitemap(today, base, "shop"), _XML)
            case "/feed.xml":
                return _tagged(listings.feed(today, base), "application/rss+xml; charset=utf-8")
            case "/api/items":
                text = listings.api_items(today, base, query)
                if text is None:
                    return Reply(HTTPStatus.BAD_REQUEST, b'{"error": "page"}', {"Content-Type": "application/json"})
                return _tagged(text, "application/json")
            case "/":
                return _html(pages.listing("Saltmere Harbour Press", list(items)[:12]))
            case "/news/":
                return _html(pages.listing("News", (item for item in items if isinstance(item, Article))))
            case "/shop/":
                return _html(pages.listing("Shop", (item for item in items if isinstance(item, Offer))))
            case "/login":
                return _html(pages.login())
            case _ if path.startswith("/private/"):
                return _html(pages.private())
        return None

    def _page(self, today: World, visit: Visit, first_today: bool) -> Reply:
        path, quirk = visit.path, QUIRKS.get(visit.path)
        if path in today.moved:
            return Reply(HTTPStatus.MOVED_PERMANENTLY, headers={"Location": self.url + today.moved[path]})
        if quirk is Quirk.LOGIN:
            return Reply(HTTPStatus.FOUND, headers={"Location": f"/login?next={path}"})
        item = today.items.get(path)
        if item is None:
            return Reply(HTTPStatus.NOT_FOUND, pages.missing().encode(), {"Content-Type": _HTML})
        if quirk is Quirk.BUSY and first_today:
            return Reply(HTTPStatus.SERVICE_UNAVAILABLE, b"Busy\n", {"Content-Type": "text/plain", "Retry-After": "1"})
        if quirk is Quirk.CAPTCHA and today.day == CAPTCHA_DAY:
            return _html(pages.captcha())
        if quirk is Quirk.SLOW:
            self._stopping.wait(_SLOW_SECONDS)
        if isinstance(item, Article):
            return self._article(item, visit, quirk)
        if isinstance(item, Offer):
            new_frame = today.day >= FRAME_DAY
            # Weak (RFC 9110, section 8.8.1): it stands for all that is not drawn anew at every request.
            tag = f'W/"{_digest(repr((item, new_frame)))}"'
            return _html(pages.offer(item, self.url, visit, new_frame=new_frame), {"ETag": tag})
        return Reply(
            HTTPStatus.OK, item.text.encode(), {"Content-Type": f"{item.media_type}; charset=utf-8", **_modified(item)}
        )

    def _article(self, item: Article, visit: Visit, quirk: Quirk | None) -> Reply:
        text = pages.article(item, self.url, visit if quirk is Quirk.NOISY else None)
        tag = {"ETag": f'"{_digest(repr(item))}"'}
        match quirk:
            case Quirk.NOISY | Quirk.SILENT:
                return _html(text)
            case Quirk.FRESH_ETAG:
                return _html(text, {"ETag": f'"{visit.token}"'})
            case Quirk.GBK:
                body = text.replace('charset="utf-8"', 'charset="gb2312"').encode("gbk")
                return Reply(HTTPStatus.OK, body, {"Content-Type": "text/html; charset=gb2312", **tag})
            case _:
                return _html(text, tag | _modified(item) if item.number % 2 else tag)


def _html(text: str, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(HTTPStatus.OK, text.encode(), {"Content-Type": _HTML, **(headers or {})})


def _tagged(text: str, content_type: str) -> Reply:
    return Reply(HTTPStatus.OK, text.encode(), {"Content-Type": content_type, "ETag": f'"{_digest(text)}"'})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _modified(item: Article | Note) -> dict[str, str]:
    return {"Last-Modified": format_datetime(item.modified.astimezone(UTC), usegmt=True)}

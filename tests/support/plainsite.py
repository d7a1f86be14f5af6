"""A small plain site for tests of crashes and races: a few hundred pages behind a sitemap index, all deterministic."""

from __future__ import annotations

import threading
from collections.abc import Callable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

PAGES = 300
_PER_SITEMAP = 100


class PlainSite:
    """`on_response` is called after each answer with the number of answers so far."""

    def __init__(self, pages: int = PAGES) -> None:
        self.pages = pages
        self.served = 0
        self.step = 1
        self.requests: list[str] = []
        self.on_response: Callable[[int], None] = lambda _: None
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

            def do_GET(self) -> None:
                status, kind, body, headers = site.answer(self.path)
                etag = f'"{sha256(body).hexdigest()[:16]}"'
                if status == 200 and self.headers.get("If-None-Match") == etag:
                    status, body = 304, b""
                self.send_response(status)
                self.send_header("Content-Type", kind)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status in (200, 304):
                    self.send_header("ETag", etag)
                if status != 304:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()
                site._count(self.path)

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                """A client that was killed is no news."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _count(self, path: str) -> None:
        with self._lock:
            self.served += 1
            self.requests.append(path)
            self.on_response(self.served)

    def answer(self, path: str) -> tuple[int, str, bytes, dict[str, str]]:
        if path == "/robots.txt":
            return 200, "text/plain", f"User-agent: *\nSitemap: {self.url}/sitemap.xml\n".encode(), {}
        if path == "/sitemap.xml":
            parts = range(-(-self.pages // _PER_SITEMAP))
            rows = "".join(f"<sitemap><loc>{self.url}/sitemap-{part}.xml</loc></sitemap>" for part in parts)
            return 200, "application/xml", f"<sitemapindex>{rows}</sitemapindex>".encode(), {}
        if path.startswith("/sitemap-"):
            part = int(path[9:-4])
            numbers = range(part * _PER_SITEMAP, min(self.pages, (part + 1) * _PER_SITEMAP))
            rows = "".join(
                f"<url><loc>{self.url}/p/{number}</loc><lastmod>{self._modified(number)}</lastmod></url>"
                for number in numbers
            )
            return 200, "application/xml", f"<urlset>{rows}</urlset>".encode(), {}
        if path.startswith("/p/") and path[3:].isdigit() and int(path[3:]) < self.pages:
            return self._page(int(path[3:]))
        if path.startswith("/new/"):
            return self._html(int(path[5:]))
        return 404, "text/plain", b"not here", {}

    def _modified(self, number: int) -> str:
        return f"2026-01-{1 + (self.step if number % 10 == 0 else 0):02d}"

    def _page(self, number: int) -> tuple[int, str, bytes, dict[str, str]]:
        if number % 50 == 7:
            return 301, "text/plain", b"moved", {"Location": f"{self.url}/new/{number}"}
        if number % 50 == 13:
            return 404, "text/plain", b"gone", {}
        if number % 50 == 21:
            text = f"<p>Page {number} has no key. </p>" * 20
            return 200, "text/html", f"<html><body><h1>Page {number}</h1>{text}</body></html>".encode(), {}
        return self._html(number)

    def _html(self, number: int) -> tuple[int, str, bytes, dict[str, str]]:
        edit = self.step if number % 10 == 0 else 1
        rows = "".join(f"<li class=part data-n={index}>part {index} of {number}</li>" for index in range(3))
        text = f"<p>Edition {edit} of page {number}. </p>" * 20
        body = (
            f"<html><head><title>Page {number}</title></head><body><h1>Page {number}</h1>"
            f"<b class=code>P{number // 2 if number % 100 == 31 else number}</b><i class=edition>{edit}</i>"
            f"{text}<ul>{rows}</ul></body></html>"
        )
        return 200, "text/html; charset=utf-8", body.encode(), {}

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

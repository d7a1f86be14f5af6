"""A site whose every answer a test sets, and that remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


@dataclass(frozen=True)
class Reply:
    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def raw(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass(frozen=True)
class Asked:
    path: str
    headers: Mapping[str, str]

    @property
    def conditional(self) -> bool:
        return "If-None-Match" in self.headers or "If-Modified-Since" in self.headers


class ScriptedSite:
    """`site["/a"] = Reply(...)`, or a list of replies of which the last one stays. What is not set is a 404."""

    def __init__(self) -> None:
        self._replies: dict[str, list[Reply]] = {}
        self.asked: list[Asked] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

            def do_GET(self) -> None:
                reply = site._next(self.path, dict(self.headers))
                self.send_response(reply.status)
                headers = {"Content-Type": "text/html; charset=utf-8", **reply.headers}
                body = reply.raw if reply.status != 304 else b""
                if reply.status != 304:
                    headers.setdefault("Content-Length", str(len(body)))
                # An answer that promises more than it holds ends with its connection.
                self.close_connection |= int(headers.get("Content-Length", 0)) > len(body)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                """A client that goes away is no news."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __setitem__(self, path: str, reply: Reply | list[Reply]) -> None:
        self._replies[path] = list(reply) if isinstance(reply, list) else [reply]

    def __delitem__(self, path: str) -> None:
        del self._replies[path]

    def _next(self, path: str, headers: Mapping[str, str]) -> Reply:
        with self._lock:
            self.asked.append(Asked(path, headers))
            replies = self._replies.get(path)
            if not replies:
                return Reply("not here", 404)
            return replies.pop(0) if len(replies) > 1 else replies[0]

    def sitemap(self, pages: Mapping[str, str | None] | Iterable[str], path: str = "/sitemap.xml") -> None:
        """Set a sitemap of paths (or absolute URLs), with their lastmods where there are any."""
        dated = pages if isinstance(pages, Mapping) else dict.fromkeys(pages)
        rows = "".join(
            f"<url><loc>{page if '://' in page else self.url + page}</loc>"
            f"{f'<lastmod>{modified}</lastmod>' if modified else ''}</url>"
            for page, modified in dated.items()
        )
        self[path] = Reply(f"<urlset>{rows}</urlset>", headers={"Content-Type": "application/xml"})

    def index(self, *paths: str, path: str = "/sitemap.xml") -> None:
        rows = "".join(f"<sitemap><loc>{self.url}{child}</loc></sitemap>" for child in paths)
        self[path] = Reply(f"<sitemapindex>{rows}</sitemapindex>", headers={"Content-Type": "application/xml"})

    def forget(self) -> None:
        """Begin a new list of what was asked."""
        self.asked.clear()

    def paths(self, *, pages_only: bool = True) -> list[str]:
        """What was asked for, sorted; documents and robots.txt left out unless they are wanted too."""
        found = sorted(asked.path for asked in self.asked)
        return [path for path in found if not pages_only or not path.endswith((".xml", ".txt"))]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

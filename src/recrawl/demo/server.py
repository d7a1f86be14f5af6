"""The demo site's HTTP/1.1 server: it passes requests to a function and validators through RFC 9110's rules."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What the site answers to one request."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[str, Mapping[str, str]], Reply]
"""From a request target and the request's headers by lower-case names to a reply. Called in many threads at once."""


def revalidated(reply: Reply, headers: Mapping[str, str]) -> Reply:
    """The reply, or a 304 in its place where the request's validators allow it (RFC 9110, section 13)."""
    if reply.status != HTTPStatus.OK or not _matches(headers, reply.headers):
        return reply
    kept = {name: value for name, value in reply.headers.items() if name in ("ETag", "Last-Modified")}
    return Reply(HTTPStatus.NOT_MODIFIED, headers=kept)


def _matches(asked: Mapping[str, str], has: Mapping[str, str]) -> bool:
    tags, since = asked.get("if-none-match"), asked.get("if-modified-since")
    if tags is not None:
        offered = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return has.get("ETag", "").removeprefix("W/") in offered
    if since is None or "Last-Modified" not in has:
        return False
    try:
        return parsedate_to_datetime(has["Last-Modified"]) <= parsedate_to_datetime(since)
    except (ValueError, TypeError):
        return False


class Server(ThreadingHTTPServer):
    """Answers GET and HEAD on a free loopback port, from `start` to `stop`."""

    request_queue_size = 128

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), name="demo-site", daemon=True)
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        # HTTPServer would look the host's name up, which can take seconds where there is no resolver.
        socketserver.TCPServer.server_bind(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Refuse new connections and end those that are open: a kept-alive one would be answered for ever."""
        if self._thread.ident is not None:  # shutdown waits for a loop to end, also for one that never began
            self.shutdown()
        self.server_close()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that go away in the middle of an answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer leaves at once, not 40 ms later
    wbufsize = -1
    timeout = 60
    server: Server

    def do_GET(self) -> None:
        reply = self.server.answer(self.path, {name.lower(): value for name, value in self.headers.items()})
        self.send_response_only(reply.status)  # no Date: the site has no clock (RFC 9110, section 6.6.1)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(reply.body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """The site keeps its own list of what it served."""

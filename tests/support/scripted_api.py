"""A JSON API over a table of rows that a test changes, with every way of paging, and with faults on demand.

    /offset?offset=&limit=   /pages?page=&per_page=   /token?cursor=&limit=   /link?page=   /after?after=&limit=
    POST /graphql            variables first, after, since

All filter by `since` (updated >= since, as text) and list rows in the order of `order`. `on_answer` is called before
each answer with its number: it may commit, remove or touch rows, or give a Reply of its own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from tests.support.scripted import Reply

Row = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One request. `values` are its query parameters, or the variables of a GraphQL request."""

    method: str
    path: str
    values: Mapping[str, Any]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass
class ScriptedApi:
    """`api.rows` is the table; `api.asked` what was asked for. Beyond `most` items an answer never goes."""

    rows: list[Row] = field(default_factory=list)
    order: Callable[[Row], Any] = field(default=lambda row: row["id"])
    on_answer: Callable[[int, Call], Reply | None] = field(default=lambda _number, _call: None)
    most: int = 100
    asked: list[Call] = field(default_factory=list)
    url: str = ""

    def add(self, *rows: Row) -> None:
        """Commit rows; one of the same id takes the place of the former one."""
        for row in rows:
            self.rows = [other for other in self.rows if other["id"] != row["id"]] + [row]

    def remove(self, *ids: Any) -> None:
        self.rows = [row for row in self.rows if row["id"] not in ids]

    def calls(self, path: str | None = None) -> list[Call]:
        """What was asked for, robots.txt left out."""
        return [call for call in self.asked if call.path != "/robots.txt" and path in (None, call.path)]

    def answer(self, call: Call) -> Reply:
        self.asked.append(call)
        if call.path == "/robots.txt":
            return Reply("", 404)
        given = self.on_answer(len(self.calls()), call)
        if given is not None:
            return given
        since = str(call.values.get("since", ""))
        found = sorted((row for row in self.rows if str(row.get("updated", "~")) >= since), key=self.order)
        style = getattr(self, f"_{call.path.strip('/').partition('/')[0]}", None)
        return style(found, call.values) if style else Reply('{"error": "no such path"}', 404)

    def _size(self, values: Mapping[str, Any], name: str = "limit") -> int:
        return min(self.most, int(values.get(name, self.most)))

    def _offset(self, rows: list[Row], values: Mapping[str, Any]) -> Reply:
        start = int(values.get("offset", 0))
        return _json({"total": len(rows), "items": rows[start : start + self._size(values)]})

    def _pages(self, rows: list[Row], values: Mapping[str, Any]) -> Reply:
        size, page = self._size(values, "per_page"), int(values.get("page", 1))
        last = -(-len(rows) // size)
        return _json({"total": len(rows), "last": last, "items": rows[(page - 1) * size : page * size]})

    def _token(self, rows: list[Row], values: Mapping[str, Any]) -> Reply:
        size, passed = self._size(values), _passed(values.get("cursor"))
        part = [row for row in rows if passed is None or self.order(row) > passed][:size]
        more = len(part) == size
        return _json({"items": part, "next": f"t:{json.dumps(self.order(part[-1]))}" if more else None})

    def _link(self, rows: list[Row], values: Mapping[str, Any]) -> Reply:
        size, page = self.most, int(values.get("page", 1))
        more = page * size < len(rows)
        target = f"/link?page={page + 1}"
        headers = {"Link": f'</link?page=1>; rel="first", <{target}>; title="a, b"; rel="next last"'} if more else {}
        body = {"items": rows[(page - 1) * size : page * size], "links": {"next": target if more else None}}
        return _json(body, headers)

    def _after(self, rows: list[Row], values: Mapping[str, Any]) -> Reply:
        after = values.get("after")
        part = [row for row in rows if after is None or row["id"] > int(after)]
        return _json({"items": part[: self._size(values)]})

    def _graphql(self, rows: list[Row], values: Mapping[str, Any]) -> Reply:
        size, passed = int(values.get("first", self.most)), _passed(values.get("after"))
        part = [row for row in rows if passed is None or self.order(row) > passed]
        end = f"t:{json.dumps(self.order(part[size - 1]))}" if len(part) > size else None
        nodes = [{"node": row} for row in part[:size]]
        return _json({"data": {"things": {"edges": nodes, "pageInfo": {"endCursor": end}}}})

    def __enter__(self) -> Self:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

            def do_GET(self) -> None:
                self._serve(b"")

            def do_POST(self) -> None:
                self._serve(self.rfile.read(int(self.headers.get("Content-Length", 0))))

            def _serve(self, body: bytes) -> None:
                parts = urlsplit(self.path)
                values: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
                if body:
                    values |= json.loads(body).get("variables", {})
                with api._lock:
                    reply = api.answer(Call(self.command, parts.path, values, dict(self.headers), body))
                self.send_response(reply.status)
                headers = {"Content-Type": "application/json", **reply.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.raw)))
                self.end_headers()
                self.wfile.write(reply.raw)
                self.wfile.flush()

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that goes away is no news."""

        self._lock = threading.Lock()
        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _passed(token: Any) -> Any:
    return None if token is None else json.loads(str(token).removeprefix("t:"))


def _json(value: Any, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(json.dumps(value), headers=dict(headers or {}))

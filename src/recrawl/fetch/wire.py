"""The form in which URLs and headers go on the wire."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote

import aiohttp
import can_ada
from aiohttp import ClientRequest, ClientResponse, ServerDisconnectedError
from yarl import URL

if TYPE_CHECKING:
    from aiohttp.connector import Connection

_PORTS = {"http:": 80, "https:": 443}
_ASCII = "".join(map(chr, range(0x80)))


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes. `url` is the WHATWG form without fragment and user name; it is sent as it stands."""

    url: str
    wire: URL
    origin: str
    hostname: str
    port: int
    authorization: str | None = None


def locate(url: str, base: str | None = None) -> Address:
    """The address of a URL as browsers send it: non-ASCII is percent-encoded, what is encoded stays, nothing is folded.

    A user name and password become a header (RFC 7617), so that no URL shows them. Raises ValueError for what is no
    http(s) URL.
    """
    try:
        parsed = can_ada.parse(url) if base is None else can_ada.parse(base) + url
    except TypeError:
        raise ValueError("it holds a lone surrogate") from None
    protocol, host = parsed.protocol, parsed.host
    if protocol not in _PORTS:
        raise ValueError(f"{protocol} is neither http: nor https:")
    authorization = None
    if parsed.has_credentials():
        authorization = aiohttp.encode_basic_auth(unquote(parsed.username), unquote(parsed.password))
    origin = f"{protocol}//{host}"
    # The query is handed over as part of the path: yarl would drop the question mark of an empty one.
    target = parsed.pathname + (parsed.search or ("?" if parsed.has_search() else ""))
    wire = URL.build(scheme=protocol[:-1], authority=host, path=target, encoded=True)
    return Address(
        url=origin + target,
        wire=wire,
        origin=origin,
        hostname=parsed.hostname,
        port=int(parsed.port) if parsed.port else _PORTS[protocol],
        authorization=authorization,
    )


def location(raw: bytes) -> str:
    """The text of a Location header. Servers put raw bytes of any charset there; they are to come back as they are."""
    return quote(raw, safe=_ASCII)


def sendable(value: str) -> bool:
    """Whether a header value that came can be sent back unchanged: bytes, and no control characters but the tab."""
    return value != "" and all((" " <= c <= "\xff" and c != "\x7f") or c == "\t" for c in value)


class ByteRequest(ClientRequest):
    """A request whose header text stands for latin-1 bytes, on a connection that holds nobody else's answer."""

    async def send(self, conn: Connection) -> ClientResponse:
        protocol = conn.protocol
        if protocol is None or protocol.should_close:
            # What a server sent unasked on an idle connection would be taken for the answer to this request.
            raise ServerDisconnectedError("the server had sent more than was asked for")
        beyond = "".join(value for value in self.headers.values() if not value.isascii())
        if not beyond:
            return await super().send(conn)
        if self._body or max(beyond) > "\xff":
            raise ValueError("a header holds characters that cannot be sent")
        transport = protocol.transport
        protocol.transport = cast(asyncio.Transport, _Latin1(transport))
        try:
            # Without a body the whole head is written before send() returns.
            return await super().send(conn)
        finally:
            protocol.transport = transport


class _Latin1:
    """A transport for one request head, which aiohttp writes in UTF-8."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def write(self, head: bytes) -> None:
        self._transport.write(head.decode().encode("latin-1"))

    def is_closing(self) -> bool:
        return bool(self._transport.is_closing())

"""The HTTP client: one request in, a complete answer or the reason why there is none out.

address -> guarded or trusted session -> head within bounds -> redirect? next address
                                                            -> body within bounds -> codings undone -> answer
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import Self

from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from recrawl.fetch.coding import ACCEPT_ENCODING, codings, undo
from recrawl.fetch.guard import AddressRule, guarded_socket
from recrawl.fetch.limits import Limits
from recrawl.fetch.reasons import NETWORK_ERRORS, NoAnswer, no_answer
from recrawl.fetch.wire import Address, ByteRequest, locate, location, sendable
from recrawl.model.fetched import Answer, Failure, FailureKind, Hop, Request, Validators
from recrawl.version import __version__

USER_AGENT = f"recrawl/{__version__} (+https://github.com/recrawl/recrawl)"

# Constant for all requests: what a server sends, ETags too, depends on them.
_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Encoding": ACCEPT_ENCODING,
    "Accept-Language": "*",
}
_PERMANENT = frozenset({301, 308})
_REDIRECTS = _PERMANENT | {302, 303, 307}
_ANYWHERE = frozenset({"accept", "accept-language", "content-type"})
_LARGE = 32 * 1024  # compressed; undoing more could hold the event loop for over 30 ms

_CREDENTIALS = re.compile(r"(?<=//)[^/?#]*@")

BeforeHop = Callable[[str], Awaitable[str | None]]
"""Asked before a redirect is followed, with its absolute URL: why it must not be, or None."""

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """One request of a fetch; its own headers are for the origin of its address."""

    address: Address
    method: str
    headers: Headers
    body: bytes | None

    @classmethod
    def first(cls, request: Request) -> _Step:
        try:
            address = locate(request.url)
        except ValueError as error:
            raise NoAnswer(FailureKind.BAD_REQUEST, f"cannot be asked for: {error}") from error
        headers = request.headers
        if address.authorization and not any(name.lower() == "authorization" for name, _ in headers):
            headers += (("Authorization", address.authorization),)
        return cls(address, request.method.upper(), headers, request.body)

    def redirected(self, status: int, target: Address) -> _Step:
        """The request that a temporary redirect asks for (RFC 9110 section 15.4; 302 as browsers do it)."""
        step = replace(self, address=target)
        if self.method != "HEAD" and (status == 303 or (status == 302 and self.method == "POST")):
            kept = tuple((name, value) for name, value in self.headers if not name.lower().startswith("content-"))
            step = replace(step, method="GET", headers=kept, body=None)
        if target.origin != self.address.origin:
            if step.body is not None:
                raise NoAnswer(FailureKind.BAD_REDIRECT, f"it sends what was to be posted on to {target.origin}")
            # A key for one site is none of another's business, whatever header it stands in.
            kept = tuple((name, value) for name, value in step.headers if name.lower() in _ANYWHERE)
            step = replace(step, headers=kept)
        return step


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: Headers
    body: bytes = b""
    location: str | None = None  # of a redirect, as it came


@dataclass(slots=True)
class _Trip:
    """What a fetch has come to so far."""

    seconds: float = 0.0
    hops: list[Hop] = field(default_factory=list)
    asked: set[tuple[str, str]] = field(default_factory=set)


class HttpClient:
    """Makes requests, `concurrency` at a time, and keeps connections open between them, but no cookies.

    Redirects are followed where they are temporary (302, 303, 307). Validators belong to the URL that they came from,
    so they go with the first hop only, and a 304 from a later one is an answer that nobody asked for (RFC 9110
    section 13.1). A permanent redirect (301, 308) ends the fetch, with its target in `location` and without a body.
    """

    def __init__(
        self,
        *,
        now: Callable[[], datetime],
        allow: AddressRule,
        limits: Limits = Limits(),  # noqa: B008  (frozen)
        agent: str = USER_AGENT,
        concurrency: int = 100,
    ) -> None:
        self._now = now
        self._allow = allow
        self._limits = limits
        self._agent = agent
        self._slots = asyncio.Semaphore(concurrency)
        self._open = AsyncExitStack()
        self._guarded: ClientSession
        self._trusted: ClientSession

    async def __aenter__(self) -> Self:
        # Two pools of connections, so that a name nobody vouched for never rides on an unguarded one. `_slots` counts
        # connections; waiting in aiohttp's own queue would use up the time of a request.
        self._guarded = await self._open.enter_async_context(
            self._session(TCPConnector(limit=0, socket_factory=guarded_socket))
        )
        self._trusted = await self._open.enter_async_context(self._session(TCPConnector(limit=0)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    def _session(self, connector: TCPConnector) -> ClientSession:
        limits = self._limits
        return ClientSession(
            connector=connector,
            headers={"User-Agent": self._agent, **_HEADERS},
            cookie_jar=DummyCookieJar(),
            request_class=ByteRequest,
            auto_decompress=False,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            max_headers=limits.header_count,
        )

    async def fetch(self, request: Request, before_hop: BeforeHop | None = None) -> Answer | Failure:
        """Make a request and follow its temporary redirects. Nothing that a server or a network does raises."""
        trip = _Trip()
        try:
            return await self._follow(request, trip, before_hop)
        except NoAnswer as why:
            way = f" (redirected to {trip.hops[-1].target})" if trip.hops else ""
            message = f"{_CREDENTIALS.sub('', request.url)}{way}: {why.reason}"
            return Failure(request.url, why.kind, message, self._now(), trip.seconds, tuple(trip.hops))

    async def _follow(self, request: Request, trip: _Trip, before_hop: BeforeHop | None) -> Answer:
        step = _Step.first(request)
        conditions = _conditions(request.validators)
        while True:
            asking = (step.method, step.address.url)
            if asking in trip.asked or len(trip.hops) > self._limits.redirects:
                raise NoAnswer(FailureKind.TOO_MANY_REDIRECTS, f"no end after {len(trip.hops)} redirects")
            trip.asked.add(asking)
            reply = await self._ask(step, () if trip.hops else conditions, trip)
            target = _target(step, reply) if reply.status in _REDIRECTS else None
            if target is None or reply.status in _PERMANENT:
                break
            trip.hops.append(Hop(reply.status, step.address.url, target.url))
            if before_hop is not None and (reason := await before_hop(target.url)) is not None:
                raise NoAnswer(FailureKind.ROBOTS, reason)
            step = step.redirected(reply.status, target)
        return Answer(
            url=request.url,
            final_url=step.address.url,
            status=reply.status,
            headers=reply.headers,
            body=reply.body,
            fetched_at=self._now(),
            elapsed=trip.seconds,
            hops=tuple(trip.hops),
            location=target.url if target else None,
            conditional=bool(conditions) and not trip.hops,
        )

    async def _ask(self, step: _Step, conditions: Headers, trip: _Trip) -> _Reply:
        """One request and what came back for it. Raises NoAnswer."""
        address = step.address
        session = self._trusted if self._allow.trusts(address.hostname, address.port) else self._guarded
        async with self._slots:
            began = time.monotonic()
            # A total of 0 would mean no bound at all.
            left = max(self._limits.seconds - trip.seconds, 0.001)
            try:
                response = await session.request(
                    step.method,
                    address.wire,
                    headers=step.headers + conditions or None,
                    data=step.body,
                    allow_redirects=False,
                    timeout=ClientTimeout(total=left),
                )
                try:
                    return await self._read(response)
                except BaseException:
                    response.close()
                    raise
            except NETWORK_ERRORS as error:
                raise no_answer(error) from error
            finally:
                trip.seconds += time.monotonic() - began

    async def _read(self, response: ClientResponse) -> _Reply:
        """Everything of a response, within the bounds; of a redirect only its head."""
        raw = response.raw_headers
        if sum(len(name) + len(value) + 4 for name, value in raw) > self._limits.header_bytes:
            raise NoAnswer(FailureKind.PROTOCOL, f"its headers are over {self._limits.header_bytes:,} bytes")
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw)
        if response.status in _REDIRECTS:
            response.release()
            place = next((value for name, value in raw if name.lower() == b"location"), None)
            return _Reply(response.status, headers, location=None if place is None else location(place))
        body = await self._body(response)
        applied = codings(response.headers.getall("Content-Encoding", ()))
        if applied:
            if len(body) > _LARGE:
                body = await asyncio.to_thread(undo, body, applied, self._limits.body_bytes)
            else:
                body = undo(body, applied, self._limits.body_bytes)
        elif len(body) > self._limits.body_bytes:
            raise NoAnswer(FailureKind.TOO_LARGE, f"its body is over {self._limits.body_bytes:,} bytes")
        return _Reply(response.status, headers, body)

    async def _body(self, response: ClientResponse) -> bytes:
        limit, content = self._limits.wire_bytes, response.content
        too_large = NoAnswer(FailureKind.TOO_LARGE, f"its body is over {limit:,} bytes")
        if not content.at_eof() and (response.content_length or 0) > limit:
            raise too_large
        pieces, size = [], 0
        while piece := await content.readany():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise too_large
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _conditions(validators: Validators) -> Headers:
    """The conditional headers for what can be sent back byte for byte (RFC 9110 sections 13.1.2 and 13.1.3)."""
    pairs = (("If-None-Match", validators.etag), ("If-Modified-Since", validators.last_modified))
    return tuple((name, value) for name, value in pairs if value is not None and sendable(value))


def _target(step: _Step, reply: _Reply) -> Address:
    """Where a redirect leads: its Location, joined to the URL that was asked for (WHATWG URL standard)."""
    if not reply.location:
        raise NoAnswer(FailureKind.BAD_REDIRECT, f"it answers {reply.status} without a Location")
    try:
        return locate(reply.location, step.address.url)
    except ValueError as error:
        shown = _CREDENTIALS.sub("", reply.location)[:200]
        raise NoAnswer(FailureKind.BAD_REDIRECT, f"it redirects to {shown!r}: {error}") from error

"""What came back from a request: an answer, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Validators:
    """The server's own validators, byte for byte (header bytes decoded as latin-1), RFC 9110 section 8.8."""

    etag: str | None = None
    last_modified: str | None = None

    def __bool__(self) -> bool:
        return self.etag is not None or self.last_modified is not None


@dataclass(frozen=True, slots=True)
class Request:
    """One request to make. `url` goes on the wire as it is; `validators` make it conditional."""

    url: str
    validators: Validators = Validators()
    headers: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Hop:
    """One redirect that was met: the status, and the absolute URL it pointed to."""

    status: int
    url: str
    target: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete HTTP answer.

    `status` is that of the last hop. Temporary redirects (302, 303, 307) were followed and stand in `hops`; a
    permanent one (301, 308) ends the request: then `status` is 301 or 308 and `location` is its absolute target.
    `body` is what remains after Content-Encoding. `conditional` tells whether validators were sent with the last hop.
    """

    url: str
    final_url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    fetched_at: datetime
    elapsed: float
    hops: tuple[Hop, ...] = ()
    location: str | None = None
    conditional: bool = False

    def header(self, name: str) -> str | None:
        """The first value of a header, latin-1 text, or None."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)

    @property
    def content_type(self) -> str | None:
        return self.header("content-type")

    @property
    def validators(self) -> Validators:
        """What makes the next request for `url` conditional: nothing after a redirect, since those of another URL say
        nothing about this one (RFC 9110 section 13.1)."""
        if self.hops:
            return Validators()
        return Validators(self.header("etag"), self.header("last-modified"))


class FailureKind(StrEnum):
    """Why there is no complete answer."""

    UNKNOWN_HOST = "unknown_host"  # the name does not resolve
    REFUSED = "refused"  # connection refused or reset before an answer
    TIMEOUT = "timeout"
    TLS = "tls"
    TRUNCATED = "truncated"  # fewer bytes than announced, or a broken encoding
    TOO_LARGE = "too_large"  # more bytes, or more decompressed bytes, than allowed
    UNDECODABLE = "undecodable"  # Content-Encoding that cannot be undone
    TOO_MANY_REDIRECTS = "too_many_redirects"  # a loop, or more hops than allowed
    BAD_REDIRECT = "bad_redirect"  # no Location, or one that is no http(s) URL
    FORBIDDEN_ADDRESS = "forbidden_address"  # private, loopback, link-local, multicast, translated
    PROTOCOL = "protocol"  # not HTTP, or headers beyond the bounds
    BAD_REQUEST = "bad_request"  # a URL that is no http(s) URL, or a header that cannot be sent
    ROBOTS = "robots"  # robots.txt of the host that a redirect leads to does not allow it


@dataclass(frozen=True, slots=True)
class Failure:
    """No complete answer. `message` names the URL and what happened, without secrets."""

    url: str
    kind: FailureKind
    message: str
    fetched_at: datetime
    elapsed: float
    hops: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A body that is to be read into records, with what the reader needs to know about it."""

    url: str  # canonical URL of the page
    final_url: str  # where the body came from, base of relative links
    body: bytes
    content_type: str | None
    fetched_at: datetime
    hints: dict[str, str] = field(default_factory=dict)

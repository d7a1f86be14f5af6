"""How much of anything one fetch may take: what servers send is bounded, whatever they claim."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one fetch. The defaults let a full sitemap through (50 MB, sitemaps.org)."""

    seconds: float = 60.0  # all hops together; waiting for our own pace does not count
    wire_bytes: int = 64 * 1024 * 1024  # of one body, as it comes
    body_bytes: int = 64 * 1024 * 1024  # of one body, after Content-Encoding
    header_bytes: int = 64 * 1024  # all headers of one answer
    header_count: int = 128
    redirects: int = 10

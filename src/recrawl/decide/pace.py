"""How fast to ask a host."""

from __future__ import annotations

import ipaddress

_WEIGHT = 0.2
_PLANNED = 300.0  # seconds of work of a host that is planned ahead
_LEAST_PLANNED, _MOST_PLANNED = 100, 2000


def is_loopback(host: str) -> bool:
    """Whether a host[:port] is this machine by its written form; no name is resolved."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    name = name.strip("[]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def latency(known: float | None, elapsed: float) -> float:
    """A moving mean of a host's response time, in seconds."""
    return elapsed if known is None else known + _WEIGHT * (elapsed - known)


def share(between: float) -> int:
    """How many tasks of a host are enough to have planned: some minutes of work, with `between` seconds between two
    requests, and never so few that hands stand idle."""
    return _MOST_PLANNED if between <= 0 else min(_MOST_PLANNED, max(_LEAST_PLANNED, round(_PLANNED / between)))


def delay(host: str, *, declared: float, crawl_delay: float | None, mean: float | None, concurrency: int) -> float:
    """Seconds between the starts of two requests to a host.

    The declared delay, stretched so that no more than `concurrency` requests are under way at the host's mean response
    time, and never shorter than its crawl-delay. A loopback host needs none, unless its robots.txt asks.
    """
    if is_loopback(host):
        return crawl_delay or 0.0
    stretched = (mean or 0.0) / max(1, concurrency)
    return max(declared, stretched if declared else 0.0, crawl_delay or 0.0)

"""How a source is to be treated: identity of URLs, pace, revisits, deletion. Values only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from recrawl.errors import Misuse

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")

Span = str | int | float | timedelta
"""A length of time as users write it: `"10m"`, `"1h 30m"`, seconds, or a timedelta."""


def seconds(span: Span, *, place: str = "") -> float:
    """Seconds of a span. Raises Misuse for anything that is not a length of time of at least 0."""
    if isinstance(span, timedelta):
        value = span.total_seconds()
    elif isinstance(span, (int, float)) and not isinstance(span, bool):
        value = float(span)
    else:
        text = str(span).strip()
        parts = _SPAN.findall(text)
        if not parts or _SPAN.sub("", text).strip():
            raise Misuse(
                f"{span!r} is not a length of time",
                place=place,
                action='Write for instance "500ms", "10m", "6h", "30d".',
            )
        value = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 <= value < float("inf"):
        raise Misuse(f"{span!r} is negative or endless", place=place, action='Write for instance "10m".')
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which URLs of a source are one page, beyond what holds for all URLs.

    `drop` and `keep` name query parameters (a trailing `*` matches any ending) that are dropped from, or kept in, the
    identity; `www`, `slash` and `https` fold `www.`, a trailing slash and http into one form; `fragments` keeps `#...`
    for sites that route by it.
    """

    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    www: bool = False
    slash: bool = False
    https: bool = False
    fragments: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """Bounds of the time between two looks at one page. Between them the page's own changes decide; with a `min` of 0
    a page without hints is due whenever its source is gone through."""

    min: Span = "0s"
    max: Span = "30d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Requests to one host: how many at once, and how far apart they start."""

    concurrency: int = 4
    delay: Span = "0.25s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Requests at most, of all workers together: of the source in a clock hour and in a UTC day, and to each of its
    hosts. None: as many as the pace allows."""

    per_hour: int | None = None
    per_day: int | None = None
    host_per_hour: int | None = None
    host_per_day: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """How absence becomes suspicion and suspicion deletion."""

    suspect_after: int = 2
    confirm_after: int = 2
    confirm_gap: Span = "6h"
    delete_after: int = 5
    max_vanish: float = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """When an alarm is raised: more than a share of `over` of the latest pages or pushed records became dead letters.
    With `pause` the source is paused then."""

    over: float = 0.5
    pause: bool = False

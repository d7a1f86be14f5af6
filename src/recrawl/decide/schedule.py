"""When to look again.

What is believed of a page is one number: how many changes a day it makes. All that a look tells is whether the page has
changed since the last one, and with every look the belief moves.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import sqrt

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""Of a page that is looked at only when its stream sights it."""
REFUSED_WAIT = timedelta(days=1)
_DAY = 86_400.0
_UNKNOWN = 3600.0
_SPREAD = 0.2


def first_rate(*, shortest: float, age: float) -> float:
    """The changes a day to expect of a page read for the first time, that the source last changed `age` seconds ago
    (0 where it does not tell).

    It might change in every shortest interval (of an hour, if there is none), had it not stayed the same for `age`: a
    fresh item is looked at soon, an old one late.
    """
    return after_look(_DAY / (shortest or _UNKNOWN), max(age, 0.0), changed=False)


def after_look(rate: float, elapsed: float, *, changed: bool) -> float:
    """The changes a day to expect after a look `elapsed` seconds after the last one.

    The mean of an exponential belief of mean `rate` about a Poisson process, after it was seen whether or not anything
    happened: such a belief remembers as much as one change, so that a page that changes its ways is soon found out.
    """
    same = 1 / (1 + rate * elapsed / _DAY)
    return rate * (1 + same) if changed else rate * same


def interval(rate: float, *, shortest: float, longest: float) -> float:
    """Seconds between two looks at a page that makes `rate` changes a day: within the bounds, and otherwise by the
    square root of what its changes are apart.

    Where each request is worth the same freshness, intervals grow with that root: were they to grow with the distance
    itself, a fixed interval for all would do better (Cho and Garcia-Molina, "Effective page refresh policies", 2003).
    A page that changes once in the shortest interval is looked at that often.
    """
    apart = _DAY / rate if rate > 0 else longest
    return min(max(sqrt(shortest * apart), shortest), longest)


def next_look(
    now: datetime, *, rate: float | None, shortest: float, longest: float, hinted: bool, draw: float
) -> datetime:
    """After a good look: a page whose finder says when it changes is left alone until it does, or until the longest
    interval has passed; any other is due by its own rate.

    The last fifth of the interval is spread by `draw` in [0, 1), so that pages found together do not come due together.
    """
    wait = longest if hinted or rate is None else interval(rate, shortest=shortest, longest=longest)
    soonest = min(max(wait * (1 - _SPREAD), shortest), longest)
    latest = min(soonest / (1 - _SPREAD), longest)
    return now + timedelta(seconds=soonest + (latest - soonest) * draw)


def next_look_after_trouble(now: datetime, *, shortest: float, failures: int) -> datetime:
    """After a look without data: the next cycle may try again at once; from the third failure in a row on, later and
    later, up to a day."""
    wait = 0.0 if failures < 3 else min(_DAY, 300.0 * 2.0 ** min(failures - 3, 20))
    return now + timedelta(seconds=max(wait, shortest if failures > 1 else 0.0))

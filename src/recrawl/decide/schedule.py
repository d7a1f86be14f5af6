"""When to look again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""Of a page that is looked at only when its stream sights it."""
REFUSED_WAIT = timedelta(days=1)


def next_look(now: datetime, *, shortest: float, longest: float, hinted: bool) -> datetime:
    """After a good look: a page whose finder says when it changes is left alone until it does, or until the longest
    interval has passed; any other is due again after the shortest."""
    return now + timedelta(seconds=longest if hinted else min(shortest, longest))


def next_look_after_trouble(now: datetime, *, shortest: float, failures: int) -> datetime:
    """After a look without data: the next cycle may try again at once; from the third failure in a row on, later and
    later, up to a day."""
    wait = 0.0 if failures < 3 else min(86_400.0, 300.0 * 2.0 ** min(failures - 3, 20))
    return now + timedelta(seconds=max(wait, shortest if failures > 1 else 0.0))

"""When to try again, and when to stop."""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

BACKOFF_FIRST = 2.0
BACKOFF_MOST = 600.0
UNASKED_WAIT = 30.0


def backoff(attempt: int, draw: float) -> timedelta:
    """The wait after failure number `attempt` (from 1): exponential, with full jitter.

    2 s doubling to 10 min, times `draw` in [0, 1): waits of many workers spread over the whole span instead of
    meeting again (Brooker, "Exponential Backoff and Jitter", AWS 2015).
    """
    return timedelta(seconds=min(BACKOFF_MOST, BACKOFF_FIRST * 2.0 ** min(attempt - 1, 30)) * draw)


def retry_after(value: str | None, now: datetime, most: float) -> datetime:
    """The instant that a Retry-After header names (RFC 9110 section 10.2.3: seconds or a date), at most `most` seconds
    away. What is no such header, or a date already past, asks for a short wait all the same."""
    wait = UNASKED_WAIT
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        wait = float(text) if len(text) < 12 else most
    elif text:
        try:
            then = parsedate_to_datetime(text)
            if then.tzinfo is not None:
                wait = (then - now).total_seconds()
        except ValueError:
            pass
    return now + timedelta(seconds=min(max(wait, 1.0), most))

"""When a host is in trouble, and how long it is left alone then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

RECENT = 20
"""As many of a host's last ends as are remembered."""
_IN_A_ROW = 5
_FIRST = 30.0
_MOST = 3600.0


def in_trouble(ends: Sequence[bool]) -> bool:
    """Whether a host whose last looks ended like this (True: badly), the latest last, is in trouble: over half of the
    last 20 ended badly, or the last 5."""
    recent = ends[-RECENT:]
    if len(recent) == RECENT and sum(recent) > RECENT / 2:
        return True
    return len(recent) >= _IN_A_ROW and all(recent[-_IN_A_ROW:])


def left_alone(times: int, draw: float) -> timedelta:
    """How long to leave a host alone that was left alone `times` before, without a good look since: 30 s doubling to
    an hour, of which `draw` in [0, 1) takes off up to a quarter, so that many hosts behind one fault do not come back
    together."""
    return timedelta(seconds=min(_MOST, _FIRST * 2.0 ** min(times, 30)) * (1 - draw / 4))

"""How far hints and validators are to be believed: as far as they proved true in the last checks.

A check is an unconditional look at something that was said to be unchanged: a hint that did not move, a 304. A lie or a
silence is content that had changed all the same. A hint that moves without a change is none: it costs a request and
hides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

WINDOW = 100
ENOUGH = 20
TOLERATED = 0.05
STILL_ASKED = 0.1
"""Share of visits that try validators which are not believed, each 304 checked at once: so trust can come back."""


class Subject(StrEnum):
    """What can be believed."""

    HINTS = "hints"  # of a stream
    VALIDATORS = "validators"  # of a host


def remember(recent: str, checks: Iterable[bool]) -> str:
    """The last checks, one letter each, the newest last: `t` told the truth, `f` did not."""
    return (recent + "".join("t" if true else "f" for true in checks))[-WINDOW:]


def believed(recent: str) -> bool:
    """Whether no more than 5 % of the last checks failed. Fewer than 20 checks prove nothing."""
    return len(recent) < ENOUGH or recent.count("f") <= TOLERATED * len(recent)

"""Whether a source that is gone through by itself is looked after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

_OVERDUE = 2
_INCOMPLETE = 3


class Ailment(StrEnum):
    OVERDUE = "overdue"
    INCOMPLETE = "incomplete"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes over a source: when the first and the last began, whether the last is still going on, and when the
    last complete one ended."""

    first: datetime | None = None
    last: datetime | None = None
    under_way: bool = False
    complete: datetime | None = None

    def due(self, every: float) -> datetime | None:
        """When the next pass is due, `every` seconds after the last began. None: now, to begin or to go on."""
        return None if self.last is None or self.under_way else self.last + timedelta(seconds=every)


def ailments(passes: Passes, every: float, now: datetime) -> Iterator[tuple[Ailment, datetime]]:
    """What is wrong with a source whose passes are due `every` seconds, and since when.

    It is overdue when the next pass should have begun more than twice that long ago, and incomplete when for three
    times that long no pass saw all there is to see.
    """
    span = timedelta(seconds=every)
    if passes.first is None or passes.last is None:
        return
    if now - (passes.last + span) > _OVERDUE * span:
        yield Ailment.OVERDUE, passes.last + span
    since = passes.complete or passes.first
    if now - since > _INCOMPLETE * span:
        yield Ailment.INCOMPLETE, since

"""When so much of a source fails that a person should look: what the share is taken of, and where it is too large."""

from __future__ import annotations

from dataclasses import dataclass

_LATEST = 200
_FEWEST = 50


@dataclass(frozen=True, slots=True)
class Recent:
    """The latest looks at pages and pushed records: how many there were, and how many of them became dead letters.

    Older ones fade: there never count more than 200, whatever their number was.
    """

    ended: float = 0.0
    dead: float = 0.0

    def after(self, ended: int, dead: int) -> Recent:
        """With some more that have ended, `dead` of them without data."""
        total = self.ended + ended
        kept = min(1.0, _LATEST / total) if total else 1.0
        return Recent(total * kept, (self.dead + dead) * kept)

    @property
    def share(self) -> float:
        return self.dead / self.ended if self.ended else 0.0


def too_many_fail(recent: Recent, over: float) -> bool | None:
    """Whether more than a share of `over` fails; None while there are fewer than 50 to tell by."""
    return None if recent.ended < _FEWEST else recent.share > over

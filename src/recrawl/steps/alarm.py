"""The alarm of a source: raised once when too many of its pages or records fail, ended once when they no longer do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recrawl.decide.alarm import Recent, too_many_fail
from recrawl.declare import Source
from recrawl.model.record import Json
from recrawl.store import sources
from recrawl.store.database import Store

_DEAD = ("failed", "invalid", "quarantined", "dead")
_NOT_ENDED = ("postponed", "lost")
_TOLD_AGAIN = timedelta(seconds=10)


@dataclass(slots=True)
class Alarm:
    """What one worker has seen of a source; the database knows whether another has told of it already."""

    store: Store
    source: Source
    now: Callable[[], datetime]
    _recent: Recent = field(default_factory=Recent)
    _failing: bool | None = None
    _told_at: datetime | None = None

    def hear(self, counts: Counter[str]) -> None:
        """Take in what some looks or pushed records came to. The database hears of it when that turns the tide, and now
        and then, since somebody may have ended the alarm by letting the source go on."""
        dead = sum(counts[name] for name in _DEAD)
        ended = sum(count for name, count in counts.items() if name not in _NOT_ENDED)
        self._recent = self._recent.after(ended, dead)
        policy = self.source.failing
        failing = too_many_fail(self._recent, policy.over)
        now = self.now()
        if failing is None or (failing is self._failing and self._told_at and now - self._told_at < _TOLD_AGAIN):
            return
        self._failing, self._told_at = failing, now
        told: dict[str, Json] = {"share": round(self._recent.share, 2), "over": policy.over}
        if failing:
            sources.sound_alarm(self.store, self.source.name, told, pause=policy.pause, now=now)
        else:
            sources.end_alarm(self.store, self.source.name, told, now=now)

"""What a run has come to so far: counts that add up, and sentences worth showing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

LOOKED_AT = (
    "new",
    "changed",
    "unchanged_304",
    "unchanged_hash",
    "reread",
    "moved",
    "gone",
    "refused",
    "quarantined",
    "invalid",
    "regressions",
    "failed",
)
"""The ways in which a look at a page ends; their sum is the number of pages looked at."""

VANISHED = ("suspected", "deleted", "held")

PUSHED = ("pushed_new", "pushed_changed", "pushed_duplicates", "pushed_regressions", "pushed_dead")
"""What became of records that were pushed and that this run took out of the inbox."""

DEAD = ("quarantined", "invalid", "failed", "pushed_dead")


@dataclass(slots=True)
class Progress:
    """`counts` has the lines of the summary; `waiting` says, while nothing can be done, what is waited for."""

    source: str
    counts: Counter[str] = field(default_factory=Counter)
    changes: list[tuple[str, str]] = field(default_factory=list)
    open_tasks: int = 0
    waiting: str | None = None
    on_change: Callable[[Progress], None] = lambda _: None
    on_notice: Callable[[str], None] = lambda _: None

    def add(self, counts: Counter[str]) -> None:
        self.counts.update(counts)
        self.on_change(self)

    def vanished(self, deleted: Sequence[str], *, suspected: int, held: int) -> None:
        """What the end of the cycle made of pages that are absent or gone."""
        self.changes += [("deleted", url) for url in deleted]
        self.add(Counter(deleted=len(deleted), suspected=suspected, held=held))

    @property
    def looked_at(self) -> int:
        return sum(self.counts[name] for name in LOOKED_AT)

    @property
    def dead(self) -> int:
        return sum(self.counts[name] for name in DEAD)

    def summary(self) -> dict[str, int]:
        """All lines, those that are 0 too, so that two runs can be compared."""
        others = ("postponed", "lost", "requests", "off_site", "bad_urls")
        names = ("found", "unchanged_hint", *LOOKED_AT, *VANISHED, *others, *PUSHED)
        return {name: self.counts[name] for name in names} | {"looked_at": self.looked_at, "dead": self.dead}

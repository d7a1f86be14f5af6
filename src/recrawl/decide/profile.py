"""What the good pages of a source look like, learned as they are read. Small, and of sums only: parts can be added."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

from recrawl.decide.phrases import Trouble, in_heading, in_text
from recrawl.model.signals import Signals

ENOUGH = 20
"""Good pages that must have been seen before a source's usual look means anything."""

_RARE = 0.05
_MOST_PAGES = 2_000  # beyond, what is old counts half, so that a source may change
_MOST_STRUCTURES = 64
_MOST_TARGETS = 50
_FEW = 4  # pages remembered of each redirect target


@dataclass(slots=True)
class Profile:
    """Good pages by size (the exponent of two above their letters), structure, password fields and troubling phrases;
    redirect targets with the pages that were sent there; and how many looks at known pages found another structure."""

    pages: int = 0
    passwords: int = 0
    looks: int = 0
    moved: int = 0
    sizes: Counter[str] = field(default_factory=Counter)
    structures: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    targets: dict[str, list[int]] = field(default_factory=dict)

    def learn(self, page: Signals) -> None:
        """Take in the look of a good page."""
        self.pages += 1
        self.passwords += page.password
        self.sizes[str(page.letters.bit_length())] += 1
        if page.structure:
            self.structures[page.structure] += 1
        self.troubles.update(set(troubles_in(page)))

    def redirected(self, target: str, page: int) -> list[int]:
        """Note that a page was sent to a target; the other pages that were, at most a few of them."""
        sent = self.targets.setdefault(target, [])
        others = [other for other in sent if other != page]
        if page not in sent and len(sent) < _FEW:
            sent.append(page)
        return others

    def returned(self, page: int) -> bool:
        """Note that a page is itself again; whether it had been sent anywhere."""
        known = [target for target, sent in self.targets.items() if page in sent]
        for target in known:
            self.targets[target].remove(page)
            if not self.targets[target]:
                del self.targets[target]
        return bool(known)

    def add(self, other: Profile) -> None:
        """Add what another part of the work has learned."""
        for name in ("pages", "passwords", "looks", "moved"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for counts, more in self._counters(other):
            counts.update(more)
        for target, pages in other.targets.items():
            for page in pages:
                self.redirected(target, page)
        self._trim()

    def _counters(self, other: Profile) -> tuple[tuple[Counter[str], Counter[str]], ...]:
        return ((self.sizes, other.sizes), (self.structures, other.structures), (self.troubles, other.troubles))

    def _trim(self) -> None:
        if self.pages > _MOST_PAGES or self.looks > _MOST_PAGES:
            for name in ("pages", "passwords", "looks", "moved"):
                setattr(self, name, getattr(self, name) // 2)
            for counts, _ in self._counters(self):
                for key in list(counts):
                    counts[key] //= 2
        self.structures = Counter(dict(self.structures.most_common(_MOST_STRUCTURES)))
        self.targets = dict(list(self.targets.items())[-_MOST_TARGETS:])

    @property
    def knows(self) -> bool:
        """Whether enough was seen to say what is usual."""
        return self.pages >= ENOUGH

    def usual(self, trouble: Trouble) -> bool:
        """Whether good pages of this source speak of such trouble as well."""
        return self.knows and self.troubles[trouble] > _RARE * self.pages

    @property
    def passwords_usual(self) -> bool:
        return self.passwords > _RARE * self.pages

    def built_alike(self, structure: str | None) -> bool | None:
        """Whether good pages have this structure; None where the source has no few structures that tell anything."""
        if structure is None or not self.knows or sum(self.structures.values()) < 0.8 * self.pages:
            return None
        seen = self.structures[structure]
        if seen > max(1, 0.01 * self.pages):
            return True
        # A source that builds each page in another way is known by few repeats.
        return False if len(self.structures) <= 0.2 * self.pages else None

    @property
    def smallest(self) -> int:
        """Letters that all but one in twenty good pages have; 0 while little is known."""
        if not self.knows:
            return 0
        below = 0
        for bits, count in sorted((int(bits), count) for bits, count in self.sizes.items()):
            below += count
            if below > _RARE * self.pages:
                return int(1 << max(bits - 1, 0))
        return 0

    def as_json(self) -> dict[str, Any]:
        names = ("pages", "passwords", "looks", "moved", "targets")
        counts = {name: dict(getattr(self, name)) for name in ("sizes", "structures", "troubles")}
        return {name: getattr(self, name) for name in names} | counts

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        counts = {name: Counter(stored[name]) for name in ("sizes", "structures", "troubles")}
        return cls(**(stored | counts))


def troubles_in(page: Signals) -> dict[Trouble, str]:
    """The kinds of trouble that a page speaks of anywhere, each with the words."""
    said = dict(in_text(page.opening))
    for heading in page.headings:
        said |= dict.fromkeys(in_heading(heading), heading)
    return said

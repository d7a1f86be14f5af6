"""From absence to deletion: what is evidence, what confirms it, what ends a suspicion, and what stops it all.

Pure. A look at a page only notes what it found; the end of a cycle alone acts on it. Absence is never proof: a page is
deleted after looks at it that are hours apart found nothing, or, where it cannot be fetched, after many cycles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Any

from recrawl.declare.policies import Deletion
from recrawl.model.settlement import PageFacts
from recrawl.model.work import PageState


class Step(StrEnum):
    """What the end of a cycle does to a page."""

    KEEP = "keep"
    ACQUIT = "acquit"
    SUSPECT = "suspect"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A page that something speaks against, or did, at the end of a cycle.

    `listed`: a document of an exhaustive stream lists it. `misses`: complete cycles in a row that did not, this one
    among them. `confirms`: looks since it is suspected, far enough apart, that found nothing. `failures`: looks since
    then that told nothing either way. `absent_since`: when the cycle began that found the first evidence. `taken`: it
    comes with its sighting, and cannot be looked at.
    """

    id: int
    status: PageState
    version: int
    listed: bool
    misses: int
    gone_at: datetime | None
    confirms: int
    failures: int
    absent_since: datetime | None
    held: bool = False
    approved: bool = False
    taken: bool = False

    @property
    def at_stake(self) -> bool:
        """There is something to lose, and nobody has agreed to lose it."""
        return self.version > 0 and not self.approved


def step(page: Standing, policy: Deletion) -> Step:
    """What the evidence asks for; the guard may still stop it."""
    match page.status:
        case PageState.DELETED | PageState.MOVED:
            return Step.KEEP
        case PageState.SUSPECTED:
            return _suspected(page, policy)
        case _:
            return Step.SUSPECT if has_evidence(page, policy) else Step.KEEP


def _suspected(page: Standing, policy: Deletion) -> Step:
    if page.confirms >= policy.confirm_after:
        return Step.DELETE
    if page.listed:
        # A page that never read well is acquitted by reading well, and by nothing else.
        return Step.ACQUIT if page.gone_at is None and page.version else Step.KEEP
    beyond_reach = (page.failures > 0 or page.taken) and page.misses >= policy.delete_after
    return Step.DELETE if beyond_reach else Step.KEEP


def has_evidence(page: Standing, policy: Deletion) -> bool:
    """Missed often enough, or not found by a look. A page that never read well has nothing that could be gone."""
    missed = not page.listed and page.misses >= policy.suspect_after
    return missed or (page.gone_at is not None and page.version > 0)


def reason(page: Standing) -> str:
    """Why a page is deleted, in words for people."""
    absent = f"absent from {page.misses} complete cycles" if page.misses else "still listed"
    if page.gone_at is not None:
        looks = "1 look" if page.confirms == 1 else f"{page.confirms} looks"
        return f"not found by {looks} after it was suspected; {absent}"
    return f"{absent}, and it could not be fetched"


# The guard


@dataclass(frozen=True, slots=True)
class Vanishing:
    """Pages at stake whose evidence began at `since` or before."""

    since: datetime
    pages: int
    suspected: int
    """Those of them that are suspected already, and so no longer among the active ones."""


def vanishings(pages: Iterable[Standing], policy: Deletion) -> list[Vanishing]:
    """What is at stake, by the beginning of its evidence, each with all that went before.

    A share is one of the pages that were there when the vanishing began: what has been found since makes it no smaller.
    """
    at_stake: dict[datetime, list[bool]] = {}
    for page in pages:
        suspected = page.status is PageState.SUSPECTED
        if page.at_stake and page.absent_since and (suspected or step(page, policy) is Step.SUSPECT):
            at_stake.setdefault(page.absent_since, []).append(suspected)
    found: list[Vanishing] = []
    total = already = 0
    for since, group in sorted(at_stake.items()):
        total += len(group)
        already += sum(group)
        found.append(Vanishing(since, total, already))
    return found


def stopped(vanished: int, standing: int, policy: Deletion) -> bool:
    """Whether so many of `standing` pages need a person's word before they go: more than `max_vanish`, or all."""
    return vanished > 0 and (vanished > policy.max_vanish * standing or vanished >= standing)


def enough(vanished: int, policy: Deletion) -> int:
    """How many standing pages let so many go: nobody needs to count further."""
    if not policy.max_vanish:
        return 2**31
    return max(vanished, math.ceil(vanished / policy.max_vanish)) + 1


# Looks at suspected pages


def next_confirmation(now: datetime, last: datetime | None, gap: timedelta) -> datetime:
    """When a suspected page is looked at next, `last` being the last look that found nothing."""
    return now if last is None else max(now, last + gap)


def confirmed(page: PageFacts, now: datetime, *, gap: timedelta, needed: int, final: bool) -> PageFacts:
    """A suspected page after a look that found nothing. One that comes too soon after another counts for nothing;
    `final` (410: the source means it, RFC 9110 section 15.5.11) counts for all that are needed."""
    last = page.confirm_at or page.gone_at
    if last is not None and now - last < gap:
        return replace(page, failures=0, due_at=last + gap)
    return replace(
        page,
        gone_at=page.gone_at or now,
        confirms=max(page.confirms + 1, needed if final else 0),
        confirm_at=now,
        failures=0,
        due_at=now + gap,
    )


_CLEAR: dict[str, Any] = {
    "misses": 0,
    "gone_at": None,
    "confirms": 0,
    "confirm_at": None,
    "absent_since": None,
    "held": False,
    "approved": False,
}
_marks = attrgetter(*_CLEAR)


def cleared(page: PageFacts) -> PageFacts:
    """A page that nothing speaks against any more."""
    return page if _marks(page) == tuple(_CLEAR.values()) else replace(page, **_CLEAR)

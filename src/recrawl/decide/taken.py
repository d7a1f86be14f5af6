"""Pages that come with their sighting: they are looked at when their stream sights them, and are never fetched."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from recrawl.model.outcome import Changed, Outcome, Unchanged
from recrawl.model.settlement import PageFacts

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""When such a page is due by itself."""


def awaiting_its_stream(page: PageFacts, outcome: Outcome) -> PageFacts:
    """The page after a look at the body that was in hand, which is a look though it took no request."""
    read = isinstance(outcome, Changed | Unchanged)
    return replace(page, due_at=NEVER, last_fetched_at=outcome.look.at if read else page.last_fetched_at)

"""What discovery sees."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recrawl.model.outcome import Body
from recrawl.model.record import Json


@dataclass(frozen=True, slots=True)
class InHand:
    """What came along with a sighting: the page itself, taken `at` that instant. `body` is None where the store holds
    it already under this hash."""

    hash: str
    at: datetime
    body: Body | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """A finder's word that a page exists. `url` is canonical, `fetch_url` as found; `hint` is what the finder says of
    its version (a lastmod, say): while it stays the same, the page need not be looked at. Of a page that is
    `in_hand` the hint is the hash of its body, and nothing is ever fetched."""

    page_id: str
    url: str
    fetch_url: str
    host: str
    hint: str | None = None
    in_hand: InHand | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A slice of a stream: the unit of checkpoint.

    `document` is the row that lists these pages, `reading` the number of its present reading. `before` and `after` are
    the stream's `seen` point: the batch is refused if the stored point is no longer `before`.
    """

    source: str
    stream: str
    cycle: int
    document: int | None
    reading: int
    sightings: tuple[Sighting, ...]
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class Seen:
    """What a batch came to: pages by what the sighting meant for them."""

    new: int = 0
    hinted: int = 0  # known, and the hint moved: a visit was made or an open one raised
    forced: int = 0  # known, the hint stayed, looked at all the same
    same: int = 0  # known, the hint stayed: nothing to do
    unhinted: int = 0  # known, no hint: the schedule decides

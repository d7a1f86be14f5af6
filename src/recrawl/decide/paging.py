"""From one answer of an API to the next, or to the end: pure rules for each way of paging.

No pager is trusted to end by itself. One that answers what it has answered before, that names a token twice, that has
nothing although it tells of more, or that has gone on for a hundred thousand answers is stopped, with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from recrawl.declare.paging import AfterId, NextLink, NextToken, Offset, PageNumber, Paging
from recrawl.model.record import Json

MOST_ANSWERS = 100_000
MOST_EMPTY = 100
"""Empty answers in a row, each with a token of the next one, after which a pager is taken for endless."""
MOST_TURNS = 3
"""How often a list that moves while it is read is read, in all."""
MOST_RESTARTS = 2
_PAST_END = frozenset([404, 416])
_EXPIRED = frozenset([400, 404, 410, 419, 422])


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer stands: `at` is an offset, a number, a token, a link or an id (None: the first answer). The rest
    is what was met on the way: `answers` and `items` so far, the greatest number of items of one answer, empty answers
    in a row, the `total` that the last one told, whether the list has `shrunk`, and whether an item was met `twice`."""

    at: int | str | None
    answers: int = 0
    items: int = 0
    most: int = 0
    empty: int = 0
    total: int | None = None
    shrunk: bool = False
    twice: bool = False

    def point(self) -> dict[str, Json]:
        """The form in which it is stored; numbers as text, for ids can have more digits than a JSON number keeps."""
        return {
            "at": None if self.at is None else str(self.at),
            "number": isinstance(self.at, int),
            "met": [self.answers, self.items, self.most, self.empty, self.total, self.shrunk, self.twice],
        }

    @staticmethod
    def stored(point: dict[str, Json]) -> Place:
        at, met = point["at"], point["met"]
        assert isinstance(met, list)
        answers, items, most, empty = (int(str(number)) for number in met[:4])
        value = None if at is None else int(str(at)) if point["number"] else str(at)
        return Place(value, answers, items, most, empty, _whole(met[4]), bool(met[5]), bool(met[6]))


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer says of the way on. `items` counts what it holds; `beyond` is the greatest id beyond the
    place, `behind` says that some id is before it; `repeated` that the same items or token came before in this turn,
    `twice` that one of the items did."""

    items: int
    total: int | None = None
    last: int | None = None
    next: int | str | None = None
    beyond: int | str | None = None
    behind: bool = False
    repeated: bool = False
    twice: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The list has ended. `past`: nothing told so but the error that stands behind its last answer."""

    met: Place
    past: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """A pager that cannot be followed. `kind` is a short stable word, `reason` a clause about the answer."""

    kind: str
    reason: str
    again: bool = False


def first(paging: Paging | None) -> Place:
    """The place of the first answer."""
    return Place(paging.start if isinstance(paging, (Offset, PageNumber)) else None)


def parameters(paging: Paging | None, place: Place) -> dict[str, int | str]:
    """The parameters that ask for the answer at a place. A link holds its own."""
    if paging is None or (isinstance(paging, NextLink) and place.at is not None):
        return {}
    asked: dict[str, int | str] = {}
    if paging.size is not None:
        asked[paging.size_param] = paging.size
    if place.at is not None and not isinstance(paging, NextLink):
        asked[paging.param] = place.at  # type: ignore[attr-defined]
    return asked


def after(paging: Paging | None, place: Place, told: Told) -> Place | End | Stop:
    """What follows the answer at `place`."""
    met = replace(
        place,
        answers=place.answers + 1,
        items=place.items + told.items,
        most=max(place.most, told.items),
        empty=0 if told.items else place.empty + 1,
        total=told.total,
        shrunk=place.shrunk or (told.total is not None and place.total is not None and told.total < place.total),
        twice=place.twice or (told.twice and not told.repeated),
    )
    if paging is None:
        return End(met)
    if met.answers >= MOST_ANSWERS:
        return Stop("endless", f"it goes on after {MOST_ANSWERS:,} answers")
    match paging:
        case Offset():
            return _after_offset(paging, met, told)
        case PageNumber():
            return _after_number(met, told)
        case AfterId():
            return _after_id(paging, met, told)
        case NextToken() | NextLink():
            return _after_token(met, told)
    raise TypeError(f"{type(paging).__name__} is no way of paging")


def has_moved(paging: Paging | None, met: Place, turn: int) -> bool:
    """Whether a list that came to its end is to be read once more, after so many turns. Where it shrank, or an item
    went from its front to its end, another one slipped into a place that had been read already. Some lists name an
    item twice at any time, so that alone is worth one more turn, and no third."""
    moved = (met.shrunk and turn < MOST_TURNS) or (met.twice and turn < MOST_TURNS - 1)
    return moved and isinstance(paging, (Offset, PageNumber))


def refused(paging: Paging | None, place: Place, status: int) -> End | Stop | None:
    """What an answer with an error status says of the list; None where it is an error like any other.

    Some sources have an error behind their last page. Others forget their tokens: then the list begins anew.
    """
    if place.at is None or place.answers == 0:
        return None
    if isinstance(paging, (Offset, PageNumber)) and status in _PAST_END:
        if place.total is not None and place.items < place.total:
            return None
        return End(place, past=True)
    if isinstance(paging, (NextToken, NextLink)) and status in _EXPIRED:
        return Stop("token_expired", f"the server answers {status} to its own token")
    return None


def _after_offset(paging: Offset, met: Place, told: Told) -> Place | End | Stop:
    assert isinstance(met.at, int)
    if told.repeated:
        return _repeats(paging.param)
    there = met.at - paging.start + told.items
    if told.total is not None and there >= told.total:
        return End(met)
    if not told.items:
        return _nothing(there, told.total) if told.total is not None else End(met)
    return replace(met, at=met.at + told.items)


def _after_number(met: Place, told: Told) -> Place | End | Stop:
    assert isinstance(met.at, int)
    if told.repeated:
        # Behind its end, many a source answers its last page again.
        over = told.total is not None and met.items - told.items >= told.total
        return End(met) if over else _repeats("page number")
    if told.last is not None and met.at >= told.last:
        return End(met)
    if not told.items:
        if told.last is not None:
            return Stop("empty_page", f"page {met.at} has no items though it tells of {told.last} pages", again=True)
        if told.total is not None and met.items < told.total:
            return _nothing(met.items, told.total)
        return End(met)
    # Items that slid from one page to the next were counted twice, so the total alone does not tell the end.
    short = told.items < met.most or met.answers == 1
    if told.total is not None and met.items >= told.total and short:
        return End(met)
    return replace(met, at=met.at + 1)


def _after_token(met: Place, told: Told) -> Place | End | Stop:
    if told.next is None:
        return End(met)
    if told.repeated or str(told.next) == str(met.at):
        return Stop("repeats", "it repeats an earlier answer: it names a token that it has named before")
    if met.empty >= MOST_EMPTY:
        return Stop("endless", f"{MOST_EMPTY} answers in a row have no items, and each names a next one")
    return replace(met, at=told.next)


def _after_id(paging: AfterId, met: Place, told: Told) -> Place | End | Stop:
    if told.beyond is not None:
        return replace(met, at=told.beyond)
    # What stands at the place itself may come again; what stands before it was not asked for.
    return _repeats(paging.param) if told.behind else End(met)


def _repeats(name: str) -> Stop:
    return Stop("repeats", f"it repeats an earlier answer: {name!r} may not be what it is asked by")


def _nothing(there: int, total: int) -> Stop:
    return Stop("empty_page", f"it has no items at {there:,} though it tells of {total:,} in all", again=True)


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

"""How far a stream has been read, and from where it is read next.

A source counts something up: ids, or the times of changes. The *reach* of a stream is the greatest value met so far.
Reading is closed: it begins at the reach itself (an id) or before it (a time, less the overlap), and what has been seen
before is recognised by its content. The overlap is applied when reading and never stored. No value moves the reach past
the moment at which reading began: what changes while a long list is read is read again, and a time in the future is
believed by nobody.

A *pass* is one way through a stream from its beginning to its end. All of it stands in the stream's `seen` point, so
that another process can go on where this one was killed. Sitemaps and feeds need no more than the hash of a document.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from recrawl.decide.paging import Place
from recrawl.model.record import Json

AHEAD = timedelta(days=1)
"""A time further ahead of the clock than this is an error of the source's."""


class Form(StrEnum):
    """How a source writes its times; it is asked in the same form."""

    ISO = "iso"
    DATE = "date"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"


@dataclass(frozen=True, slots=True)
class Time:
    """The time of a change, as far as the source's order of changes goes."""

    at: datetime
    form: Form = Form.ISO


@dataclass(frozen=True, slots=True)
class Id:
    """An id of those that count up. Digits are compared as numbers, all else as text."""

    value: int | str

    @property
    def key(self) -> tuple[int, int, str]:
        number = as_number(self.value)
        return (0, number, "") if number is not None else (1, 0, str(self.value))


Reach = Time | Id


def as_number(value: int | str) -> int | None:
    """The number that an id is, however it is written."""
    if isinstance(value, int):
        return value
    return int(value) if value.isascii() and value.isdigit() and len(value) < 1000 else None


def further(reach: Reach | None, value: Reach, began: datetime) -> Reach:
    """The reach after an item of that value, met by a pass that began then."""
    if isinstance(value, Time):
        capped = replace(value, at=min(value.at, began))
        return capped if not isinstance(reach, Time) or capped.at >= reach.at else reach
    return value if not isinstance(reach, Id) or value.key >= reach.key else reach


def is_future(value: Reach, now: datetime) -> bool:
    return isinstance(value, Time) and value.at > now + AHEAD


def asked(reach: Reach, overlap: float) -> int | str:
    """What to ask a source for, so that nothing at or behind the reach is left out: less `overlap` seconds for times,
    which are cut to whole seconds or days."""
    if isinstance(reach, Id):
        return reach.value
    at = (reach.at - timedelta(seconds=overlap)).astimezone(UTC)
    match reach.form:
        case Form.DATE:
            return at.date().isoformat()
        case Form.SECONDS:
            return int(at.timestamp() // 1)
        case Form.MILLISECONDS:
            return int(at.timestamp() // 1) * 1000
    return f"{at.replace(microsecond=0, tzinfo=None).isoformat()}Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One way through a stream. `since` is where it reads from (None: everything), `reach` how far it has come; `place`
    is the next answer to ask for, None once the end was reached. `turn` counts how often the list was begun anew in
    this pass because it moved meanwhile, `restarts` because a page token had expired. `reading` numbers the reading of
    the document that stands for the whole list."""

    cycle: int
    spec: str
    began: datetime
    place: Place | None
    since: Reach | None = None
    reach: Reach | None = None
    reading: int = 0
    turn: int = 1
    restarts: int = 0

    @property
    def ended(self) -> bool:
        return self.place is None

    def point(self) -> Json:
        """The form in which it is stored."""
        return {
            "cycle": self.cycle,
            "spec": self.spec,
            "began": self.began.isoformat(),
            "place": self.place.point() if self.place else None,
            "since": _stored(self.since),
            "reach": _stored(self.reach),
            "reading": self.reading,
            "turn": self.turn,
            "restarts": self.restarts,
        }


def stored_pass(point: Json) -> Pass | None:
    """The pass that a stored point tells of; None for what is no point of a pass."""
    if not isinstance(point, dict) or "began" not in point:
        return None
    place = point["place"]
    return Pass(
        cycle=int(str(point["cycle"])),
        spec=str(point["spec"]),
        began=datetime.fromisoformat(str(point["began"])),
        place=Place.stored(place) if isinstance(place, dict) else None,
        since=_read(point["since"]),
        reach=_read(point["reach"]),
        reading=int(str(point["reading"])),
        turn=int(str(point["turn"])),
        restarts=int(str(point["restarts"])),
    )


def resumed(known: Pass | None, cycle: int, spec: str) -> Pass | None:
    """The pass to go on with: that of this cycle, under these rules. Of another one only the reach is worth keeping,
    for the places in a list are places of then."""
    return known if known is not None and known.cycle == cycle and known.spec == spec else None


def settled(known: Pass | None) -> Reach | None:
    """From where the next pass has to read: a pass that did not come to its end has not proved its own reach."""
    if known is None:
        return None
    return known.reach if known.ended else known.since


def begun(
    start: Place, cycle: int, spec: str, now: datetime, since: Reach | None, kind: type[Reach] | None, reading: int = 0
) -> Pass:
    """A new pass from a reach, which counts only if the source still goes by that kind of value."""
    if kind is None or not isinstance(since, kind):
        since = None
    return Pass(cycle=cycle, spec=spec, began=now, place=start, since=since, reach=since, reading=reading)


def _stored(reach: Reach | None) -> Json:
    if isinstance(reach, Time):
        return {"time": reach.at.isoformat(), "form": reach.form}
    # As text: an id may have more digits than a JSON number of a database keeps.
    return None if reach is None else {"id": str(reach.value), "number": isinstance(reach.value, int)}


def _read(stored: Json) -> Reach | None:
    if not isinstance(stored, dict):
        return None
    if "time" in stored:
        return Time(datetime.fromisoformat(str(stored["time"])), Form(str(stored["form"])))
    value = str(stored["id"])
    return Id(int(value) if stored["number"] else value)

"""What the zone at the end of a date means."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from recrawl.errors import Misuse

# For verbose patterns: Z, +08:00, GMT-1, EST, Europe/Berlin.
OFFSET: Final = r"(?:GMT|UTC?)?[+-]\d{1,2}(?::?\d{2})?|[a-z]+(?:/[a-z0-9_+-]+)*"

_NUMERIC = re.compile(r"(?:GMT|UTC?)?([+-])(\d{1,2}?)(?::?(\d{2}))?", re.IGNORECASE)
_FARTHEST: Final = timedelta(hours=15)

# Hours east of UTC. RFC 822 section 5.1 names the American ones; single letters mean nothing (RFC 5322 section 4.3).
_RFC_822: Final[dict[str, float]] = {
    **dict.fromkeys(("Z", "UT", "UTC", "GMT"), 0),
    **{"AT": -4, "AST": -4, "ADT": -3, "ET": -5, "EST": -5, "EDT": -4, "CT": -6, "CST": -6, "CDT": -5},
    **{"MT": -7, "MST": -7, "MDT": -6, "PT": -8, "PST": -8, "PDT": -7},
}
_ELSEWHERE: Final[dict[str, tuple[float, ...]]] = {
    **{"WET": (0,), "WEST": (1,), "MET": (1,), "MEST": (2,), "MEZ": (1,), "MESZ": (2,), "CET": (1,), "CEST": (2,)},
    **{"EET": (2,), "EEST": (3,), "MSK": (3,), "SAST": (2,), "PKT": (5,), "NPT": (5.75,), "WIB": (7,), "ICT": (7,)},
    **{"HKT": (8,), "SGT": (8,), "AWST": (8,), "JST": (9,), "KST": (9,), "ACST": (9.5,), "ACDT": (10.5,)},
    **{"AEST": (10,), "AEDT": (11,), "NZST": (12,), "NZDT": (13,), "AKST": (-9,), "AKDT": (-8,), "HST": (-10,)},
    **{"NST": (-3.5,), "NDT": (-2.5,), "BRT": (-3,), "ART": (-3,)},
    # One name, many places: only the source's own zone can tell.
    **{"CST": (8,), "IST": (5.5, 2, 1), "BST": (1, 6), "EST": (10, 11), "AST": (3,), "MST": (8,), "PST": (8,)},
}


def named_zone(name: str | None) -> tzinfo | None:
    """The time zone that a source declares; `Misuse` where no zone has that name."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise Misuse(f"There is no time zone {name!r}.", action="Use a name such as Europe/Berlin or UTC.") from None


def offset_of(written: str, local: datetime, own: tzinfo | None) -> timedelta | None:
    """How far east of UTC a zone as written is at that local time; None where nobody can know.

    A name with several meanings has the one that the source's own zone has at that time, else RFC 822's.
    """
    if numeric := _NUMERIC.fullmatch(written):
        return _numeric(*numeric.groups())
    if "/" in written and written.upper() != "ETC/GMT":
        return _in_place(written, local)
    name = written.upper().removeprefix("ETC/")
    meanings = [timedelta(hours=hours) for hours in _ELSEWHERE.get(name, ())]
    if name in _RFC_822:
        meanings.insert(0, timedelta(hours=_RFC_822[name]))
    here = local.replace(tzinfo=own).utcoffset()
    if here in meanings:
        return here
    return meanings[0] if len(meanings) == 1 or name in _RFC_822 else None


def _numeric(sign: str, hours: str, minutes: str | None) -> timedelta | None:
    size = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if size > _FARTHEST or int(minutes or 0) > 59:
        return None
    return -size if sign == "-" else size


def _in_place(name: str, local: datetime) -> timedelta | None:
    try:
        return local.replace(tzinfo=ZoneInfo(name)).utcoffset()
    except (ValueError, OSError, KeyError):
        return None

"""Values that a record can hold beside the plain Python ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Price:
    """An amount of money. `currency` is an ISO 4217 code, or None where the text does not tell."""

    amount: Decimal
    currency: str | None = None


class Precision(StrEnum):
    """The smallest part of a moment that is really known."""

    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as far as it is known.

    `first` is the first instant of what is known, with the offset of its zone: for "November 2026" in Shanghai
    2026-11-01T00:00:00+08:00. An unknown part is never invented: `precision` says which parts of `first` are real.
    """

    first: datetime
    precision: Precision
    text: str = ""

    def isoformat(self) -> str:
        """As many parts as are known: `2026`, `2026-11`, `2026-11-30`, or a full instant with its offset."""
        if self.precision is Precision.YEAR:
            return f"{self.first.year:04d}"
        if self.precision is Precision.MONTH:
            return f"{self.first.year:04d}-{self.first.month:02d}"
        if self.precision is Precision.DAY:
            return self.first.date().isoformat()
        return self.first.isoformat()


class Stock(StrEnum):
    """What a shop says about availability."""

    IN = "in"
    OUT = "out"
    LOW = "low"
    PREORDER = "preorder"
    UNKNOWN = "unknown"

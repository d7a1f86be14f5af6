"""Which of two states of a page is the newer one. A clock of ours never decides."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum

_NUMBER = re.compile(r"-?[0-9]{1,18}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AHEAD = timedelta(days=1)
"""A time that is further ahead of now is no time of something that has happened."""


class Order(StrEnum):
    NEWER = "newer"
    CONFLICT = "conflict"  # the source gives both the same place, with other content: the later look wins
    OLDER = "older"


def order_key(
    by: str, observed: int, version: str | None, updated: datetime | None, now: datetime, stored: int | None
) -> int:
    """The place of a state in its source's one order: `version`, `updated` (microseconds) or `observed`.

    A source time more than a day ahead of `now` counts as missing. A missing value takes the stored place, so that
    the later look wins without moving the order.
    """
    if by == "version" and version is not None:
        digits = version.strip()
        if _NUMBER.fullmatch(digits):
            return int(digits)
    if by == "updated" and updated is not None and updated <= now + AHEAD:
        return (updated - _EPOCH) // timedelta(microseconds=1)
    if by == "observed":
        return observed
    return stored if stored is not None else 0


def compare(new: tuple[int, int], stored: tuple[int | None, int], *, by: str) -> Order:
    """Compare (order_key, observed) of a new state with the stored one."""
    key, observed = new
    stored_key, stored_observed = stored
    if stored_key is None or key > stored_key:
        return Order.NEWER
    if key < stored_key or observed < stored_observed:
        return Order.OLDER
    return Order.NEWER if by == "observed" else Order.CONFLICT


def rolled_back(key: int, at: datetime, lower: tuple[int | None, datetime | None], interval: timedelta) -> bool:
    """Whether a lower value is the source's own way back and no old copy: an unconditional look found the same value
    at least an interval before `at`."""
    seen_key, seen_at = lower
    return key == seen_key and seen_at is not None and at - seen_at >= interval

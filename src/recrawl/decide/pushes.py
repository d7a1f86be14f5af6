"""What a pushed record means for its page: the rules by which pushes pass the door.

As for pages that were fetched: equal content is no news, older never beats newer, other content is a version. But no
request was made, so nothing is learned about the page's address, and its schedule stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from recrawl.decide.deletion import cleared
from recrawl.decide.lifecycle import PageEvent, TaskEvent, page_after, task_after
from recrawl.decide.order import AHEAD, Order, compare, order_key
from recrawl.decide.revert import still_overruled
from recrawl.model.push import Pushed
from recrawl.model.record import Json
from recrawl.model.settlement import NewVersion, PageFacts, TaskEnd, Verdict
from recrawl.model.work import PageState, Stage, TaskState

END = TaskEnd(state=task_after(TaskState.RUNNING, TaskEvent.FINISH), stage=Stage.SETTLE)
"""How the task of a chunk ends, whatever its records were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRules:
    """The part of a source's declaration that settling its pushes needs. `window` is how long equal content is a
    duplicate: None for ever, "day" within one day of `zone`, else seconds since the last version."""

    order: str = "observed"
    window: float | str | None = None
    zone: str = "UTC"
    reader_hash: str = ""


def judge_push(page: PageFacts, found: Pushed, *, rules: PushRules, last_at: datetime | None, now: datetime) -> Verdict:
    """The verdict on one pushed record. `last_at` is when the content of the page's last version was fetched."""
    key = order_key(rules.order, found.observed, found.source_version, found.source_updated_at, now, page.order_key)
    if still_overruled(page, found.content_hash, reread=False):
        return Verdict(page=page, end=END, count="duplicates")  # it was taken back by hand
    same = page.version > 0 and found.content_hash == page.content_hash and page.status is not PageState.DELETED
    if same and _within(rules, last_at, found.fetched_at):
        return Verdict(page=_seen_again(page, found, key), end=END, count="duplicates", refresh=found.rows)
    place = compare((key, found.observed), (page.order_key, page.observed), by=rules.order)
    if place is Order.OLDER and page.version:
        told: dict[str, Json] = {"stored": page.order_key, "found": key}
        return Verdict(page=page, end=END, count="regressions", event=("regression", told))
    number = page.version + 1
    conflict = place is Order.CONFLICT and page.version > 0 and not same
    return Verdict(
        page=replace(
            cleared(page),
            status=page_after(page.status, PageEvent.READ),
            version=number,
            # What was stored of an answer says nothing about this content: the next visit asks without validators.
            etag=None,
            last_modified=None,
            raw_hash=None,
            structure_hash=None,
            reader_hash=None,
            content_hash=found.content_hash,
            source_version=found.source_version,
            source_updated_at=found.source_updated_at,
            order_key=key,
            observed=max(page.observed, found.observed),
            last_changed_at=now,
            overruled=None,
            lower_key=None,
            lower_at=None,
            failures=0,
            deleted_at=None,
            delete_reason=None,
            moved_to=None,
        ),
        end=END,
        count="changed" if page.version else "new",
        version=NewVersion(
            version=number,
            kind="created" if not page.version else "restored" if page.deleted_at is not None else "updated",
            content_hash=found.content_hash,
            raw_hash=None,
            reader_hash=rules.reader_hash,
            final_url=found.fetch_url,
            content_type=None,
            source_updated_at=found.source_updated_at,
            fetched_at=found.fetched_at,
            order_key=key,
            observed=found.observed,
        ),
        rows=found.rows,
        event=("conflict", {"order_key": key, "version": number}) if conflict else None,
    )


def _seen_again(page: PageFacts, found: Pushed, key: int) -> PageFacts:
    """Later than it was known to be, so that what is older than this look is told to be."""
    later: dict[str, Any] = {
        "status": page_after(page.status, PageEvent.READ),
        "observed": max(page.observed, found.observed),
        "order_key": max(page.order_key or 0, key),
    }
    if key >= (page.order_key or 0):
        later["source_version"] = found.source_version or page.source_version
        later["source_updated_at"] = found.source_updated_at or page.source_updated_at
    return page if all(getattr(page, name) == value for name, value in later.items()) else replace(page, **later)


def _within(rules: PushRules, last_at: datetime | None, fetched_at: datetime) -> bool:
    if rules.window is None or last_at is None:
        return True
    if rules.window == "day":
        zone = ZoneInfo(rules.zone)
        return last_at.astimezone(zone).date() == fetched_at.astimezone(zone).date()
    return abs(fetched_at - last_at) < timedelta(seconds=float(rules.window))


Said = tuple[str | None, datetime | None]
"""A version of a record as its source names it, and the time of it."""


def says_no_more(said: Said, stored: Said, now: datetime) -> bool:
    """Whether what a listing says of a record is no newer than what is stored of it. Where the two cannot be compared,
    it may be; a time more than a day ahead of `now` cannot."""
    if said[0] is not None and said[0] != stored[0]:
        return False
    known = stored[1] if stored[1] is not None and stored[1] <= now + AHEAD else None
    if said[1] is not None and (known is None or said[1] > known):
        return False
    return said != (None, None)

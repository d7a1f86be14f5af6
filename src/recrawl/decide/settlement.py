"""What an outcome means for its page, its task and the data: the rules behind `settle`.

Pure: the page as locked in the transaction, the outcome, the source's rules, `now` and one random draw come in; a
verdict goes out. Whatever ends a page's task grows its generation and says when it is due again, or the page would be
forgotten.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from recrawl.decide.case import Case, done, due_again
from recrawl.decide.deletion import cleared
from recrawl.decide.failures import broken, dead, gone, invalid, quarantined, refused, throttled
from recrawl.decide.lifecycle import PageEvent, page_after
from recrawl.decide.order import Order, compare, order_key, rolled_back
from recrawl.decide.revert import still_overruled
from recrawl.decide.schedule import after_look, first_rate
from recrawl.decide.taken import awaiting_its_stream
from recrawl.model.outcome import (
    Broken,
    By,
    Changed,
    Gone,
    Invalid,
    Look,
    Moved,
    Outcome,
    Quarantined,
    Refused,
    Rejected,
    Throttled,
    Unchanged,
)
from recrawl.model.record import Json
from recrawl.model.settlement import NewVersion, PageFacts, Verdict
from recrawl.model.work import PageState, Stage


def judge(case: Case, outcome: Outcome) -> Verdict:
    """The verdict on an outcome. One page has at most one open task, so nothing but hints moved since its claim."""
    verdict = _judged(case, outcome)
    if case.page.taken_at is None or verdict.page.due_at is None:
        return verdict
    return replace(verdict, page=awaiting_its_stream(verdict.page, outcome))


def _judged(case: Case, outcome: Outcome) -> Verdict:
    match outcome:
        case Unchanged():
            return _unchanged(case, outcome)
        case Changed():
            return _changed(case, outcome)
        case Moved():
            return _moved(case, outcome)
        case Gone():
            return gone(case, outcome)
        case Refused():
            return refused(case, outcome)
        case Throttled():
            return throttled(case, outcome)
        case Broken():
            return broken(case, outcome)
        case Rejected():
            return dead(case, outcome.look, Stage.FETCH, outcome.kind, outcome.message, "failed")
        case Quarantined():
            return quarantined(case, outcome)
        case Invalid():
            return invalid(case, outcome)


def _good(case: Case, look: Look, rate: float | None) -> PageFacts:
    """The page after a good look: active, its troubles forgotten, its validators those of this answer, and due again
    by the `rate` of its changes."""
    page = case.page
    return replace(
        cleared(page),
        status=page_after(page.status, PageEvent.READ),
        etag=look.validators.etag,
        last_modified=look.validators.last_modified,
        observed=max(page.observed, case.observed),
        lower_key=None,
        lower_at=None,
        last_fetched_at=look.at if look.requests else page.last_fetched_at,
        failures=0,
        generation=page.generation + 1,
        change_rate=rate,
        due_at=due_again(case, rate, hinted=page.hint is not None and case.rules.hints_believed),
        deleted_at=None,
        delete_reason=None,
        moved_to=None,
    )


def _as_it_stood(case: Case) -> PageFacts:
    """A page that was in trouble or in doubt when its stored body was read again, which says nothing of that: it stays
    as it stands, and is looked at soon."""
    return replace(case.page, generation=case.page.generation + 1, due_at=case.now)


def _only_reread(case: Case, found: Unchanged | Changed) -> bool:
    in_doubt = case.page.status is not PageState.ACTIVE or cleared(case.page) is not case.page
    return found.reread and not found.look.requests and in_doubt


def _learned(case: Case, look: Look, *, changed: bool, updated: datetime | None = None) -> float | None:
    """The changes a day that the page is believed to make after this look. Reading stored bytes again is none."""
    page = case.page
    if not look.requests or (page.change_rate is not None and page.last_fetched_at is None):
        return page.change_rate
    if page.change_rate is None or page.last_fetched_at is None:
        since = updated or page.source_updated_at or page.last_changed_at or case.now
        return first_rate(shortest=case.rules.shortest, age=(case.now - since).total_seconds())
    elapsed = max(0.0, (look.at - page.last_fetched_at).total_seconds())
    return after_look(page.change_rate, elapsed, changed=changed)


def _acquitted(case: Case, page: PageFacts) -> tuple[str, dict[str, Json]] | None:
    """The event of a suspicion that a look has ended."""
    ended = case.page.status is PageState.SUSPECTED and page.status is PageState.ACTIVE
    return ("acquitted", {"by": "look"}) if ended else None


def _unchanged(case: Case, found: Unchanged) -> Verdict:
    count = {By.NOT_MODIFIED: "unchanged_304", By.RAW: "unchanged_hash", By.CONTENT: "unchanged_hash"}[found.by]
    if case.page.status is PageState.DELETED:
        # It was deleted while it was looked at: it is looked at once more, for all that it holds.
        page = replace(case.page, generation=case.page.generation + 1, due_at=case.now)
        return Verdict(page=page, end=done(Stage.SETTLE), count=count)
    if _only_reread(case, found):
        page = _as_it_stood(case)
    else:
        page = _good(case, found.look, _learned(case, found.look, changed=False))
    if found.by is By.NOT_MODIFIED:
        # A 304 may leave out validators that stay in force (RFC 9111 section 4.3.4).
        page = replace(
            page,
            etag=found.look.validators.etag or case.page.etag,
            last_modified=found.look.validators.last_modified or case.page.last_modified,
        )
        if found.raw_hash != case.page.raw_hash:
            page = replace(page, due_at=case.now)
    elif found.look.requests == 0:
        page = replace(page, etag=case.page.etag, last_modified=case.page.last_modified)
    if found.by is By.CONTENT:
        # A source that shows what an operator put back agrees with him: its next change counts.
        structure = found.structure_hash or page.structure_hash
        page = replace(page, overruled=None, raw_hash=found.raw_hash, structure_hash=structure)
    return Verdict(
        page=replace(page, reader_hash=found.reader_hash),
        end=done(Stage.SETTLE),
        count=count,
        body=found.body,
        refresh=found.rows if page.version else (),
        event=_acquitted(case, page),
    )


def _changed(case: Case, found: Changed) -> Verdict:
    before, rules = case.page, case.rules
    if still_overruled(before, found.content_hash, reread=found.reread):
        return _set_aside(case, found)
    key = order_key(
        rules.order, case.observed, found.source_version, found.source_updated_at, case.now, before.order_key
    )
    place = Order.NEWER
    if not found.reread and before.deleted_at is None:
        place = compare((key, case.observed), (before.order_key, before.observed), by=rules.order)
    rate = before.change_rate
    if place is not Order.OLDER and not found.reread:
        rate = _learned(case, found.look, changed=True, updated=found.source_updated_at)
    page = _as_it_stood(case) if _only_reread(case, found) else _good(case, found.look, rate)
    if found.look.requests == 0:
        page = replace(page, etag=before.etag, last_modified=before.last_modified)
    back = place is Order.OLDER and bool(before.version)
    if back and not _rolled_back(case, found, key):
        return _regression(case, found, page, key)
    number = before.version + 1
    kind = "rollback" if back else _kind(before, found)
    page = replace(
        page,
        version=number,
        raw_hash=found.raw_hash,
        content_hash=found.content_hash,
        overruled=None,
        structure_hash=found.structure_hash,
        reader_hash=found.reader_hash,
        content_type=found.look.content_type or before.content_type,
        source_version=found.source_version,
        source_updated_at=found.source_updated_at,
        order_key=key,
        last_changed_at=before.last_changed_at if kind == "reread" else case.now,
    )
    version = NewVersion(
        version=number,
        kind=kind,
        content_hash=found.content_hash,
        raw_hash=found.raw_hash,
        reader_hash=found.reader_hash,
        final_url=found.look.final_url,
        content_type=page.content_type,
        source_updated_at=found.source_updated_at,
        fetched_at=found.look.at,
        order_key=key,
        observed=case.observed,
    )
    return Verdict(
        page=page,
        end=done(Stage.SETTLE),
        count={"created": "new", "reread": "reread"}.get(kind, "changed"),
        version=version,
        rows=found.rows,
        body=found.body,
        learned_id=found.page_id,
        canonical=found.canonical,
        event=("conflict", {"order_key": key, "version": number})
        if place is Order.CONFLICT
        else _acquitted(case, page),
    )


def _set_aside(case: Case, found: Changed) -> Verdict:
    """The source still shows what an operator set aside, perhaps read by other rules: nothing has changed."""
    page = _as_it_stood(case)
    if not _only_reread(case, found):
        page = _good(case, found.look, _learned(case, found.look, changed=False))
    if found.look.requests == 0:
        page = replace(page, etag=case.page.etag, last_modified=case.page.last_modified)
    page = replace(
        page,
        raw_hash=found.raw_hash,
        overruled=found.content_hash,
        structure_hash=found.structure_hash or page.structure_hash,
        reader_hash=found.reader_hash,
    )
    return Verdict(page=page, end=done(Stage.SETTLE), count="unchanged_hash", body=found.body)


def _rolled_back(case: Case, found: Changed, key: int) -> bool:
    before, interval = case.page, timedelta(seconds=case.rules.shortest)
    unconditional = not found.look.conditional
    return unconditional and rolled_back(key, found.look.at, (before.lower_key, before.lower_at), interval)


def _regression(case: Case, found: Changed, page: PageFacts, key: int) -> Verdict:
    """Old never beats new: nothing changes, and the next look goes without validators, which are those of the old."""
    before = case.page
    first = not found.look.conditional and before.lower_key != key
    told: dict[str, Json] = {"stored": before.order_key, "found": key, "raw_hash": found.raw_hash}
    page = replace(
        page,
        etag=None,
        last_modified=None,
        observed=before.observed,
        lower_key=key if first else before.lower_key,
        lower_at=found.look.at if first else before.lower_at,
        # Whatever a finder says of it: the second look decides.
        due_at=case.now + timedelta(seconds=case.rules.shortest),
    )
    return Verdict(page=page, end=done(Stage.SETTLE), count="regressions", event=("regression", told), body=found.body)


def _kind(before: PageFacts, found: Changed) -> str:
    if before.version == 0:
        return "created"
    if before.deleted_at is not None:
        return "restored"
    return "reread" if found.reread else "updated"


def _moved(case: Case, found: Moved) -> Verdict:
    page = replace(
        cleared(case.page),
        status=page_after(case.page.status, PageEvent.MOVE),
        deleted_at=None,
        delete_reason=None,
        observed=max(case.page.observed, case.observed),
        last_fetched_at=found.look.at,
        failures=0,
        generation=case.page.generation + 1,
        due_at=due_again(case, None, hinted=True),
    )
    told: dict[str, Json] = {"to": found.url, "status": found.look.status}
    return Verdict(page=page, end=done(Stage.FETCH), count="moved", event=("moved", told))

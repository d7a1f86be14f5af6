"""What an outcome means for its page, its task and the data: the rules behind `settle`.

Pure: the page as locked in the transaction, the outcome, the source's rules, `now` and one random draw come in; a
verdict goes out. Whatever ends a page's task grows its generation and says when it is due again, or the page would be
forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recrawl.decide.deletion import cleared, confirmed
from recrawl.decide.lifecycle import PageEvent, TaskEvent, page_after, task_after
from recrawl.decide.order import Order, compare, order_key, rolled_back
from recrawl.decide.retry import backoff
from recrawl.decide.revert import still_overruled
from recrawl.decide.schedule import NEVER, REFUSED_WAIT, after_look, first_rate, next_look, next_look_after_trouble
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
from recrawl.model.record import FieldError, Json
from recrawl.model.settlement import DeadLetter, NewVersion, PageFacts, TaskEnd, Verdict
from recrawl.model.work import PageState, Stage, TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The part of a source's policies that settling needs. Times are in seconds. `hints_believed`: what finders say of
    a page's version spares looks at it."""

    order: str = "observed"
    max_attempts: int = 5
    shortest: float = 0.0
    longest: float = 2_592_000.0
    reader_hash: str = ""
    hints_believed: bool = True
    confirm_after: int = 2
    confirm_gap: float = 21_600.0


@dataclass(frozen=True, slots=True)
class Case:
    """One outcome to judge, with all that it is judged by."""

    page: PageFacts
    attempt: int
    observed: int
    rules: Rules
    now: datetime
    draw: float


def judge(case: Case, outcome: Outcome) -> Verdict:
    """The verdict on an outcome. One page has at most one open task, so nothing but hints moved since its claim."""
    verdict = _judged(case, outcome)
    if case.page.taken_at is None or verdict.page.due_at is None:
        return verdict
    return replace(verdict, page=_looked_at_by_its_stream(verdict.page, outcome))


def _looked_at_by_its_stream(page: PageFacts, outcome: Outcome) -> PageFacts:
    """A page whose body comes with its sighting is due when it is sighted, and not before."""
    read = isinstance(outcome, Changed | Unchanged)
    return replace(page, due_at=NEVER, last_fetched_at=outcome.look.at if read else page.last_fetched_at)


def _judged(case: Case, outcome: Outcome) -> Verdict:
    match outcome:
        case Unchanged():
            return _unchanged(case, outcome)
        case Changed():
            return _changed(case, outcome)
        case Moved():
            return _moved(case, outcome)
        case Gone():
            return _gone(case, outcome)
        case Refused():
            return _refused(case, outcome)
        case Throttled():
            return _throttled(case, outcome)
        case Broken():
            return _broken(case, outcome)
        case Rejected():
            return _dead(case, outcome.look, Stage.FETCH, outcome.kind, outcome.message, "failed")
        case Quarantined():
            return _quarantined(case, outcome)
        case Invalid():
            return _invalid(case, outcome)


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
        due_at=_due(case, rate, hinted=page.hint is not None and case.rules.hints_believed),
        deleted_at=None,
        delete_reason=None,
        moved_to=None,
    )


def _as_it_stood(case: Case) -> PageFacts:
    """A page that was in trouble when its stored body was read again, which says nothing of that trouble: it stays as
    it stands, and is looked at soon."""
    return replace(case.page, generation=case.page.generation + 1, due_at=case.now)


def _only_reread(case: Case, found: Unchanged | Changed) -> bool:
    return found.reread and not found.look.requests and case.page.status is not PageState.ACTIVE


def _due(case: Case, rate: float | None, *, hinted: bool) -> datetime:
    rules = case.rules
    return next_look(case.now, rate=rate, shortest=rules.shortest, longest=rules.longest, hinted=hinted, draw=case.draw)


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


def _done(stage: Stage) -> TaskEnd:
    return TaskEnd(state=task_after(TaskState.RUNNING, TaskEvent.FINISH), stage=stage)


def _acquitted(case: Case, page: PageFacts) -> tuple[str, dict[str, Json]] | None:
    """The event of a suspicion that a look has ended."""
    ended = case.page.status is PageState.SUSPECTED and page.status is PageState.ACTIVE
    return ("acquitted", {"by": "look"}) if ended else None


def _unchanged(case: Case, found: Unchanged) -> Verdict:
    count = {By.NOT_MODIFIED: "unchanged_304", By.RAW: "unchanged_hash", By.CONTENT: "unchanged_hash"}[found.by]
    if case.page.status is PageState.DELETED:
        # It was deleted while it was looked at: it is looked at once more, for all that it holds.
        page = replace(case.page, generation=case.page.generation + 1, due_at=case.now)
        return Verdict(page=page, end=_done(Stage.SETTLE), count=count)
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
        end=_done(Stage.SETTLE),
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
        end=_done(Stage.SETTLE),
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
    return Verdict(page=page, end=_done(Stage.SETTLE), count="unchanged_hash", body=found.body)


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
    return Verdict(page=page, end=_done(Stage.SETTLE), count="regressions", event=("regression", told), body=found.body)


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
        due_at=_due(case, None, hinted=True),
    )
    told: dict[str, Json] = {"to": found.url, "status": found.look.status}
    return Verdict(page=page, end=_done(Stage.FETCH), count="moved", event=("moved", told))


def _gone(case: Case, found: Gone) -> Verdict:
    page = _trouble(case, found.look, PageEvent.FAIL)
    page = replace(
        page,
        # A page that has data keeps its standing: only the end of a cycle judges absence.
        status=case.page.status if case.page.version else page.status,
        gone_at=case.page.gone_at or case.now,
        observed=max(case.page.observed, case.observed),
    )
    if page.status is PageState.SUSPECTED:
        rules, final = case.rules, found.look.status == 410
        gap = timedelta(seconds=rules.confirm_gap)
        last = replace(page, gone_at=case.page.gone_at)
        page = confirmed(last, case.now, gap=gap, needed=rules.confirm_after, final=final)
    event: tuple[str, dict[str, Json]] | None = None
    if case.page.gone_at is None:
        event = ("gone", {"status": found.look.status})
    return Verdict(page=page, end=_done(Stage.FETCH), count="gone", event=event)


def _refused(case: Case, found: Refused) -> Verdict:
    if not found.by_robots:
        return _dead(case, found.look, Stage.FETCH, "refused", found.reason, "failed")
    page = replace(_trouble(case, found.look, PageEvent.REFUSE), due_at=case.now + REFUSED_WAIT)
    if page.status is PageState.REFUSED:
        page = replace(page, failures=0)
    return Verdict(page=page, end=_done(Stage.FETCH), count="refused")


def _throttled(case: Case, found: Throttled) -> Verdict:
    end = TaskEnd(
        state=task_after(TaskState.RUNNING, TaskEvent.POSTPONE),
        stage=Stage.FETCH,
        due_at=found.until,
        error_class=found.kind,
        error=found.message
        or f"the host answers {found.look.status} and asks to wait until {found.until:%Y-%m-%d %H:%M:%S} UTC",
        refund=True,
    )
    held = found.until if found.host_wide else None
    return Verdict(page=case.page, end=end, count="postponed", host_backoff=held)


def _broken(case: Case, found: Broken) -> Verdict:
    if case.attempt >= case.rules.max_attempts:
        return _dead(case, found.look, Stage.FETCH, found.kind, found.message, "failed")
    end = TaskEnd(
        state=task_after(TaskState.RUNNING, TaskEvent.POSTPONE),
        stage=Stage.FETCH,
        due_at=case.now + backoff(case.attempt, case.draw),
        error_class=found.kind,
        error=found.message,
    )
    return Verdict(page=case.page, end=end, count="postponed")


def _quarantined(case: Case, found: Quarantined) -> Verdict:
    """The page keeps its data; what came in its place, and why it is not believed, is kept beside it."""
    kind = f"quarantined, {found.name}" if found.name else "quarantined"
    signs: tuple[dict[str, Json], ...] = tuple(
        {"field": name, "kind": "sign", "message": told, "value": f"{weight:+}"} for name, weight, told in found.signs
    )
    return _dead(case, found.look, Stage.JUDGE, kind, found.reason, "quarantined", raw=found.raw, errors=signs)


def _invalid(case: Case, found: Invalid) -> Verdict:
    errors: tuple[dict[str, Json], ...] = tuple(
        {"field": error.field, "kind": error.kind, "message": error.message, "value": error.value}
        for error in found.errors
    )
    kind = ",".join(sorted({signature_of(error) for error in found.errors})) or "unreadable"
    verdict = _dead(case, found.look, found.stage, kind, found.reason, "invalid", raw=found.raw, errors=errors)
    # By other rules it may well be read, from what the dead letter keeps.
    return replace(verdict, page=replace(verdict.page, reader_hash=case.rules.reader_hash))


def signature_of(error: FieldError) -> str:
    """What groups an error with others of its kind: field, kind of error, and how the value is written."""
    return f"{error.field}:{error.kind}" + (f"({error.form})" if error.form else "")


def _dead(
    case: Case,
    look: Look,
    stage: Stage,
    kind: str,
    reason: str,
    count: str,
    raw: bytes = b"",
    errors: tuple[dict[str, Json], ...] = (),
) -> Verdict:
    """The task ends without data; the page keeps what it has, and what came is kept where a person can read it."""
    end = TaskEnd(
        state=task_after(TaskState.RUNNING, TaskEvent.KILL), stage=stage, error_class=kind[:200], error=reason
    )
    letter = DeadLetter(stage=stage, signature=f"{stage}:{kind}"[:500], reason=reason, raw=raw, errors=errors)
    return Verdict(page=_trouble(case, look, PageEvent.FAIL), end=end, count=count, dead=letter)


def _trouble(case: Case, look: Look, event: PageEvent) -> PageFacts:
    page = case.page
    failures = page.failures + 1
    due = next_look_after_trouble(case.now, shortest=case.rules.shortest, failures=failures)
    if page.status is PageState.DELETED:
        due = _due(case, None, hinted=True)
    return replace(
        page,
        status=page_after(page.status, event),
        last_fetched_at=look.at if look.status is not None else page.last_fetched_at,
        failures=failures,
        # These rules were tried; without this a page that they cannot read would be read again at once, for ever.
        reader_hash=case.rules.reader_hash if page.reader_hash is not None else None,
        generation=page.generation + 1,
        due_at=due,
    )

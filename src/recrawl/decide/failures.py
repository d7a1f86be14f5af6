"""Outcomes that bring no data: what they mean for the page, and what is kept of what came."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from recrawl.decide.case import Case, done, due_again
from recrawl.decide.deletion import confirmed
from recrawl.decide.lifecycle import PageEvent, TaskEvent, page_after, task_after
from recrawl.decide.retry import backoff
from recrawl.decide.schedule import REFUSED_WAIT, next_look_after_trouble
from recrawl.model.outcome import Broken, Gone, Invalid, Look, Quarantined, Refused, Throttled
from recrawl.model.record import FieldError, Json
from recrawl.model.settlement import DeadLetter, PageFacts, TaskEnd, Verdict
from recrawl.model.work import PageState, Stage, TaskState


def gone(case: Case, found: Gone) -> Verdict:
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
    return Verdict(page=page, end=done(Stage.FETCH), count="gone", event=event)


def refused(case: Case, found: Refused) -> Verdict:
    if not found.by_robots:
        return dead(case, found.look, Stage.FETCH, "refused", found.reason, "failed")
    page = replace(_trouble(case, found.look, PageEvent.REFUSE), due_at=case.now + REFUSED_WAIT)
    if page.status is PageState.REFUSED:
        page = replace(page, failures=0)
    return Verdict(page=page, end=done(Stage.FETCH), count="refused")


def throttled(case: Case, found: Throttled) -> Verdict:
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


def broken(case: Case, found: Broken) -> Verdict:
    if case.attempt >= case.rules.max_attempts:
        return dead(case, found.look, Stage.FETCH, found.kind, found.message, "failed")
    end = TaskEnd(
        state=task_after(TaskState.RUNNING, TaskEvent.POSTPONE),
        stage=Stage.FETCH,
        due_at=case.now + backoff(case.attempt, case.draw),
        error_class=found.kind,
        error=found.message,
    )
    return Verdict(page=case.page, end=end, count="postponed")


def quarantined(case: Case, found: Quarantined) -> Verdict:
    """The page keeps its data; what came in its place, and why it is not believed, is kept beside it."""
    kind = f"quarantined, {found.name}" if found.name else "quarantined"
    signs: tuple[dict[str, Json], ...] = tuple(
        {"field": name, "kind": "sign", "message": told, "value": f"{weight:+}"} for name, weight, told in found.signs
    )
    return dead(case, found.look, Stage.JUDGE, kind, found.reason, "quarantined", raw=found.raw, errors=signs)


def invalid(case: Case, found: Invalid) -> Verdict:
    errors: tuple[dict[str, Json], ...] = tuple(
        {"field": error.field, "kind": error.kind, "message": error.message, "value": error.value}
        for error in found.errors
    )
    kind = ",".join(sorted({signature_of(error) for error in found.errors})) or "unreadable"
    verdict = dead(case, found.look, found.stage, kind, found.reason, "invalid", raw=found.raw, errors=errors)
    # By other rules it may well be read, from what the dead letter keeps.
    return replace(verdict, page=replace(verdict.page, reader_hash=case.rules.reader_hash))


def signature_of(error: FieldError) -> str:
    """What groups an error with others of its kind: field, kind of error, and how the value is written."""
    return f"{error.field}:{error.kind}" + (f"({error.form})" if error.form else "")


def dead(
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
        due = due_again(case, None, hinted=True)
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

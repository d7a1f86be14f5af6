"""What an outcome means for its page, its task and the data: the rules behind `settle`.

Pure: the page as locked in the transaction, the outcome, the source's rules, `now` and one random draw come in; a
verdict goes out. Whatever ends a page's task grows its generation and says when it is due again, or the page would be
forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from recrawl.decide.lifecycle import PageEvent, TaskEvent, page_after, task_after
from recrawl.decide.order import Order, compare, order_key
from recrawl.decide.retry import backoff
from recrawl.decide.schedule import NEVER, REFUSED_WAIT, next_look, next_look_after_trouble
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
from recrawl.model.settlement import DeadLetter, NewVersion, PageFacts, TaskEnd, Verdict
from recrawl.model.work import Stage, TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The part of a source's policies that settling needs. Times are in seconds."""

    order: str = "observed"
    max_attempts: int = 5
    shortest: float = 0.0
    longest: float = 2_592_000.0
    reader_hash: str = ""


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
            return _dead(case, outcome.look, Stage.JUDGE, "quarantined", outcome.reason, "quarantined", raw=outcome.raw)
        case Invalid():
            return _invalid(case, outcome)


def _good(case: Case, look: Look) -> PageFacts:
    """The page after a good look: active, its troubles forgotten, its validators those of this answer."""
    page, now = case.page, case.now
    hinted = page.hint is not None
    due = next_look(now, shortest=case.rules.shortest, longest=case.rules.longest, hinted=hinted)
    return replace(
        page,
        status=page_after(page.status, PageEvent.READ),
        etag=look.validators.etag,
        last_modified=look.validators.last_modified,
        observed=max(page.observed, case.observed),
        last_fetched_at=look.at if look.requests else page.last_fetched_at,
        failures=0,
        misses=0,
        gone_at=None,
        confirms=0,
        confirm_at=None,
        generation=page.generation + 1,
        due_at=due,
        deleted_at=None,
        delete_reason=None,
        moved_to=None,
    )


def _done(stage: Stage) -> TaskEnd:
    return TaskEnd(state=task_after(TaskState.RUNNING, TaskEvent.FINISH), stage=stage)


def _unchanged(case: Case, found: Unchanged) -> Verdict:
    page = _good(case, found.look)
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
        page = replace(page, raw_hash=found.raw_hash, structure_hash=found.structure_hash or page.structure_hash)
    page = replace(page, reader_hash=found.reader_hash)
    count = {By.NOT_MODIFIED: "unchanged_304", By.RAW: "unchanged_hash", By.CONTENT: "unchanged_hash"}[found.by]
    return Verdict(
        page=page, end=_done(Stage.SETTLE), count=count, body=found.body, refresh=found.rows if page.version else ()
    )


def _changed(case: Case, found: Changed) -> Verdict:
    before, rules = case.page, case.rules
    key = order_key(
        rules.order, case.observed, found.source_version, found.source_updated_at, case.now, before.order_key
    )
    place = Order.NEWER
    if not found.reread:
        place = compare((key, case.observed), (before.order_key, before.observed), by=rules.order)
    page = _good(case, found.look)
    if found.look.requests == 0:
        page = replace(page, etag=before.etag, last_modified=before.last_modified)
    if place is Order.OLDER and before.version:
        told: dict[str, Json] = {"stored": before.order_key, "found": key, "raw_hash": found.raw_hash}
        return Verdict(
            page=replace(page, observed=before.observed), end=_done(Stage.SETTLE), count="regressions",
            event=("regression", told), body=found.body,
        )  # fmt: skip
    number = before.version + 1
    kind = _kind(before, found)
    page = replace(
        page,
        version=number,
        raw_hash=found.raw_hash,
        content_hash=found.content_hash,
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
        event=("conflict", {"order_key": key, "version": number}) if place is Order.CONFLICT else None,
    )


def _kind(before: PageFacts, found: Changed) -> str:
    if before.version == 0:
        return "created"
    if before.deleted_at is not None:
        return "restored"
    return "reread" if found.reread else "updated"


def _moved(case: Case, found: Moved) -> Verdict:
    page = replace(
        case.page,
        status=page_after(case.page.status, PageEvent.MOVE),
        observed=max(case.page.observed, case.observed),
        last_fetched_at=found.look.at,
        failures=0,
        generation=case.page.generation + 1,
        due_at=next_look(case.now, shortest=case.rules.shortest, longest=case.rules.longest, hinted=True),
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
    event: tuple[str, dict[str, Json]] | None = None
    if case.page.gone_at is None:
        event = ("gone", {"status": found.look.status})
    return Verdict(page=page, end=_done(Stage.FETCH), count="gone", event=event)


def _refused(case: Case, found: Refused) -> Verdict:
    if not found.by_robots:
        return _dead(case, found.look, Stage.FETCH, "refused", found.reason, "failed")
    page = replace(_trouble(case, found.look, PageEvent.REFUSE), failures=0, due_at=case.now + REFUSED_WAIT)
    return Verdict(page=page, end=_done(Stage.FETCH), count="refused")


def _throttled(case: Case, found: Throttled) -> Verdict:
    end = TaskEnd(
        state=task_after(TaskState.RUNNING, TaskEvent.POSTPONE),
        stage=Stage.FETCH,
        due_at=found.until,
        error_class="throttled",
        error=f"the host answers {found.look.status} and asks to wait until {found.until:%Y-%m-%d %H:%M:%S} UTC",
        refund=True,
    )
    return Verdict(page=case.page, end=end, count="postponed", host_backoff=found.until)


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


def _invalid(case: Case, found: Invalid) -> Verdict:
    errors: tuple[dict[str, Json], ...] = tuple(
        {"field": error.field, "kind": error.kind, "message": error.message, "value": error.value}
        for error in found.errors
    )
    kind = ",".join(sorted({f"{error.field}:{error.kind}" for error in found.errors})) or "unreadable"
    return _dead(case, found.look, found.stage, kind, found.reason, "invalid", raw=found.raw, errors=errors)


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
    return replace(
        page,
        status=page_after(page.status, event),
        last_fetched_at=look.at if look.status is not None else page.last_fetched_at,
        failures=failures,
        # These rules were tried; without this a page that they cannot read would be read again at once, for ever.
        reader_hash=case.rules.reader_hash if page.reader_hash is not None else None,
        generation=page.generation + 1,
        due_at=next_look_after_trouble(case.now, shortest=case.rules.shortest, failures=failures),
    )

"""What is judged: one outcome, with all that it is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recrawl.decide.lifecycle import TaskEvent, task_after
from recrawl.decide.schedule import next_look
from recrawl.model.settlement import PageFacts, TaskEnd
from recrawl.model.work import Stage, TaskState


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


def due_again(case: Case, rate: float | None, *, hinted: bool) -> datetime:
    rules = case.rules
    return next_look(case.now, rate=rate, shortest=rules.shortest, longest=rules.longest, hinted=hinted, draw=case.draw)


def done(stage: Stage) -> TaskEnd:
    return TaskEnd(state=task_after(TaskState.RUNNING, TaskEvent.FINISH), stage=stage)

"""Pages and tasks: states, and what a worker holds while it works."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recrawl.model.fetched import Validators


class PageState(StrEnum):
    NEW = "new"  # sighted, never read well
    ACTIVE = "active"
    FAILING = "failing"  # the last look found no data; what is stored stays
    SUSPECTED = "suspected"
    DELETED = "deleted"
    MOVED = "moved"
    REFUSED = "refused"  # robots.txt does not allow it


class TaskKind(StrEnum):
    DISCOVER = "discover"
    VISIT = "visit"
    SNAPSHOT = "snapshot"
    CLEAN = "clean"
    AUDIT = "audit"


class TaskState(StrEnum):
    PENDING = "pending"  # claimable now
    RUNNING = "running"
    FAILED = "failed"  # waits for due_at
    DONE = "done"
    DEAD = "dead"
    EXPIRED = "expired"


ASKED = 200
"""Priority of work that a person waits for: before all that is done in the course of a cycle."""

NO_HOST = "-"
"""Stands for the host of a task that asks nobody, so that it waits for none."""

OPEN_STATES = (TaskState.PENDING, TaskState.RUNNING, TaskState.FAILED)


class Stage(StrEnum):
    """How far a task came."""

    FETCH = "fetch"
    JUDGE = "judge"
    EXTRACT = "extract"
    CLEAN = "clean"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True)
class PageView:
    """A page as it was when its task was claimed, with all that a visit needs."""

    id: int
    page_id: str
    url: str
    fetch_url: str
    status: PageState
    version: int
    validators: Validators
    raw_hash: str | None
    content_hash: str | None
    structure_hash: str | None
    reader_hash: str | None
    content_type: str | None
    has_body: bool
    failures: int = 0
    hint_stayed: bool = False  # its finder has not said another version since it was last read


@dataclass(frozen=True, slots=True)
class Task:
    """One unit of work that this worker holds a lease on, until `lease_until`."""

    id: int
    token: str
    source: str
    kind: TaskKind
    key: str
    host: str
    attempt: int
    crashes: int
    observed: int
    lease_until: datetime
    forced: bool = False  # look without validators, whatever is known
    body_hash: str | None = None  # the body is in hand: nothing is fetched
    replay_of: int | None = None  # the dead letter whose raw bytes are in hand
    stream: str | None = None
    cycle: int | None = None
    page: PageView | None = None

"""What settling an outcome comes to: values between the decision and the store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recrawl.model.outcome import Body, Outcome
from recrawl.model.record import Json, RecordRow
from recrawl.model.work import PageState, Task, TaskState


@dataclass(frozen=True, slots=True)
class Settlement:
    """An outcome on its way through the door, with the lease that it must still hold."""

    task: Task
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """All of a page's row that settling reads or writes, locked for the length of the transaction."""

    id: int
    source: str
    page_id: str
    url: str
    fetch_url: str
    host: str
    status: PageState
    version: int
    etag: str | None
    last_modified: str | None
    raw_hash: str | None
    content_hash: str | None
    overruled: str | None
    structure_hash: str | None
    reader_hash: str | None
    content_type: str | None
    source_version: str | None
    source_updated_at: datetime | None
    order_key: int | None
    observed: int
    lower_key: int | None
    lower_at: datetime | None
    hint: str | None
    hint_observed: int
    taken_at: datetime | None
    last_fetched_at: datetime | None
    last_changed_at: datetime | None
    change_rate: float | None  # changes a day that it is believed to make
    failures: int
    misses: int
    gone_at: datetime | None
    confirms: int
    confirm_at: datetime | None
    absent_since: datetime | None
    held: bool
    approved: bool
    due_at: datetime | None
    generation: int
    deleted_at: datetime | None
    delete_reason: str | None
    moved_to: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnd:
    """How a task leaves `running`. `refund` gives the attempt back: the host asked to wait, nothing failed."""

    state: TaskState
    stage: str
    due_at: datetime | None = None
    error_class: str | None = None
    error: str | None = None
    refund: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVersion:
    """A version to append; its data are the verdict's rows."""

    version: int
    kind: str
    content_hash: str
    raw_hash: str | None
    reader_hash: str | None
    final_url: str | None
    content_type: str | None
    source_updated_at: datetime | None
    fetched_at: datetime
    order_key: int
    observed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OldVersion:
    """A version as it was stored, with its records."""

    version: int
    kind: str
    content_hash: str
    raw_hash: str | None
    reader_hash: str | None
    final_url: str | None
    content_type: str | None
    source_updated_at: datetime | None
    rows: tuple[RecordRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    stage: str
    signature: str
    reason: str
    raw: bytes = b""
    errors: tuple[dict[str, Json], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Everything that one outcome does to the database. `count` names the line of the run's summary."""

    page: PageFacts
    end: TaskEnd
    count: str
    version: NewVersion | None = None
    rows: tuple[RecordRow, ...] | None = None
    refresh: tuple[RecordRow, ...] = ()
    body: Body | None = None
    dead: DeadLetter | None = None
    event: tuple[str, dict[str, Json]] | None = None
    host_backoff: datetime | None = None
    learned_id: str | None = None
    canonical: str | None = None

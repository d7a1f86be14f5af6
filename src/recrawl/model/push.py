"""Records that somebody brings: pushes on their way into the inbox, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recrawl.errors import Misuse, Transient
from recrawl.model.record import FieldError, RecordRow
from recrawl.model.work import Task


class Queue(StrEnum):
    """How urgent a push is: within a source, chunks of a higher queue are cleaned first."""

    HIGH = "high"
    DEFAULT = "default"
    LOW = "low"

    @property
    def priority(self) -> int:
        return {Queue.HIGH: 10, Queue.DEFAULT: 0, Queue.LOW: -10}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """Records for one source, to be accepted together.

    Each of `lines` is one record as JSON text: an envelope or bare data (see `recrawl.decide.envelope`); white space
    alone is none. `key` is the client's Idempotency-Key: what was accepted under it is not accepted again. After
    `expires_at` a record that still waits becomes a dead letter.
    """

    source: str
    lines: tuple[bytes, ...]
    key: str | None = None
    queue: Queue = Queue.DEFAULT
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The answer to a push. `records` + `dead` is the number of its lines; `tasks` are the ids of its chunks.

    `dead` lines are no JSON, and are dead letters already. `repeated` tells that the key was known: nothing was
    accepted again, and the rest is the first answer.
    """

    key: str
    records: int
    dead: int
    tasks: tuple[int, ...]
    repeated: bool = False


class Backlog(Transient):
    """Too much waits already. Nothing of this push was taken: push it again after `retry_after` seconds."""

    retry_after: float = 10.0


class KeyReused(Misuse):
    """The Idempotency-Key was used for other records: one of the two would be lost."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A claimed chunk: its lines as they were accepted, each with the `observed` number `task.observed` + its place."""

    task: Task
    accepted_at: datetime
    lines: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """A line that became records of one page. `url` is canonical, `fetch_url` as pushed; both are the page's id where
    no address was pushed."""

    raw: bytes
    observed: int
    page_id: str
    url: str
    fetch_url: str
    host: str
    rows: tuple[RecordRow, ...]
    content_hash: str
    fetched_at: datetime
    source_version: str | None = None
    source_updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A line that cannot become data; `kind` is a short stable word, for grouping."""

    raw: bytes
    observed: int
    fetched_at: datetime
    kind: str
    reason: str
    errors: tuple[FieldError, ...] = ()


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What the lines of a chunk came to, in their order."""

    task: Task
    lines: tuple[Pushed | Unusable, ...]

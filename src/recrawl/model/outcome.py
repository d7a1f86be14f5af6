"""What a task found: a closed set. `settle` is the only reader."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recrawl.model.fetched import Validators
from recrawl.model.record import FieldError, RecordRow
from recrawl.model.work import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at a page, whatever came of it. `requests` counts what went over the wire for it."""

    at: datetime
    url: str
    final_url: str | None = None
    status: int | None = None
    validators: Validators = Validators()
    content_type: str | None = None
    elapsed: float = 0.0
    requests: int = 0
    conditional: bool = False  # validators were sent


@dataclass(frozen=True, slots=True)
class Body:
    """A body, compressed, under the SHA-256 of its plain bytes."""

    hash: str
    codec: str
    size: int
    data: bytes


class By(StrEnum):
    """How a page was found unchanged."""

    NOT_MODIFIED = "304"
    RAW = "raw"
    CONTENT = "content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """The business content is what is stored. `raw_hash` is what this was judged against (304) or what came (else).
    `rows` carry volatile fields to refresh; `body` comes along where the bytes differ. `reread`: the stored body was
    read again, and nobody asked the source."""

    look: Look
    by: By
    raw_hash: str | None
    reader_hash: str
    structure_hash: str | None = None
    body: Body | None = None
    rows: tuple[RecordRow, ...] = ()
    reread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Other business content than what is stored. `reread`: only our rules changed, the bytes did not."""

    look: Look
    raw_hash: str
    content_hash: str
    structure_hash: str | None
    reader_hash: str
    rows: tuple[RecordRow, ...]
    body: Body | None
    page_id: str | None = None
    canonical: str | None = None
    source_version: str | None = None
    source_updated_at: datetime | None = None
    reread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """200, but not the page: a block page, a captcha, a redirect to the home page, an empty body.

    `name` says what it is taken for, `signs` why: (name, weight, sentence) of each sign."""

    look: Look
    reason: str
    name: str = ""
    signs: tuple[tuple[str, float, str], ...] = ()
    body: Body | None = None
    raw: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """Read, but not valid data."""

    look: Look
    stage: Stage
    reason: str
    errors: tuple[FieldError, ...] = ()
    raw: bytes = b""
    raw_hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """301 or 308: the page has another address."""

    look: Look
    page_id: str
    url: str
    fetch_url: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """404 or 410: evidence, no more."""

    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """robots.txt (`by_robots`), or 401 and 403."""

    look: Look
    reason: str
    by_robots: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """To be asked for from `until` on, without an attempt spent: the host asks to wait or is in trouble, or there is no
    turn before. `host_wide`: that holds for all of the host, and not for this task alone."""

    look: Look
    until: datetime
    kind: str = "throttled"
    message: str = ""
    host_wide: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """No usable answer this time; `kind` is a short stable word."""

    look: Look
    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The server will not answer this request, now or later: another 4xx, a forbidden address."""

    look: Look
    kind: str
    message: str


Outcome = Unchanged | Changed | Quarantined | Invalid | Moved | Gone | Refused | Throttled | Broken | Rejected

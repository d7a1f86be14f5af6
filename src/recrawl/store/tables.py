"""The schema: one definition for both databases.

Names of tables and columns are public contracts. `migrations/` creates them; a test holds the two together.
Counts of attempts, tokens and leases belong to workers; everything else is a statement about the source.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from recrawl.model.work import PageState, TaskState
from recrawl.store.types import Id, Instant, Json, Xid

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def _one_of(column: str, values: type[PageState] | type[TaskState]) -> CheckConstraint:
    allowed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({allowed})", name=column)


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


_OPEN = "state IN ('pending', 'running', 'failed')"

WATCHED = (
    "deleted_at IS NULL",
    "(misses > 0 OR (gone_at IS NOT NULL AND version > 0) OR status = 'suspected' OR held OR approved)",
)
"""Pages that the end of a cycle has to judge: few, however many a source has."""

sources = Table(
    "sources",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("spec_hash", String(64), nullable=False),
    Column("reader_hash", String(64), nullable=False),
    _flag("paused"),
    Column("paused_reason", Text),
    Column("every", Float(53)),  # seconds between two passes, where they are due by themselves
    Column("failing_since", Instant),  # while too many of its pages or records become dead letters
)

pages = Table(
    "pages",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("source", String(64), nullable=False),
    Column("page_id", Text, nullable=False),
    # Stands for (source, page_id), which may be too long for an index entry.
    Column("page_hash", String(32), nullable=False, unique=True),
    Column("url", Text, nullable=False),
    Column("fetch_url", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("status", String(16), nullable=False),
    _count("version"),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("raw_hash", String(64)),
    Column("content_hash", String(64)),
    # What the source shows where an operator set it aside: while it shows that, it has not changed.
    Column("overruled", String(64)),
    Column("structure_hash", String(64)),
    Column("reader_hash", String(64)),
    Column("content_type", Text),
    Column("source_version", Text),
    Column("source_updated_at", Instant),
    Column("order_key", BigInteger),
    Column("observed", BigInteger, nullable=False, server_default=text("0")),
    # A lower value of its order that an unconditional look found, and when first: seen again, it is a rollback.
    Column("lower_key", BigInteger),
    Column("lower_at", Instant),
    Column("hint", Text),
    Column("hint_observed", BigInteger, nullable=False, server_default=text("0")),
    # When the body was taken that came with the sighting. Such a page is never fetched; its hint is the body's hash.
    Column("taken_at", Instant),
    Column("first_seen_at", Instant, nullable=False),
    Column("last_fetched_at", Instant),
    Column("last_changed_at", Instant),
    Column("change_rate", Float(53)),  # changes a day that it is believed to make
    _count("failures"),
    _count("misses"),
    Column("gone_at", Instant),
    _count("confirms"),
    Column("confirm_at", Instant),
    Column("absent_since", Instant),  # when the cycle began that found the first evidence against the page
    _flag("held"),
    _flag("approved"),
    Column("due_at", Instant),  # NULL while a task is open
    _count("generation"),
    Column("deleted_at", Instant),
    Column("delete_reason", Text),
    Column("moved_to", BigInteger),
    _one_of("status", PageState),
    # Host and id are for choosing pages of a host that vouch for it.
    Index("ix_pages_source_status", "source", "status", "host", "id"),
    Index("ix_pages_watched", "source", **_where(" AND ".join(WATCHED))),
    Index("ix_pages_reader", "source", "reader_hash"),
    Index("ix_pages_due", "source", "due_at", **_where("due_at IS NOT NULL")),
    sqlite_autoincrement=True,
)

aliases = Table(
    "aliases",
    metadata,
    Column("url_hash", String(32), primary_key=True),
    Column("source", String(64), nullable=False),
    Column("url", Text, nullable=False),
    Column("page", BigInteger, nullable=False, index=True),
)

documents = Table(
    "documents",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("source", String(64), nullable=False),
    Column("stream", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("url_hash", String(32), nullable=False, unique=True),
    Column("kind", String(16)),
    Column("hash", String(64)),
    Column("validators", Json),
    # The last cycle in which it was read to its end, or found unchanged; 0: never yet; NULL: not known, or no longer.
    Column("cycle", BigInteger),
    _count("reading"),
    _flag("complete"),
    Column("parent", BigInteger),
    _count("parent_reading"),
    Column("leads_to", Json),  # URLs of the documents that it links to; those of an index have it for a parent
    # How many pages it listed when it was read to its end, and how many of these had a hint.
    Column("listed", Integer),
    Column("hinted", Integer),
    _flag("hints"),  # it told versions of pages when it was read last
    Index("ix_documents_parent", "parent", "parent_reading"),
    Index("ix_documents_cycle", "source", "stream", "cycle"),
    sqlite_autoincrement=True,
)

members = Table(
    "members",
    metadata,
    Column("document", BigInteger, primary_key=True),
    Column("page", BigInteger, primary_key=True),
    Column("reading", Integer, nullable=False),
    Column("dropped", Integer),
    Index("ix_members_page", "page"),
    Index("ix_members_dropped", "document", "page", **_where("dropped IS NOT NULL")),
)

versions = Table(
    "versions",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=True),
    Column("page", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("content_hash", String(64)),
    Column("raw_hash", String(64)),
    Column("reader_hash", String(64)),
    Column("final_url", Text),
    Column("content_type", Text),
    Column("source_updated_at", Instant),
    Column("fetched_at", Instant, nullable=False),
    Column("order_key", BigInteger),
    Column("observed", BigInteger, nullable=False),
    Column("data", Json, nullable=False),
    Column("run", BigInteger),
    Column("xid", Xid),
    UniqueConstraint("page", "version"),
    # The order of the change feed. SQLite fills no xid, and keeps an empty index.
    Index("ix_versions_feed", "xid", "seq", **_where("xid IS NOT NULL")),
    sqlite_autoincrement=True,
)

yields = Table(
    "yields",
    metadata,
    Column("page", BigInteger, primary_key=True),
    Column("table", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("source", String(64), nullable=False),
    Column("version", Integer, nullable=False),
    Column("order_key", BigInteger),
    Column("observed", BigInteger, nullable=False),
    Index("ix_yields_record", "source", "table", "key"),
)

bodies = Table(
    "bodies",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("codec", String(16), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("source", String(64), nullable=False),
    Column("key", Text, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("page", BigInteger),
    Column("stream", Text),
    Column("cycle", BigInteger),
    Column("body_hash", String(64)),
    _flag("forced"),
    Column("state", String(16), nullable=False),
    Column("stage", String(16)),
    Column("queue", String(16), nullable=False, server_default=text("'default'")),
    _count("priority"),
    _count("attempt"),
    _count("crashes"),
    Column("observed", BigInteger),
    Column("due_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("lease_owner", Text),
    Column("lease_token", Text),
    Column("lease_until", Instant),
    Column("host", Text, nullable=False),
    Column("error_class", Text),
    Column("error", Text),
    Column("replay_of", BigInteger),
    Column("ended_at", Instant),
    _one_of("state", TaskState),
    UniqueConstraint("source", "key"),
    # A page has at most one open task, whatever its kind.
    Index(
        "uq_tasks_open_page",
        "page",
        unique=True,
        **_where("page IS NOT NULL AND state IN ('pending','running','failed')"),
    ),
    # `id` is last so that PostgreSQL's SKIP LOCKED reads the index in its order.
    Index(
        "ix_tasks_claim", "host", text("priority DESC"), "due_at", "id", **_where("state = 'pending' AND crashes = 0")
    ),
    Index("ix_tasks_crashed", "id", **_where("state = 'pending' AND crashes > 0")),
    Index("ix_tasks_failed", "due_at", **_where("state = 'failed'")),
    Index("ix_tasks_leases", "lease_until", **_where("state = 'running'")),
    Index("ix_tasks_expiry", "expires_at", **_where("state IN ('pending', 'failed')")),
    Index("ix_tasks_open", "source", "kind", "state", **_where(_OPEN)),
    Index("ix_tasks_body", "body_hash", **_where("body_hash IS NOT NULL")),
    Index("ix_tasks_ended", "ended_at", **_where("ended_at IS NOT NULL")),
    sqlite_autoincrement=True,
)

batches = Table(
    "batches",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("source", String(64), nullable=False),
    Column("stream", Text, nullable=False),
    Column("cycle", BigInteger, nullable=False),
    Column("ordinal", BigInteger, nullable=False),
    Column("observed", BigInteger, nullable=False),
    Column("start", Json),
    Column("end", Json),
    Column("state", String(16), nullable=False),
    _count("sighted"),
    UniqueConstraint("source", "stream", "ordinal"),
    CheckConstraint("state IN ('open', 'ended')", name="state"),
    Index("ix_batches_open", "source", "stream", "ordinal", **_where("state = 'open'")),
    sqlite_autoincrement=True,
)

batch_tasks = Table(
    "batch_tasks",
    metadata,
    Column("batch", BigInteger, primary_key=True),
    Column("task", BigInteger, primary_key=True),
    Index("ix_batch_tasks_task", "task"),
)

cursors = Table(
    "cursors",
    metadata,
    Column("source", String(64), primary_key=True),
    Column("stream", Text, primary_key=True),
    Column("seen", Json),
    Column("position", Json),
    _flag("exhaustive"),
    Column("ended_cycle", BigInteger),
    Column("committed_at", Instant),
)

cycles = Table(
    "cycles",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("source", String(64), nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("finished_at", Instant),
    Column("state", String(16), nullable=False),
    _flag("complete"),
    Column("counts", Json),
    CheckConstraint("state IN ('open', 'closed')", name="state"),
    Index("uq_cycles_open", "source", unique=True, **_where("state = 'open'")),
    Index("ix_cycles_source", "source", "id"),
    sqlite_autoincrement=True,
)

runs = Table(
    "runs",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("source", String(64), nullable=False),
    Column("owner", Text, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("finished_at", Instant),
    Column("state", String(16), nullable=False),
    _flag("complete"),
    Column("counts", Json),
    Index("ix_runs_source", "source", "id"),
    sqlite_autoincrement=True,
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("source", String(64), nullable=False),
    Column("task_key", Text, nullable=False),
    Column("page", BigInteger),
    Column("stage", String(16), nullable=False),
    Column("signature", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("raw", LargeBinary),
    Column("raw_codec", String(16)),
    # With what must be known to read the raw bytes as they were read first.
    Column("fetched_at", Instant),
    Column("final_url", Text),
    Column("content_type", Text),
    Column("errors", Json),
    Column("order_key", BigInteger),
    Column("observed", BigInteger, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("resolved_at", Instant),
    Column("resolution", Text),
    Index("ix_dead_letters_source", "source", "signature", **_where("resolved_at IS NULL")),
    Index("ix_dead_letters_page", "page", **_where("resolved_at IS NULL")),
    sqlite_autoincrement=True,
)

charges = Table(
    "charges",
    metadata,
    Column("source", String(64), primary_key=True),
    Column("task_key", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("provider", Text, nullable=False),
    Column("credits", Float, nullable=False),
    Column("state", String(16), nullable=False),
    CheckConstraint("state IN ('reserved', 'charged', 'refunded', 'uncertain')", name="state"),
)

events = Table(
    "events",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=True),
    Column("source", String(64), nullable=False),
    Column("page", BigInteger),
    Column("kind", String(32), nullable=False),
    Column("data", Json),
    Column("at", Instant, nullable=False),
    Index("ix_events_source", "source", "seq"),
    Index("ix_events_page", "page"),
    sqlite_autoincrement=True,
)

hosts = Table(
    "hosts",
    metadata,
    Column("host", Text, primary_key=True),
    # Seconds since 1970: slots are handed out by arithmetic inside one statement.
    Column("next_at", Float(53), nullable=False, server_default=text("0")),
    Column("backoff_until", Float(53), nullable=False, server_default=text("0")),
    _count("troubles"),  # how often in a row it was left alone for being in trouble
    Column("delay", Float(53)),
    Column("latency", Float(53)),
    Column("robots", Text),
    Column("robots_at", Float(53)),
)

# What was spent of a declared budget in its last hour or day, of all workers together; `began` in seconds since 1970.
budgets = Table(
    "budgets",
    metadata,
    Column("scope", Text, primary_key=True),  # "source NAME" or "host NAME"
    Column("span", Integer, primary_key=True),  # seconds
    Column("most", BigInteger, nullable=False),
    Column("began", Float(53), nullable=False),
    Column("used", BigInteger, nullable=False),
)

# SQLite has no sequences; PostgreSQL has a sequence of this name instead of this row.
counters = Table(
    "counters",
    metadata,
    Column("name", String(16), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

# Tokens of the HTTP service: only the SHA-256 of one is kept, so that a stolen database opens nothing.
tokens = Table(
    "tokens",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("scopes", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("revoked_at", Instant),
    sqlite_autoincrement=True,
)

# The inbox: one row per chunk of pushed records. Its data go once the chunk is settled; the row stays, as the receipt
# that the same Idempotency-Key is answered with, and as the account of what became of the records.
pushes = Table(
    "pushes",
    metadata,
    Column("source", String(64), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("chunk", Integer, primary_key=True),
    Column("task", BigInteger),  # NULL where no line was JSON
    Column("digest", String(64), nullable=False),
    _count("records"),
    _count("refused"),  # lines that were no JSON
    Column("codec", String(16)),
    Column("data", LargeBinary),
    Column("accepted_at", Instant, nullable=False),
    Column("ended_at", Instant),
    _count("new"),
    _count("changed"),
    _count("duplicates"),
    _count("regressions"),
    _count("dead"),
    Index("ix_pushes_task", "task", unique=True),
    Index("ix_pushes_sample", "source", **_where("ended_at IS NOT NULL AND data IS NOT NULL")),
)

# What good pages of a source look like, as sums; workers add to it now and then.
profiles = Table(
    "profiles",
    metadata,
    Column("source", String(64), primary_key=True),
    Column("data", Json, nullable=False),
    _flag("rebuilding"),
)

# The last checks of a stream's hints or a host's validators, one letter each.
trust = Table(
    "trust",
    metadata,
    Column("source", String(64), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("recent", Text, nullable=False),
)

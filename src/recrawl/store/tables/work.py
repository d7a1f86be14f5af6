"""What is to be done and what came of it: tasks, batches of sightings, cursors, cycles, runs, the inbox."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from recrawl.model.work import TaskState
from recrawl.store.tables.columns import count, flag, metadata, one_of, where
from recrawl.store.types import Id, Instant, Json

_OPEN = "state IN ('pending', 'running', 'failed')"

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
    flag("forced"),
    Column("state", String(16), nullable=False),
    Column("stage", String(16)),
    Column("queue", String(16), nullable=False, server_default=text("'default'")),
    count("priority"),
    count("attempt"),
    count("crashes"),
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
    one_of("state", TaskState),
    UniqueConstraint("source", "key"),
    # A page has at most one open task, whatever its kind.
    Index(
        "uq_tasks_open_page",
        "page",
        unique=True,
        **where("page IS NOT NULL AND state IN ('pending','running','failed')"),
    ),
    # `id` is last so that PostgreSQL's SKIP LOCKED reads the index in its order.
    Index(
        "ix_tasks_claim", "host", text("priority DESC"), "due_at", "id", **where("state = 'pending' AND crashes = 0")
    ),
    Index("ix_tasks_crashed", "id", **where("state = 'pending' AND crashes > 0")),
    Index("ix_tasks_failed", "due_at", **where("state = 'failed'")),
    Index("ix_tasks_leases", "lease_until", **where("state = 'running'")),
    Index("ix_tasks_expiry", "expires_at", **where("state IN ('pending', 'failed')")),
    Index("ix_tasks_open", "source", "kind", "state", **where(_OPEN)),
    Index("ix_tasks_body", "body_hash", **where("body_hash IS NOT NULL")),
    Index("ix_tasks_ended", "ended_at", **where("ended_at IS NOT NULL")),
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
    count("sighted"),
    UniqueConstraint("source", "stream", "ordinal"),
    CheckConstraint("state IN ('open', 'ended')", name="state"),
    Index("ix_batches_open", "source", "stream", "ordinal", **where("state = 'open'")),
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
    flag("exhaustive"),
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
    flag("complete"),
    Column("counts", Json),
    CheckConstraint("state IN ('open', 'closed')", name="state"),
    Index("uq_cycles_open", "source", unique=True, **where("state = 'open'")),
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
    flag("complete"),
    Column("counts", Json),
    Index("ix_runs_source", "source", "id"),
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
    count("records"),
    count("refused"),  # lines that were no JSON
    Column("codec", String(16)),
    Column("data", LargeBinary),
    Column("accepted_at", Instant, nullable=False),
    Column("ended_at", Instant),
    count("new"),
    count("changed"),
    count("duplicates"),
    count("regressions"),
    count("dead"),
    Index("ix_pushes_task", "task", unique=True),
    Index("ix_pushes_sample", "source", **where("ended_at IS NOT NULL AND data IS NOT NULL")),
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
    Index("ix_dead_letters_source", "source", "signature", **where("resolved_at IS NULL")),
    Index("ix_dead_letters_page", "page", **where("resolved_at IS NULL")),
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

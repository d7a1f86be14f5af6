"""The first schema."""

import sqlalchemy as sa
from alembic import op

from recrawl.store.types import Id, Instant, Json, Xid

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "aliases",
        sa.Column("url_hash", sa.String(length=32), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("url_hash", name=op.f("pk_aliases")),
    )
    op.create_index(op.f("ix_aliases_page"), "aliases", ["page"], unique=False)
    op.create_table(
        "batch_tasks",
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("batch", "task", name=op.f("pk_batch_tasks")),
    )
    op.create_index("ix_batch_tasks_task", "batch_tasks", ["task"], unique=False)
    op.create_table(
        "batches",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("cycle", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("observed", sa.BigInteger(), nullable=False),
        sa.Column("start", Json, nullable=True),
        sa.Column("end", Json, nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("sighted", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint("state IN ('open', 'ended')", name=op.f("ck_batches_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sa.UniqueConstraint("source", "stream", "ordinal", name=op.f("uq_batches_source_stream_ordinal")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_batches_open",
        "batches",
        ["source", "stream", "ordinal"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "bodies",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("codec", sa.String(length=16), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_bodies")),
    )
    op.create_table(
        "charges",
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("credits", sa.Float(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.CheckConstraint("state IN ('reserved', 'charged', 'refunded', 'uncertain')", name=op.f("ck_charges_state")),
        sa.PrimaryKeyConstraint("source", "task_key", "attempt", name=op.f("pk_charges")),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=16), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counters")),
    )
    op.create_table(
        "cursors",
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("seen", Json, nullable=True),
        sa.Column("position", Json, nullable=True),
        sa.Column("exhaustive", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("ended_cycle", sa.BigInteger(), nullable=True),
        sa.Column("committed_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("source", "stream", name=op.f("pk_cursors")),
    )
    op.create_table(
        "cycles",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("started_at", Instant(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("complete", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("counts", Json, nullable=True),
        sa.CheckConstraint("state IN ('open', 'closed')", name=op.f("ck_cycles_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cycles")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_cycles_open",
        "cycles",
        ["source"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "dead_letters",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=True),
        sa.Column("stage", sa.String(length=16), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=True),
        sa.Column("raw_codec", sa.String(length=16), nullable=True),
        sa.Column("errors", Json, nullable=True),
        sa.Column("order_key", sa.BigInteger(), nullable=True),
        sa.Column("observed", sa.BigInteger(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("resolved_at", Instant(), nullable=True),
        sa.Column("resolution", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letters")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_dead_letters_page",
        "dead_letters",
        ["page"],
        unique=False,
        sqlite_where=sa.text("resolved_at IS NULL"),
        postgresql_where=sa.text("resolved_at IS NULL"),
    )
    op.create_index(
        "ix_dead_letters_source",
        "dead_letters",
        ["source", "signature"],
        unique=False,
        sqlite_where=sa.text("resolved_at IS NULL"),
        postgresql_where=sa.text("resolved_at IS NULL"),
    )
    op.create_table(
        "documents",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("url_hash", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=True),
        sa.Column("hash", sa.String(length=64), nullable=True),
        sa.Column("validators", Json, nullable=True),
        sa.Column("cycle", sa.BigInteger(), nullable=True),
        sa.Column("reading", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("complete", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("parent", sa.BigInteger(), nullable=True),
        sa.Column("parent_reading", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
        sa.UniqueConstraint("url_hash", name=op.f("uq_documents_url_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_documents_parent", "documents", ["parent", "parent_reading"], unique=False)
    op.create_table(
        "events",
        sa.Column("seq", Id, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("data", Json, nullable=True),
        sa.Column("at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_page", "events", ["page"], unique=False)
    op.create_index("ix_events_source", "events", ["source", "seq"], unique=False)
    op.create_table(
        "hosts",
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("next_at", sa.Float(precision=53), server_default=sa.text("0"), nullable=False),
        sa.Column("backoff_until", sa.Float(precision=53), server_default=sa.text("0"), nullable=False),
        sa.Column("delay", sa.Float(precision=53), nullable=True),
        sa.Column("latency", sa.Float(precision=53), nullable=True),
        sa.Column("robots", sa.Text(), nullable=True),
        sa.Column("robots_at", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("host", name=op.f("pk_hosts")),
    )
    op.create_table(
        "members",
        sa.Column("document", sa.BigInteger(), nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=False),
        sa.Column("reading", sa.Integer(), nullable=False),
        sa.Column("dropped", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("document", "page", name=op.f("pk_members")),
    )
    op.create_index("ix_members_page", "members", ["page"], unique=False)
    op.create_table(
        "pages",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("page_id", sa.Text(), nullable=False),
        sa.Column("page_hash", sa.String(length=32), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("fetch_url", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("version", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("raw_hash", sa.String(length=64), nullable=True),
        sa.Column("content_hash", sa.String(length=64), nullable=True),
        sa.Column("structure_hash", sa.String(length=64), nullable=True),
        sa.Column("reader_hash", sa.String(length=64), nullable=True),
        sa.Column("content_type", sa.Text(), nullable=True),
        sa.Column("source_version", sa.Text(), nullable=True),
        sa.Column("source_updated_at", Instant(), nullable=True),
        sa.Column("order_key", sa.BigInteger(), nullable=True),
        sa.Column("observed", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("hint", sa.Text(), nullable=True),
        sa.Column("hint_observed", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("first_seen_at", Instant(), nullable=False),
        sa.Column("last_fetched_at", Instant(), nullable=True),
        sa.Column("last_changed_at", Instant(), nullable=True),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("misses", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("gone_at", Instant(), nullable=True),
        sa.Column("confirms", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("confirm_at", Instant(), nullable=True),
        sa.Column("held", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("approved", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("due_at", Instant(), nullable=True),
        sa.Column("generation", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("deleted_at", Instant(), nullable=True),
        sa.Column("delete_reason", sa.Text(), nullable=True),
        sa.Column("moved_to", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "status IN ('new', 'active', 'failing', 'suspected', 'deleted', 'moved', 'refused')",
            name=op.f("ck_pages_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pages")),
        sa.UniqueConstraint("page_hash", name=op.f("uq_pages_page_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_pages_due",
        "pages",
        ["source", "due_at"],
        unique=False,
        sqlite_where=sa.text("due_at IS NOT NULL"),
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index("ix_pages_reader", "pages", ["source", "reader_hash"], unique=False)
    op.create_index("ix_pages_source_status", "pages", ["source", "status"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("started_at", Instant(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("complete", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("counts", Json, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_runs_source", "runs", ["source", "id"], unique=False)
    op.create_table(
        "sources",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("spec_hash", sa.String(length=64), nullable=False),
        sa.Column("reader_hash", sa.String(length=64), nullable=False),
        sa.Column("paused", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("paused_reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_sources")),
    )
    op.create_table(
        "tasks",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=True),
        sa.Column("stream", sa.Text(), nullable=True),
        sa.Column("cycle", sa.BigInteger(), nullable=True),
        sa.Column("body_hash", sa.String(length=64), nullable=True),
        sa.Column("forced", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=True),
        sa.Column("queue", sa.String(length=16), server_default=sa.text("'default'"), nullable=False),
        sa.Column("priority", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("crashes", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("observed", sa.BigInteger(), nullable=True),
        sa.Column("due_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("lease_until", Instant(), nullable=True),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("error_class", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("replay_of", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", Instant(), nullable=True),
        sa.CheckConstraint(
            "state IN ('pending', 'running', 'failed', 'done', 'dead', 'expired')", name=op.f("ck_tasks_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("source", "key", name=op.f("uq_tasks_source_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_tasks_crashed",
        "tasks",
        ["id"],
        unique=False,
        sqlite_where=sa.text("state = 'pending' AND crashes > 0"),
        postgresql_where=sa.text("state = 'pending' AND crashes > 0"),
    )
    op.create_index(
        "ix_tasks_ended",
        "tasks",
        ["ended_at"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NOT NULL"),
        postgresql_where=sa.text("ended_at IS NOT NULL"),
    )
    op.create_index(
        "ix_tasks_expiry",
        "tasks",
        ["expires_at"],
        unique=False,
        sqlite_where=sa.text("state IN ('pending', 'failed')"),
        postgresql_where=sa.text("state IN ('pending', 'failed')"),
    )
    op.create_index(
        "ix_tasks_failed",
        "tasks",
        ["due_at"],
        unique=False,
        sqlite_where=sa.text("state = 'failed'"),
        postgresql_where=sa.text("state = 'failed'"),
    )
    op.create_index(
        "ix_tasks_leases",
        "tasks",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_index(
        "ix_tasks_open",
        "tasks",
        ["source", "kind", "state"],
        unique=False,
        sqlite_where=sa.text("state IN ('pending', 'running', 'failed')"),
        postgresql_where=sa.text("state IN ('pending', 'running', 'failed')"),
    )
    op.create_index(
        "uq_tasks_open_page",
        "tasks",
        ["page"],
        unique=True,
        sqlite_where=sa.text("page IS NOT NULL AND state IN ('pending','running','failed')"),
        postgresql_where=sa.text("page IS NOT NULL AND state IN ('pending','running','failed')"),
    )
    op.create_table(
        "versions",
        sa.Column("seq", Id, autoincrement=True, nullable=False),
        sa.Column("page", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=True),
        sa.Column("raw_hash", sa.String(length=64), nullable=True),
        sa.Column("reader_hash", sa.String(length=64), nullable=True),
        sa.Column("final_url", sa.Text(), nullable=True),
        sa.Column("content_type", sa.Text(), nullable=True),
        sa.Column("source_updated_at", Instant(), nullable=True),
        sa.Column("fetched_at", Instant(), nullable=False),
        sa.Column("order_key", sa.BigInteger(), nullable=True),
        sa.Column("observed", sa.BigInteger(), nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=True),
        sa.Column("xid", Xid, nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_versions")),
        sa.UniqueConstraint("page", "version", name=op.f("uq_versions_page_version")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "yields",
        sa.Column("page", sa.BigInteger(), nullable=False),
        sa.Column("table", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("order_key", sa.BigInteger(), nullable=True),
        sa.Column("observed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("page", "table", "key", name=op.f("pk_yields")),
    )
    op.create_index("ix_yields_record", "yields", ["source", "table", "key"], unique=False)
    op.create_index(
        "ix_tasks_claim",
        "tasks",
        ["host", sa.text("priority DESC"), "due_at", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'pending' AND crashes = 0"),
        postgresql_where=sa.text("state = 'pending' AND crashes = 0"),
    )
    op.execute(
        """
        CREATE VIEW page_view AS
        SELECT p.source, p.page_id, p.url, p.status, p.version, p.first_seen_at, p.last_fetched_at, p.last_changed_at,
               p.failures, p.due_at, p.source_updated_at, p.content_type, p.etag, p.last_modified, p.raw_hash,
               p.content_hash, p.gone_at, p.deleted_at, p.delete_reason, t.url AS moved_to
        FROM pages p LEFT JOIN pages t ON t.id = p.moved_to
        """
    )
    op.execute(
        """
        CREATE VIEW version_view AS
        SELECT v.seq, p.source, p.page_id, p.url, v.version, v.kind, v.fetched_at, v.source_updated_at, v.final_url,
               v.content_type, v.content_hash, v.raw_hash, v.run, v.data
        FROM versions v JOIN pages p ON p.id = v.page
        """
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE observed")
        op.execute("ALTER TABLE versions ALTER COLUMN xid SET DEFAULT pg_current_xact_id()")
    else:
        op.execute("INSERT INTO counters (name, value) VALUES ('observed', 0)")

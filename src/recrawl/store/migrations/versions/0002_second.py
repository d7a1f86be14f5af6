"""Tokens of the HTTP service; links between documents."""

import sqlalchemy as sa
from alembic import op

from recrawl.store.types import Id, Instant, Json

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("scopes", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("revoked_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
        sqlite_autoincrement=True,
    )
    # Links between documents.
    op.add_column("documents", sa.Column("leads_to", Json, nullable=True))
    op.create_table(
        "pushes",
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("chunk", sa.Integer(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("records", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("refused", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("codec", sa.String(length=16), nullable=True),
        sa.Column("data", sa.LargeBinary(), nullable=True),
        sa.Column("accepted_at", Instant(), nullable=False),
        sa.Column("ended_at", Instant(), nullable=True),
        *(
            sa.Column(name, sa.Integer(), server_default=sa.text("0"), nullable=False)
            for name in ("new", "changed", "duplicates", "regressions", "dead")
        ),
        sa.PrimaryKeyConstraint("source", "key", "chunk", name=op.f("pk_pushes")),
    )
    op.create_index("ix_pushes_task", "pushes", ["task"], unique=True)
    sample = sa.text("ended_at IS NOT NULL AND data IS NOT NULL")
    op.create_index("ix_pushes_sample", "pushes", ["source"], sqlite_where=sample, postgresql_where=sample)
    if op.get_bind().dialect.name == "postgresql":
        # So that each record of a chunk has a number of its own.
        op.execute("ALTER SEQUENCE observed INCREMENT BY 1000")
    # The change feed.
    op.create_index(
        "ix_versions_feed",
        "versions",
        ["xid", "seq"],
        unique=False,
        sqlite_where=sa.text("xid IS NOT NULL"),
        postgresql_where=sa.text("xid IS NOT NULL"),
    )
    # Dead letters that are read again.
    op.add_column("dead_letters", sa.Column("fetched_at", Instant(), nullable=True))
    op.add_column("dead_letters", sa.Column("final_url", sa.Text(), nullable=True))
    op.add_column("dead_letters", sa.Column("content_type", sa.Text(), nullable=True))
    # Judgement: rollbacks, the look of good pages, trust in hints and validators.
    op.add_column("pages", sa.Column("lower_key", sa.BigInteger(), nullable=True))
    op.add_column("pages", sa.Column("lower_at", Instant(), nullable=True))
    op.create_table(
        "profiles",
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.Column("rebuilding", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("source", name=op.f("pk_profiles")),
    )
    op.create_table(
        "trust",
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("recent", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("source", "kind", "name", name=op.f("pk_trust")),
    )
    # Schedules: what is believed of pages, when passes are due, budgets, hosts in trouble.
    op.add_column("pages", sa.Column("change_rate", sa.Float(53), nullable=True))
    op.add_column("sources", sa.Column("every", sa.Float(53), nullable=True))
    op.add_column("hosts", sa.Column("troubles", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.create_index("ix_cycles_source", "cycles", ["source", "id"])
    op.create_table(
        "budgets",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("span", sa.Integer(), nullable=False),
        sa.Column("most", sa.BigInteger(), nullable=False),
        sa.Column("began", sa.Float(53), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "span", name=op.f("pk_budgets")),
    )

    op.add_column("pages", sa.Column("absent_since", Instant(), nullable=True))
    op.drop_index("ix_pages_source_status", "pages")
    op.create_index("ix_pages_source_status", "pages", ["source", "status", "host", "id"], unique=False)
    watched = (
        "deleted_at IS NULL AND (misses > 0 OR (gone_at IS NOT NULL AND version > 0) OR status = 'suspected' "
        "OR held OR approved)"
    )
    op.create_index(
        "ix_pages_watched",
        "pages",
        ["source"],
        unique=False,
        sqlite_where=sa.text(watched),
        postgresql_where=sa.text(watched),
    )
    op.create_index("ix_documents_cycle", "documents", ["source", "stream", "cycle"], unique=False)
    op.add_column("documents", sa.Column("listed", sa.Integer(), nullable=True))
    op.add_column("documents", sa.Column("hinted", sa.Integer(), nullable=True))
    op.add_column("documents", sa.Column("hints", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.create_index(
        "ix_members_dropped",
        "members",
        ["document", "page"],
        unique=False,
        sqlite_where=sa.text("dropped IS NOT NULL"),
        postgresql_where=sa.text("dropped IS NOT NULL"),
    )
    op.add_column("pages", sa.Column("taken_at", Instant(), nullable=True))
    # Pages that an operator took back to an older version.
    op.add_column("pages", sa.Column("overruled", sa.String(length=64), nullable=True))
    op.add_column("sources", sa.Column("failing_since", Instant(), nullable=True))
    # Retention: bodies that work in hand still needs.
    op.create_index(
        "ix_tasks_body",
        "tasks",
        ["body_hash"],
        unique=False,
        sqlite_where=sa.text("body_hash IS NOT NULL"),
        postgresql_where=sa.text("body_hash IS NOT NULL"),
    )

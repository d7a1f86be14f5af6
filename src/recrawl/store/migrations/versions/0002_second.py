"""The second release: what each part needs beyond the first."""

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
    # Pages that an operator took back to an older version.
    op.add_column("pages", sa.Column("overruled", sa.String(length=64), nullable=True))
    # Retention: bodies that work in hand still needs.
    op.create_index(
        "ix_tasks_body",
        "tasks",
        ["body_hash"],
        unique=False,
        sqlite_where=sa.text("body_hash IS NOT NULL"),
        postgresql_where=sa.text("body_hash IS NOT NULL"),
    )

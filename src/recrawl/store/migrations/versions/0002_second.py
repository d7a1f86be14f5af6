"""Tokens of the HTTP service; deletion."""

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
    op.create_index(
        "ix_members_dropped",
        "members",
        ["document", "page"],
        unique=False,
        sqlite_where=sa.text("dropped IS NOT NULL"),
        postgresql_where=sa.text("dropped IS NOT NULL"),
    )

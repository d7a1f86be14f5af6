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

"""Tokens of the HTTP service; schedules, budgets, hosts in trouble."""

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

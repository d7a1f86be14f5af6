"""What workers share beside their tasks: events, hosts, budgets, numbers, tokens, what good pages look like."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, String, Table, Text, text

from recrawl.store.tables.columns import count, flag, metadata
from recrawl.store.types import Id, Instant, Json

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
    count("troubles"),  # how often in a row it was left alone for being in trouble
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

# What good pages of a source look like, as sums; workers add to it now and then.
profiles = Table(
    "profiles",
    metadata,
    Column("source", String(64), primary_key=True),
    Column("data", Json, nullable=False),
    flag("rebuilding"),
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

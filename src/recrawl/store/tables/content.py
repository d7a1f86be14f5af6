"""What a source has: its pages, where they are listed, and what they held."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
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

from recrawl.model.work import PageState
from recrawl.store.tables.columns import count, flag, metadata, one_of, where
from recrawl.store.types import Id, Instant, Json, Xid

sources = Table(
    "sources",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("spec_hash", String(64), nullable=False),
    Column("reader_hash", String(64), nullable=False),
    flag("paused"),
    Column("paused_reason", Text),
    Column("every", Float(53)),  # seconds between two passes, where they are due by themselves
    Column("failing_since", Instant),  # while too many of its pages or records become dead letters
)

WATCHED = (
    "deleted_at IS NULL",
    "(misses > 0 OR (gone_at IS NOT NULL AND version > 0) OR status = 'suspected' OR held OR approved)",
)
"""Pages that the end of a cycle has to judge: few, however many a source has."""

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
    count("version"),
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
    count("failures"),
    count("misses"),
    Column("gone_at", Instant),
    count("confirms"),
    Column("confirm_at", Instant),
    Column("absent_since", Instant),  # when the cycle began that found the first evidence against the page
    flag("held"),
    flag("approved"),
    Column("due_at", Instant),  # NULL while a task is open
    count("generation"),
    Column("deleted_at", Instant),
    Column("delete_reason", Text),
    Column("moved_to", BigInteger),
    one_of("status", PageState),
    # Host and id are for choosing pages of a host that vouch for it.
    Index("ix_pages_source_status", "source", "status", "host", "id"),
    Index("ix_pages_watched", "source", **where(" AND ".join(WATCHED))),
    Index("ix_pages_reader", "source", "reader_hash"),
    Index("ix_pages_due", "source", "due_at", **where("due_at IS NOT NULL")),
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
    count("reading"),
    flag("complete"),
    Column("parent", BigInteger),
    count("parent_reading"),
    Column("leads_to", Json),  # URLs of the documents that it links to; those of an index have it for a parent
    # How many pages it listed when it was read to its end, and how many of these had a hint.
    Column("listed", Integer),
    Column("hinted", Integer),
    flag("hints"),  # it told versions of pages when it was read last
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
    Index("ix_members_dropped", "document", "page", **where("dropped IS NOT NULL")),
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
    Index("ix_versions_feed", "xid", "seq", **where("xid IS NOT NULL")),
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

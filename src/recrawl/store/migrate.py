"""Bringing a database to this release's schema, and telling whether it is there.

A migration only ever adds (expand); what is no longer read is taken away a release later (contract), so that workers
of two neighbouring releases can share a database while it is upgraded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from recrawl.errors import StoreUnavailable
from recrawl.store.database import Store

if TYPE_CHECKING:
    from alembic.config import Config

NEWEST = "0002"
"""The schema revision that this release works with; known here so that only a migration loads Alembic."""

# Any fixed number: it keeps two upgrades of one PostgreSQL database apart.
_LOCK = 7_263_781_915


def _config(connection: Connection | None = None) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def present(store: Store) -> str | None:
    """The schema revision of the database; None if it has none."""
    with store.read() as connection:
        return _revision(connection)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return found


def upgrade(store: Store) -> bool:
    """Create or upgrade the schema; False if it was already there. Two at once are safe: one waits."""
    from alembic import command

    def work(connection: Connection) -> bool:
        if store.is_postgres:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        if _revision(connection) == NEWEST:
            return False
        command.upgrade(_config(connection), "head")
        return True

    return store.write(work)


def ready(store: Store) -> None:
    """Make sure that the schema is this release's: an empty database gets it, another one is refused.

    Raises StoreUnavailable that names both revisions: migrations run only when someone asks for them.
    """
    there = present(store)
    if there is None:
        upgrade(store)
    elif there != NEWEST:
        raise StoreUnavailable(
            f"the database has schema {there}, this recrawl works with {NEWEST}",
            place=store.place,
            action="Run `recrawl db upgrade`, or install the recrawl release that last wrote to it.",
        )

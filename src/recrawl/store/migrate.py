"""Bringing a database to this release's schema, and telling whether it is there.

A migration only ever adds (expand); what is no longer read is taken away a release later (contract), so that workers
of two neighbouring releases can share a database while it is upgraded.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from recrawl.errors import StoreUnavailable
from recrawl.store.database import Store

# Any fixed number: it keeps two upgrades of one PostgreSQL database apart.
_LOCK = 7_263_781_915


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def newest() -> str:
    """The schema revision that this release works with."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def present(store: Store) -> str | None:
    """The schema revision of the database; None if it is empty."""
    with store.read() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(store: Store) -> bool:
    """Create or upgrade the schema; False if it was already there. Two at once are safe: one waits."""

    def work(connection: Connection) -> bool:
        if store.is_postgres:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        before = MigrationContext.configure(connection).get_current_revision()
        if before == newest():
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
    elif there != newest():
        known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
        older = there in known
        raise StoreUnavailable(
            f"the database has schema {there}, this recrawl works with {newest()}",
            place=store.place,
            action="Run `recrawl db upgrade`." if older else "Install the recrawl release that last wrote to it.",
        )

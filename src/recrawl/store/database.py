"""Opening a database, and transactions that are safe to repeat."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from recrawl.errors import Misuse, StoreUnavailable

if TYPE_CHECKING:
    from recrawl.store.recordtables import RecordTable

T = TypeVar("T")

_REPEATS = 8
# PostgreSQL: serialization_failure, deadlock_detected, unique_violation. The last is a race for one identity: the verb
# that lost it finds the other's row when it repeats.
_REPEATABLE = {"40001", "40P01", "23505"}


class Store:
    """One database. Its verbs are the functions of this room's modules; each is one transaction."""

    def __init__(self, engine: Engine, url: str) -> None:
        self.engine = engine
        self.url = url
        self.is_postgres = engine.dialect.name == "postgresql"
        self.record_tables: dict[str, RecordTable] = {}
        self.insert: Callable[[Table], Any] = postgresql.insert if self.is_postgres else sqlite.insert

    def write(self, work: Callable[[Connection], T], *, durable: bool = False) -> T:
        """Run `work` in one writing transaction. On a deadlock or a serialisation failure the whole of it repeats.

        A `durable` one outlives a power cut once it has returned; the others may be taken back by it as a whole.
        Raises StoreUnavailable when the database cannot be written now (full disk, read-only, locked, unreachable).
        """
        for attempt in range(_REPEATS):
            try:
                with self.engine.connect() as connection:
                    connection.execution_options(recrawl_durable=durable)
                    with connection.begin():
                        return work(connection)
            except DBAPIError as error:
                if attempt + 1 < _REPEATS and getattr(error.orig, "sqlstate", None) in _REPEATABLE:
                    time.sleep(random.uniform(0, 0.02 * 2**attempt))
                    continue
                raise self._explained(error) from error
        raise AssertionError("unreachable")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A reading transaction: one snapshot, and no lock that would hold up a writer."""
        try:
            with self.engine.connect() as connection:
                connection.execution_options(recrawl_begin="BEGIN")
                with connection.begin():
                    yield connection
        except DBAPIError as error:
            raise self._explained(error) from error

    def close(self) -> None:
        self.engine.dispose()

    def _explained(self, error: DBAPIError) -> Exception:
        """Turn what a user can mend into a sentence; leave our own faults as they are."""
        said = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
        low = said.lower()
        for sign, action in _REMEDIES.items():
            if sign in low:
                return StoreUnavailable(f"the database says: {said}", place=self.place, action=action)
        return error

    @property
    def place(self) -> str:
        """The address of the database, without its password."""
        return make_url(self.url).render_as_string(hide_password=True)


_REMEDIES = {
    "disk is full": "Free some space and run the same command again: nothing that was committed is lost.",
    "no space left": "Free some space and run the same command again: nothing that was committed is lost.",
    "disk i/o error": "Check the disk (space, quota, health), then run the same command again.",
    "readonly database": "Make the file and its folder writable for this user, or name another one with --store.",
    "unable to open database": "Check that the folder exists and is writable, or name another file with --store.",
    "database is locked": "Another program holds the database; close it and run the same command again.",
    "not a database": "This file is not a SQLite database: name another one with --store.",
    "malformed": "The file is damaged: restore a backup, or salvage it with `sqlite3 FILE .recover`.",
    "connection refused": "Start PostgreSQL, or correct --store (postgresql://user@host:port/name).",
    "could not translate host": "Correct the host name in --store (postgresql://user@host:port/name).",
    "failed to resolve host": "Correct the host name in --store (postgresql://user@host:port/name).",
    "connection failed": "Check that PostgreSQL runs and that --store names it (postgresql://user@host:port/name).",
    "connection is bad": "Check that PostgreSQL runs and that --store names it (postgresql://user@host:port/name).",
    "server closed the connection": "PostgreSQL went away: start it again and run the same command again.",
    "terminating connection": "PostgreSQL is shutting down: start it again and run the same command again.",
    "no such table": "Create or upgrade the schema: `recrawl db upgrade`.",
    "undefinedtable": "Create or upgrade the schema: `recrawl db upgrade`.",
    "no such column": "Upgrade the schema: `recrawl db upgrade`.",
}


def open_store(url: str) -> Store:
    """Open the database at `url`: a SQLAlchemy URL of SQLite or PostgreSQL, or the path of a SQLite file.

    Nothing is created but an empty SQLite file; `recrawl.store.migrate` brings the schema. Raises Misuse for an
    address that is neither, and StoreUnavailable where the database cannot be reached.
    """
    full = url if "://" in url else f"sqlite:///{url}"
    try:
        parsed = make_url(full)
    except ArgumentError as error:
        raise Misuse(f"{url!r} is no database address", place="--store", action=_ADDRESSES) from error
    if parsed.get_backend_name() == "sqlite":
        return Store(_sqlite(parsed.database or ""), full)
    if parsed.get_backend_name() in ("postgresql", "postgres"):
        return Store(_postgres(full), full)
    raise Misuse(f"{parsed.get_backend_name()!r} is not supported", place="--store", action=_ADDRESSES)


_ADDRESSES = "Write a path such as recrawl.db, or postgresql://user@host:5432/name."


def _sqlite(path: str) -> Engine:
    import pysqlite3.dbapi2 as sqlite_driver

    if path in ("", ":memory:"):
        raise Misuse(
            "a database in memory would be lost", place="--store", action="Name a file, for instance recrawl.db."
        )
    folder = Path(path).parent
    if not folder.is_dir():
        raise Misuse(f"the folder {folder} does not exist", place="--store", action="Create it, or name another file.")
    engine = create_engine(
        f"sqlite:///{path}",
        module=sqlite_driver,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        # SQLite makes a number of a JSON text that looks like one.
        json_deserializer=lambda value: value if isinstance(value, int | float) else orjson.loads(value),
        connect_args={"timeout": 60, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # The driver must not begin transactions on its own: a deferred read that turns into a write fails as locked.
        connection.isolation_level = None
        if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
            # On a file that is not empty they would change nothing, and take the writer's lock.
            connection.execute("PRAGMA page_size = 16384").close()
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL").close()
        for pragma in (
            "journal_mode = WAL",
            "cache_size = -16000",
            "wal_autocheckpoint = 2000",
            "temp_store = MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        driver: Any = connection.connection.dbapi_connection
        driver.execute(f"PRAGMA synchronous = {'FULL' if options.get('recrawl_durable') else 'NORMAL'}").close()
        connection.exec_driver_sql(options.get("recrawl_begin", "BEGIN IMMEDIATE"))

    return engine


def _postgres(url: str) -> Engine:
    parsed = make_url(url).set(drivername="postgresql+psycopg")
    # It tells, with a traceback, of each statement of a pipeline behind one that failed; that one is dealt with here.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    try:
        return create_engine(
            parsed,
            json_serializer=lambda value: orjson.dumps(value).decode(),
            json_deserializer=orjson.loads,
            pool_pre_ping=True,
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise Misuse(
            "PostgreSQL needs a driver that is not installed",
            place="--store",
            action="Install it: pip install 'recrawl[postgres]'",
        ) from error


SPACING = 1_000
"""Numbers of the `observed` order are so far apart, for the records of one chunk to take the numbers between."""


@lru_cache(maxsize=64)
def upsert(insert: Callable[[Table], Any], table: Table, keys: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """Rows of these columns, put in the place of those with the same keys. Building it takes longer than a row."""
    statement = insert(table)
    changes = {name: statement.excluded[name] for name in names if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changes)


def draw(store: Store, connection: Connection) -> int:
    """The next number of the `observed` order: a database sequence, never a clock."""
    return int(connection.execute(_DRAW_POSTGRES if store.is_postgres else _DRAW_SQLITE).scalar_one())


_DRAW_POSTGRES = text("SELECT nextval('observed')")
_DRAW_SQLITE = text(f"UPDATE counters SET value = value + {SPACING} WHERE name = 'observed' RETURNING value")

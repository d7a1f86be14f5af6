"""`recrawl db`: the database as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.surface import Exit, JsonOption, StoreOption, emit, known_store, out
from recrawl.errors import StoreUnavailable

app = typer.Typer(help="The database: its schema, and copies of it.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def upgrade(store: StoreOption = None, json: JsonOption = False) -> None:
    """Create the schema, or bring it to this release's. Data stay."""
    from recrawl.run.wire import store_at
    from recrawl.store import migrate

    opened = store_at(store)
    try:
        before = migrate.present(opened)
        changed = migrate.upgrade(opened)
        place = opened.place
    finally:
        opened.close()
    if json:
        emit({"store": place, "before": before, "now": migrate.NEWEST, "changed": changed})
    else:
        was = f", was {before}" if before and changed else ""
        out().print(f"{place}: schema {migrate.NEWEST}{was or ('' if changed else ', as before')}")


@app.command()
def copy(
    origin: Annotated[str, typer.Argument(metavar="FROM", help="The database to copy: a file, or postgresql://...")],
    target: Annotated[str, typer.Argument(metavar="TO", help="A new file, or an empty database.")],
    json: JsonOption = False,
) -> None:
    """Copy a whole database, from SQLite to PostgreSQL or back; a sync then goes on in the copy where it stopped."""
    from recrawl.cli.counting import counting
    from recrawl.run.wire import store_at
    from recrawl.store.copy import copy as over

    with known_store(origin) as opened, counting(silent=json) as tell:
        new = store_at(target)
        try:
            counts = over(opened, new, lambda table, rows: tell(f"{table}: {rows:,}"))
            place = new.place
        finally:
            new.close()
    if json:
        emit({"from": opened.place, "to": place, "rows": counts})
    else:
        out().print(f"{place}: {sum(counts.values()):,} rows in {len(counts)} tables, all counts agree")


@app.command()
def check(store: StoreOption = None, json: JsonOption = False) -> None:
    """Tell whether the schema is this release's and, of SQLite, whether the file is sound. Changes nothing."""
    from recrawl.store import migrate, queries

    with known_store(store) as opened:
        problems = queries.damage(opened)
        if problems:
            action = "Restore a backup, or salvage the file with `sqlite3 FILE .recover`."
            raise StoreUnavailable(f"the file is damaged: {problems[0]}", place=opened.place, action=action)
        if json:
            emit({"store": opened.place, "schema": migrate.NEWEST, "ok": True})
        else:
            out().print(f"{opened.place}: schema {migrate.NEWEST}, sound")
    raise typer.Exit(Exit.GOOD)

"""`recrawl db`: the schema of the database."""

from __future__ import annotations

import typer

from recrawl.cli.surface import Exit, JsonOption, StoreOption, emit, known_store, out
from recrawl.errors import StoreUnavailable

app = typer.Typer(help="The database: its schema.", no_args_is_help=True, rich_markup_mode=None)


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

"""All commands, in the order in which a newcomer meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from recrawl.cli import (
    approve,
    audit,
    changes,
    compare,
    database,
    dead,
    demo,
    doctor,
    export,
    ingest,
    init,
    prune,
    reconcile,
    reparse,
    retry,
    revert,
    run,
    serve,
    show,
    standing,
    status,
    sync,
    token,
)
from recrawl.cli.surface import Commands
from recrawl.version import __version__

app = typer.Typer(
    name="recrawl",
    cls=Commands,
    help="Keep a local, versioned database in step with websites and APIs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_COMMANDS: tuple[Callable[..., None], ...] = (
    init.init,
    sync.sync,
    run.run,
    status.status,
    show.show,
    compare.diff,
    changes.changes,
    retry.retry,
    reparse.reparse,
    approve.approve,
    revert.revert,
    reconcile.reconcile,
    audit.audit,
    standing.pause,
    standing.resume,
    prune.prune,
    ingest.ingest,
    export.export,
    serve.serve,
    doctor.doctor,
    demo.demo,
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(dead.app, name="dead")
app.add_typer(token.app, name="token")
app.add_typer(database.app, name="db")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recrawl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keep a local, versioned database in step with websites and APIs.

    Exit codes: 0 good, 1 could not, 2 wrong usage or declaration, 3 finished with failures or dead letters, or
    waiting, 4 needs approval, 130 interrupted.
    """

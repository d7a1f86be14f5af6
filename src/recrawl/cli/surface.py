"""What all commands share: options, how results and errors are shown, and what exit codes mean."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.exceptions import TyperException

from recrawl.errors import Misuse, Permanent, RecrawlError

if TYPE_CHECKING:
    from recrawl.store.database import Store

REPORT = "https://github.com/recrawl/recrawl/issues"


class Exit(IntEnum):
    GOOD = 0
    COULD_NOT = 1
    MISUSE = 2
    FAILURES = 3  # finished with failures or dead letters, or waiting
    APPROVAL = 4
    INTERRUPTED = 130


JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="RECRAWL_STORE",
        help="The database: a file, or postgresql://...",
        show_default="recrawl.db",
    ),
]
SourceOption = Annotated[str | None, typer.Option("--source", help="Only this source.")]


class Commands(TyperGroup):
    """The root of all commands: here errors become sentences and exit codes."""

    # `Any`: the library's own contexts have a type that it does not publish.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Looked up before parsing, so that errors of parsing are told in the right form too.
        ctx.obj = "--json" in args
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            raise _refused(error, ctx) from error

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RecrawlError as error:
            tell(error, json=ctx.obj)
            raise typer.Exit(code_of(error)) from error
        except TyperException as error:
            raise _refused(error, ctx) from error
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            tell(_unexpected(error), json=ctx.obj)
            raise typer.Exit(Exit.COULD_NOT) from error


def _refused(error: TyperException, ctx: Any) -> Exception:
    """An error of the command line itself: the library's own way of telling it, unless JSON is asked for."""
    if not ctx.obj or not error.format_message():
        return error
    tell(Misuse(error.format_message(), place="command line", action="See `recrawl --help`."), json=True)
    return typer.Exit(error.exit_code)


def _unexpected(error: Exception) -> RecrawlError:
    said = str(error).strip().splitlines()
    action = f"Report it at {REPORT} with the output of the same command after `recrawl --debug`."
    return Permanent(f"recrawl itself failed: {type(error).__name__}: {said[0] if said else ''}", action=action)


def code_of(error: RecrawlError) -> Exit:
    return Exit.MISUSE if isinstance(error, Misuse) else Exit.COULD_NOT


def out() -> Console:
    """Standard output. What came from a website is never markup, and never commands to the terminal: see `safe`."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=not sys.stdout.isatty())


def err() -> Console:
    return Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)}
# Marks that turn the direction of text around can make one address look like another.
_CONTROLS |= {code: f"\\u{code:04x}" for code in (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def safe(text: object) -> str:
    """Text from outside with its control characters made visible."""
    return str(text).translate(_CONTROLS).encode("utf-8", "replace").decode()


def emit(value: Any) -> None:
    """One JSON document on standard output."""
    data = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    sys.stdout.write(data.decode() + "\n")


def tell(error: RecrawlError, *, json: bool) -> None:
    """An error on standard error: the sentence, its place, and what to do."""
    if json:
        body = {"error": error.problem, "place": error.place, "action": error.action}
        sys.stderr.write(orjson.dumps(body).decode() + "\n")
        return
    console = err()
    console.print(f"recrawl: {safe(error.problem)}", style="bold red")
    if error.place:
        console.print(f"  at: {safe(error.place)}")
    if error.action:
        console.print(f"  {safe(error.action)}")


@contextmanager
def known_store(address: str | None) -> Iterator[Store]:
    """A database that is there already, of this release's schema. Reading commands never create one."""
    from recrawl.run.wire import store_at
    from recrawl.store import migrate

    store = store_at(address)
    path = store.engine.url.database or ""
    try:
        if not store.is_postgres and not Path(path).exists():
            raise Permanent(f"there is no database {path}", place=str(Path(path).resolve()), action=_FIRST)
        if migrate.present(store) is None:
            raise Permanent("the database is empty", place=store.place, action=_FIRST)
        migrate.ready(store)
        yield store
    finally:
        store.close()


_FIRST = "Fill it first with `recrawl sync`, or name another database with --store."

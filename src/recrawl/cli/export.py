"""`recrawl export`: rows of a table into a file."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.surface import JsonOption, SourceOption, StoreOption, emit, err, known_store
from recrawl.errors import Misuse, Permanent
from recrawl.operate.formats import Format

if TYPE_CHECKING:
    from recrawl.store.database import Store


def export(
    table: Annotated[str, typer.Argument(help="A table of records or its history, or pages, changes, events...")],
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.CSV,
    to: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to; else standard output.")] = None,
    source: SourceOption = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME|AGE", help="Only what changed since: 2026-11-30, 2026-11-30T08:00Z, 7d.")
    ] = None,
    after: Annotated[str | None, typer.Option(metavar="POS", help="Only changes after this position.")] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Rows that are marked deleted, too.")] = False,
    excel: Annotated[bool, typer.Option("--excel", help="A CSV that Excel reads in the right encoding.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Write a table as CSV, JSON lines or Parquet, or the stored bodies as a web archive, whatever their size."""
    if form in (Format.PARQUET, Format.WARC) and to is None:
        raise Misuse(f"{form} is no text for a terminal", place="--format", action="Name a file with --out.")
    if excel and form is not Format.CSV:
        raise Misuse("--excel goes with CSV only", place="--excel", action="Leave it out, or take --format csv.")
    if json and to is None:
        raise Misuse("--json tells about a file", place="--json", action="Name one with --out; or take --format jsonl.")
    options: dict[str, Any] = {"form": form, "source": source, "deleted": deleted, "excel": excel}
    options |= {"since": _instant(since), "after": after}
    with known_store(store) as opened:
        count = _to_file(opened, table, to, options) if to else _to_output(opened, table, options)
    if json:
        emit({"table": table, "rows": count, "file": str(to)})
    elif to:
        err().print(f"{count:,} rows of {table} in {to}")


def _instant(told: str | None) -> datetime | None:
    """A time, in UTC unless it says otherwise, or a length of time before now."""
    from recrawl.declare.policies import seconds
    from recrawl.run.wire import the_clock

    if told is None:
        return None
    try:
        at = datetime.fromisoformat(told)
    except ValueError:
        return the_clock().now() - timedelta(seconds=seconds(told, place="--since"))
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _to_output(store: Store, table: str, options: dict[str, Any]) -> int:
    from recrawl.operate.export import export as write

    return write(store, table, sys.stdout.buffer, **options)


def _to_file(store: Store, table: str, path: Path, options: dict[str, Any]) -> int:
    """Under another name until it is whole: a reader never meets half a file."""
    from recrawl.operate.export import export as write

    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            count = write(store, table, file, **options)
        part.replace(path)
    except OSError as error:
        action = "Name a file with --out that can be written, on a disk with space."
        raise Permanent(f"the file cannot be written: {error.strerror}", place=str(path), action=action) from None
    finally:
        part.unlink(missing_ok=True)
    return count

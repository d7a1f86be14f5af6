"""`recrawl export`: rows of a table into a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.surface import JsonOption, SourceOption, StoreOption, emit, err, known_store
from recrawl.errors import Misuse, Permanent
from recrawl.operate.formats import Format

if TYPE_CHECKING:
    from recrawl.store.database import Store


def export(
    table: Annotated[str, typer.Argument(help="A table of records, or pages, versions, events, dead_letters, bodies.")],
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.CSV,
    to: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to; else standard output.")] = None,
    source: SourceOption = None,
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
    options = {"form": form, "source": source, "deleted": deleted, "excel": excel}
    with known_store(store) as opened:
        count = _to_file(opened, table, to, options) if to else _to_output(opened, table, options)
    if json:
        emit({"table": table, "rows": count, "file": str(to)})
    elif to:
        err().print(f"{count:,} rows of {table} in {to}")


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
        action = "Free some space, or name another file with --out."
        raise Permanent(f"the file cannot be written: {error.strerror}", place=str(path), action=action) from None
    finally:
        part.unlink(missing_ok=True)
    return count

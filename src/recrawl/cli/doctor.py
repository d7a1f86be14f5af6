"""`recrawl doctor`: what stands in the way on this machine, or which fields of a source differ at every look."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.surface import Exit, JsonOption, StoreOption, emit, out, safe

if TYPE_CHECKING:
    from recrawl.decide.twice import Restless
    from recrawl.operate.restless import Examination

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    source: Annotated[
        str | None,
        typer.Argument(metavar="SOURCE|URL|FILE", help="Look twice at some pages of this source instead."),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Check Python, SQLite, disk, database, rights, extras and clock, and say what to do. Changes nothing.

    With a source: fetch a handful of its pages twice, a few seconds apart, and name the fields that differ, such as
    counters of viewers, with the type to declare them with. Nothing is declared or stored by that.
    """
    if source is not None:
        _examine(source, store, json=json)
        return
    from rich.text import Text

    from recrawl.operate.doctor import Level, examine

    checks = examine(store)
    bad = any(check.level is Level.FAIL for check in checks)
    if json:
        emit({"ok": not bad, "checks": [asdict(check) for check in checks]})
    else:
        console = out()
        for check in checks:
            line = Text(f"{check.level:5}", style=_STYLES[check.level])
            console.print(line.append(f"{check.name:15} {safe(check.message)}", style="default"))
            if check.action:
                console.print(f"{'':20} {safe(check.action)}", style=None if check.level is not Level.OK else "dim")
    raise typer.Exit(Exit.COULD_NOT if bad else Exit.GOOD)


def _examine(named_source: str, store: str | None, *, json: bool) -> None:
    from recrawl.operate.restless import examine_source
    from recrawl.operate.sync import named

    found = [examine_source(declared, store) for declared in named([named_source])]
    if json:
        emit({"sources": [asdict(one) for one in found]})
    else:
        for one in found:
            _show(one)
    raise typer.Exit(Exit.GOOD if all(one.pages for one in found) else Exit.COULD_NOT)


def _show(one: Examination) -> None:
    console = out()
    console.print(safe(one.source), style="bold")
    for url, told in one.troubles.items():
        console.print(f"  {safe(url)}: {safe(told)}", style="yellow", soft_wrap=True)
    if not one.pages:
        console.print("  no page could be read twice")
    elif not one.restless:
        console.print(f"  {one.pages} pages, read twice: no field differs")
    for field in one.restless:
        _show_field(field)


def _show_field(field: Restless) -> None:
    console = out()
    console.print(f"  {safe(field.record)}.{safe(field.field)} differs on {field.differing} of {field.pages} pages")
    console.print(f"    {_short(field.before)}  ->  {_short(field.after)}")
    if field.proposal is None:
        console.print("    It is part of the key: choose a key that stays the same.", style="yellow")
    elif field.record == "Article":
        console.print("    Declare a record of your own that leaves such parts out.")
    else:
        console.print(f"    If that is no change: declare it as {field.proposal}")


def _short(value: object) -> str:
    told = safe(" ".join(str(value).split()))
    return told if len(told) <= 60 else f"{told[:57]}..."

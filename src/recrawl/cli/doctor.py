"""`recrawl doctor`: what stands in the way on this machine."""

from __future__ import annotations

from dataclasses import asdict

import typer

from recrawl.cli.surface import Exit, JsonOption, StoreOption, emit, out, safe

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(store: StoreOption = None, json: JsonOption = False) -> None:
    """Check Python, SQLite, disk, database, rights, extras and clock, and say what to do. Changes nothing."""
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

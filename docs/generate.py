"""Writes the parts of the documentation that are drawn from the code: state diagrams, and the list of commands.

They stand between `<!-- generated: NAME -->` and `<!-- end -->`. Run `python docs/generate.py` after a change of a
state machine or a command; a test fails while the two differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from recrawl.decide.lifecycle import PAGE, TASK

FOLDER = Path(__file__).parent
_PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)


def diagram(machine: Mapping[tuple[State, Event], State], first: State) -> str:
    """A state machine as a Mermaid diagram; events that lead from one state to the same other share an arrow."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, event), after in machine.items():
        arrows.setdefault((state, after), []).append(event.value)
    lines = [f"    {state} --> {after}: {', '.join(events)}" for (state, after), events in arrows.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *lines, "```", ""])


def commands(group: Any, *before: str) -> Iterator[tuple[str, ...]]:
    """The names of every command, in the order of the help: ("sync",), ("db", "upgrade")."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *before, name)
        else:
            yield (*before, name)


def root() -> Any:
    """The command line as a tree of commands."""
    from typer.main import get_command

    from recrawl.cli.app import app

    return get_command(app)


def _reference() -> str:
    """The help of every command, 80 columns wide."""
    return "".join(f"\n### `recrawl {' '.join(names)}`\n\n```text\n{_help(names)}\n```\n" for names in commands(root()))


def _help(names: tuple[str, ...]) -> str:
    from typer.testing import CliRunner

    from recrawl.cli.app import app

    told = CliRunner().invoke(app, [*names, "--help"], prog_name="recrawl", env={"COLUMNS": "80"}).output
    return "\n".join(line.rstrip() for line in told.strip().splitlines())


PARTS: dict[str, Callable[[], str]] = {
    "page-states": lambda: diagram(PAGE, next(iter(PAGE))[0]),
    "task-states": lambda: diagram(TASK, next(iter(TASK))[0]),
    "commands": _reference,
}


def renewed(text: str) -> str:
    """A document with its generated parts as they should be."""
    return _PART.sub(lambda found: found[1] + PARTS[found[2]]() + found[3], text)


def main() -> None:
    for path in sorted(FOLDER.rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"renewed {path.relative_to(FOLDER)}")


if __name__ == "__main__":
    main()

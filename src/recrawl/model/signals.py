"""What a page looks like, whatever it says: what tells it from something else that came in its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signals:
    """Taken from a page while it is read.

    `letters` counts the visible characters without white space; `headings` are the title and the first headings, of
    JSON what it says of errors; `opening` is the visible text of a page that has little of it, else empty, and `print`
    is its SHA-256 (hex) with numbers left out, so that the same block page is known again under another ray id;
    `challenge` names the maker of a bot check whose script is on the page; `shell` is true where an application's root
    element stands empty.
    """

    letters: int
    headings: tuple[str, ...] = ()
    opening: str = ""
    print: str | None = None
    structure: str | None = None
    password: bool = False
    challenge: str | None = None
    scripts: int = 0
    shell: bool = False

"""What a run came to, in lines that add up."""

from __future__ import annotations

from rich.table import Table

from recrawl.cli import advice
from recrawl.cli.surface import Exit, out, safe
from recrawl.run.engine import Ending, Result
from recrawl.run.progress import PUSHED
from recrawl.steps.documents import Trouble

_CODES = {
    Ending.FINISHED: Exit.GOOD,
    Ending.FAILURES: Exit.FAILURES,
    Ending.WAITING: Exit.FAILURES,
    Ending.APPROVAL: Exit.APPROVAL,
    Ending.NOTHING: Exit.COULD_NOT,
    Ending.INTERRUPTED: Exit.INTERRUPTED,
}
LINES = {
    "new": "new",
    "changed": "changed",
    "unchanged_304": "unchanged, says the server (304)",
    "unchanged_hash": "unchanged, says the content",
    "reread": "read again by new rules",
    "moved": "moved to another address",
    "gone": "not found (kept until confirmed)",
    "refused": "refused by robots.txt or the site",
    "quarantined": "not the page (login, captcha, empty)",
    "invalid": "read, but not valid data",
    "regressions": "older than what is stored",
    "failed": "failed",
}
_VANISHED = {
    "suspected": "suspected to be gone, to be confirmed",
    "deleted": "deleted, as confirmed",
    "held": "vanished, waiting for your approval",
}
_MOST = 8


def code_for(result: Result) -> Exit:
    return _CODES[result.ending]


def facts(source: str, result: Result, waiting: int) -> dict[str, object]:
    """The result as plain values."""
    return {
        "source": source,
        "ending": result.ending.value,
        "complete": result.complete,
        "counts": result.progress.summary() | {"waiting": waiting},
        "until": result.until,
        "next": _approval(source, result),
        "troubles": [
            {"url": one.url, "kind": one.kind, "message": one.message, "next": advice.for_kind(one.kind)}
            for one in _distinct(result)
        ],
    }


def show(source: str, result: Result, waiting: int) -> None:
    """The summary of a run, on a page of 80 columns."""
    console = out()
    console.print(f"{safe(source)}: {_headline(result)}", style="bold")
    if result.ending is not Ending.NOTHING:
        console.print(table(result, waiting))
    _changes(result)
    for one in _distinct(result):
        console.print(f"  ! {safe(one.message)}", style="yellow")
        console.print(f"    {advice.for_kind(one.kind)}")
    if told := _approval(source, result):
        console.print(f"  ! {safe(told)}", style="yellow")
    if result.ending is Ending.INTERRUPTED:
        console.print("  The same command goes on where this one stopped.")
    if result.progress.dead:
        console.print("  What could not become data, and why: recrawl status")
    elif result.progress.looked_at:
        console.print("  See more: recrawl status; one page: recrawl show URL")
    console.print()


def _distinct(result: Result) -> list[Trouble]:
    """Each trouble once, however often it was met."""
    return list({(one.url, one.kind): one for one in result.troubles}.values())


def _headline(result: Result) -> str:
    match result.ending:
        case Ending.FINISHED:
            return "up to date"
        case Ending.FAILURES:
            return "finished, with failures"
        case Ending.APPROVAL:
            return "too much vanished at once; nothing is deleted before you agree"
        case Ending.NOTHING:
            return "nothing could be found"
        case Ending.INTERRUPTED:
            return "interrupted"
        case Ending.WAITING:
            until = f" until {result.until:%Y-%m-%d %H:%M} UTC" if result.until else ""
            return f"the rest waits{until}; run the same command again then"


def _approval(source: str, result: Result) -> str | None:
    closed = result.closed
    if closed is None or not closed.held:
        return None
    pages = f"{closed.held:,} of {closed.standing:,} pages" if closed.standing else f"{closed.held:,} pages"
    return f"{pages} vanished. If that is right: recrawl approve {source}"


def table(result: Result, waiting: int) -> Table:
    """The counts. The lines that are set in add up to the pages looked at; of them, those that are 0 are left out."""
    counts = result.progress.summary()
    lines = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    lines.add_column(width=44, no_wrap=True)
    lines.add_column(justify="right")
    lines.add_row("  listed by the source", f"{counts['found']:,}")
    lines.add_row("  left alone, as its hint stayed the same", f"{counts['unchanged_hint']:,}")
    lines.add_row("  looked at", f"{counts['looked_at']:,}")
    for name, words in LINES.items():
        if counts[name]:
            lines.add_row(f"    {words}", f"{counts[name]:,}", style="yellow" if name in _BAD else None)
    for name, words in _VANISHED.items():
        if counts[name]:
            lines.add_row(f"  {words}", f"{counts[name]:,}", style="yellow" if name == "held" else None)
    if pushed := sum(counts[name] for name in PUSHED):
        lines.add_row("  pushed, and taken out of the inbox", f"{pushed:,}")
        for name, words in zip(PUSHED, _PUSHED_LINES, strict=True):
            if counts[name]:
                lines.add_row(f"    {words}", f"{counts[name]:,}", style="yellow" if name in _BAD else None)
    for name, words in (("postponed", "tried again later"), ("lost", "dropped, as another worker had them")):
        if counts[name]:
            lines.add_row(f"  {words}", f"{counts[name]:,}")
    for name, words in (("bad_urls", "listed, but no usable URL"), ("off_site", "listed, but on another site")):
        if counts[name]:
            lines.add_row(f"  {words}", f"{counts[name]:,}")
    if waiting:
        lines.add_row("  still waiting", f"{waiting:,}")
    lines.add_row("  requests", f"{counts['requests']:,}")
    return lines


_PUSHED_LINES = ("new", "changed", "duplicates", "older than what is stored", "not valid data")
_BAD = ("quarantined", "invalid", "failed", "pushed_dead")


def _changes(result: Result) -> None:
    """The first pages that changed; on a first run all are new, which needs no list."""
    changed = [(kind, url) for kind, url in result.progress.changes if kind != "created"]
    console = out()
    for kind, url in changed[:_MOST]:
        console.print(f"  {kind:8} {safe(url)}", soft_wrap=True)
    if len(changed) > _MOST:
        console.print(f"  and {len(changed) - _MOST:,} more")

"""`recrawl approve`: let go what the guard holds back."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.surface import Exit, JsonOption, StoreOption, emit, known_store, out, safe

if TYPE_CHECKING:
    from recrawl.store.close import Held

_MOST = 20


def approve(
    source: Annotated[str, typer.Argument(help="The source.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Agree that the pages which vanished from a source at once may go.

    Shows them and asks. Exactly these go on at the next sync: they are suspected, looked at again, and deleted if they
    are not found. One that is listed again by then stays.
    """
    from recrawl.operate.approve import held, let_through

    with known_store(store) as opened:
        pages = held(opened, source)
        if not json:
            _show(source, pages)
        agreed = bool(pages) and (yes or (not json and _asked(len(pages))))
        through = let_through(opened, source, pages) if agreed else 0
    if json:
        shown = [{name: value for name, value in asdict(page).items() if name != "id"} for page in pages]
        emit({"source": source, "held": shown, "approved": through})
    elif agreed:
        out().print(f"Approved: {through:,}. They go on with the next sync: recrawl sync {safe(source)}")
    elif pages:
        out().print("Nothing was approved.")
    raise typer.Exit(Exit.APPROVAL if pages and not agreed else Exit.GOOD)


def _show(source: str, pages: list[Held]) -> None:
    console = out()
    if not pages:
        console.print(f"{safe(source)}: nothing waits for approval")
        return
    console.print(f"{safe(source)}: {len(pages):,} pages vanished", style="bold")
    for page in pages[:_MOST]:
        why = f"not found since {page.gone_at:%Y-%m-%d %H:%M} UTC" if page.gone_at else f"absent {page.misses} times"
        console.print(f"  {safe(page.url)}  {why}", soft_wrap=True)
    if len(pages) > _MOST:
        console.print(f"  and {len(pages) - _MOST:,} more; all of them: recrawl approve {safe(source)} --json")


def _asked(count: int) -> bool:
    if not sys.stdin.isatty():
        out().print("  Nobody is here to ask: add --yes to approve them.")
        return False
    return typer.confirm(f"May these {count:,} pages go?")

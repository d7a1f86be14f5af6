"""`recrawl reconcile`: hold what a source lists against what is stored."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.surface import Exit, JsonOption, StoreOption, out, safe

if TYPE_CHECKING:
    from recrawl.cli.errand import Prepare
    from recrawl.operate.reconcile import Reconciled
    from recrawl.run.wire import Declared
    from recrawl.store.compare import Pages
    from recrawl.store.database import Store

_MOST = 5


def reconcile(
    source: Annotated[str, typer.Argument(metavar="SOURCE|FILE", help="A name in recrawl.toml, or a file.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read all lists of a source wholly, tell how they differ from what is stored, and fetch what is missing.

    A sync spares lists that seem unchanged; this believes nothing. It deletes nothing by itself.
    """
    from recrawl.cli.errand import perform

    async def doing(one: Declared, opened: Store, prepare: Prepare) -> tuple[Exit, dict[str, object]]:
        from recrawl.cli.summary import code_for
        from recrawl.operate.reconcile import reconcile_source

        found = await reconcile_source(one, opened, prepare=prepare)
        if not json:
            _show(one.source.name, found)
        return code_for(found.result), _facts(found)

    perform(source, store, json, doing)


def _facts(found: Reconciled) -> dict[str, object]:
    result = found.result
    return {
        "ending": result.ending.value,
        "complete": result.complete,
        "listed": result.progress.counts["found"],
        "new": asdict(found.new),
        "unread": found.unread,
        "differing": asdict(found.differing),
        "unlisted": asdict(found.unlisted) if found.unlisted is not None else None,
        "counts": result.progress.summary(),
    }


def _show(source: str, found: Reconciled) -> None:
    from recrawl.cli.summary import show

    console = out()
    console.print(f"{safe(source)}: {found.result.progress.counts['found']:,} pages listed", style="bold")
    _pages(found.new, "were not known here")
    if found.unread:
        console.print(f"  {found.unread:,} were known and never read well")
    _pages(found.differing, "are listed with another version than before")
    if found.unlisted is None:
        console.print("  which pages are listed no more cannot be told: no list of all pages was read to its end")
    else:
        _pages(found.unlisted, "are kept here and listed no more")
    show(source, found.result, 0)


def _pages(pages: Pages, words: str) -> None:
    console = out()
    console.print(f"  {pages.count:,} {words}")
    for url in pages.urls[:_MOST]:
        console.print(f"    {safe(url)}", soft_wrap=True)
    if pages.count > _MOST:
        console.print(f"    and {pages.count - _MOST:,} more")

"""`recrawl pause` and `recrawl resume`: the switch of a source."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.lookup import source_named
from recrawl.cli.surface import JsonOption, StoreOption, emit, known_store, out, safe


def pause(
    source: Annotated[str, typer.Argument(help="The source.")],
    reason: Annotated[str | None, typer.Argument(help="Why: shown wherever it is told.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Stop all work at a source, in every process, until `recrawl resume`. What is under way is brought to its end."""
    from recrawl.operate.standing import pause as switch

    with known_store(store) as opened:
        switch(opened, source_named(opened, source), reason)
    if json:
        emit({"source": source, "paused": True, "reason": reason})
    else:
        out().print(f"{safe(source)}: paused; `recrawl resume {safe(source)}` lets it go on")


def resume(
    source: Annotated[str, typer.Argument(help="The source.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Let work at a paused source go on, from where it stopped."""
    from recrawl.operate.standing import resume as switch

    with known_store(store) as opened:
        switch(opened, source_named(opened, source))
    if json:
        emit({"source": source, "paused": False})
    else:
        out().print(f"{safe(source)}: goes on with the next `recrawl sync`")

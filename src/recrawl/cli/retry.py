"""`recrawl retry`: a fresh attempt at what has no good end."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.lookup import source_named
from recrawl.cli.surface import JsonOption, StoreOption, emit, known_store, out, safe

if TYPE_CHECKING:
    from recrawl.store.retry import Retried


def retry(
    source: Annotated[str | None, typer.Argument(help="Only this source.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Pages that failed or have a dead letter.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Pages that were listed and never read well.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Mark pages without a good end for a fresh attempt: the next `recrawl sync` looks at exactly those.

    Without --failed and --missing, both. Asking twice changes nothing; work that is under way is not doubled.
    """
    from recrawl.operate.retry import retry_sources
    from recrawl.run.wire import the_clock

    both = not failed and not missing
    with known_store(store) as opened:
        if source is not None:
            source_named(opened, source)
        found = retry_sources(opened, source, failed=failed or both, missing=missing or both, now=the_clock().now())
    if json:
        emit({"sources": [{"source": name, **asdict(one)} for name, one in found.items()]})
        return
    for name, one in found.items():
        _show(name, one)
    if any(one.due or one.hastened or one.streams for one in found.values()):
        out().print("`recrawl sync` tries them now.")


def _show(name: str, one: Retried) -> None:
    told = [
        (one.due, "to be looked at"),
        (one.hastened, "no longer waiting"),
        (one.under_way, "under way already"),
    ]
    how = ", ".join(f"{count:,} {words}" for count, words in told if count)
    streams = f"; {one.streams:,} streams no longer waiting" if one.streams else ""
    out().print(f"{safe(name)}: {one.failed:,} failed, {one.missing:,} missing" + (f": {how}" if how else "") + streams)

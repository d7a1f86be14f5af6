"""`recrawl reparse`: read stored bodies again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.surface import Exit, JsonOption, StoreOption, out, safe

if TYPE_CHECKING:
    from recrawl.cli.errand import Prepare
    from recrawl.operate.reparse import Reparsed
    from recrawl.run.wire import Declared
    from recrawl.store.database import Store


def reparse(
    source: Annotated[str, typer.Argument(metavar="SOURCE|FILE", help="A name in recrawl.toml, or a file.")],
    parsers: Annotated[int, typer.Option(min=0, help="Processes that read pages.")] = 0,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read all stored pages again by the present rules, without a request.

    New rules are applied by every sync anyway. This is for what a program cannot see, such as a corrected library
    that your reader function calls.
    """
    from recrawl.cli.errand import perform

    async def doing(one: Declared, opened: Store, prepare: Prepare) -> tuple[Exit, dict[str, object]]:
        from recrawl.cli.summary import code_for
        from recrawl.operate.reparse import reparse_source

        found = await reparse_source(one, opened, processes=parsers, prepare=prepare)
        if not json:
            _show(one.source.name, found)
        return code_for(found.result), _facts(found)

    perform(source, store, json, doing, processes=parsers)


def _facts(found: Reparsed) -> dict[str, object]:
    counts = found.result.progress.counts
    return {
        "ending": found.result.ending.value,
        "kept": found.kept,
        "without_body": found.fetched,
        "read_again": found.result.progress.looked_at,
        "changed": sum(counts[name] for name in ("new", "changed", "reread")),
        "unchanged": counts["unchanged_hash"],
        "invalid": counts["invalid"],
    }


def _show(source: str, found: Reparsed) -> None:
    facts = _facts(found)
    told = f"{facts['changed']:,} read otherwise now, {facts['unchanged']:,} as before, {facts['invalid']:,} not valid"
    out().print(f"{safe(source)}: {facts['read_again']:,} of {found.kept:,} pages read again: {told}")
    if found.fetched:
        out().print(f"  {found.fetched:,} pages have no stored body: the next `recrawl sync` fetches them")

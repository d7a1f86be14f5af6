"""`recrawl audit`: how much of what is stored is stale?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.surface import Exit, JsonOption, StoreOption, out, safe

if TYPE_CHECKING:
    from recrawl.cli.errand import Prepare
    from recrawl.operate.audit import Audited
    from recrawl.run.wire import Declared
    from recrawl.store.database import Store

_MOST = 20


def audit(
    source: Annotated[str, typer.Argument(metavar="SOURCE|FILE", help="A name in recrawl.toml, or a file.")],
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=1, help="Pages to look at.")] = 100,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Look at a random sample of active pages, whatever is believed of them, and estimate how many are stale.

    What changed is stored, and a source whose hints or validators kept it silent is trusted less.
    """
    from recrawl.cli.errand import perform

    async def doing(one: Declared, opened: Store, prepare: Prepare) -> tuple[Exit, dict[str, object]]:
        from recrawl.cli.summary import code_for
        from recrawl.operate.audit import audit_source
        from recrawl.run.wire import the_chance

        found, result = await audit_source(one, opened, sample, the_chance(), prepare=prepare)
        if not json:
            _show(one.source.name, found)
        return code_for(result), {"ending": result.ending.value, **asdict(found)}

    perform(source, store, json, doing)


def _show(source: str, found: Audited) -> None:
    console = out()
    console.print(f"{safe(source)}: {found.looked:,} pages looked at, {found.stale:,} stale, {found.silent:,} silently")
    if found.unanswered:
        console.print(f"  {found.unanswered:,} more gave no answer that tells")
    if found.share is not None:
        bounds = f"between {found.low:.1%} and {found.high:.1%} with 95 % confidence"
        console.print(f"  stale pages of the whole source: about {found.share:.1%}, {bounds}")
    for url in found.urls[:_MOST]:
        console.print(f"  {'silent' if url in found.silent_urls else 'stale':6} {safe(url)}", soft_wrap=True)
    if len(found.urls) > _MOST:
        console.print(f"  and {len(found.urls) - _MOST:,} more")

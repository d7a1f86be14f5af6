"""`recrawl revert`: make an older version of a page current."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.lookup import page_named
from recrawl.cli.surface import JsonOption, SourceOption, StoreOption, emit, known_store, out, safe


def revert(
    page: Annotated[str, typer.Argument(metavar="URL|PAGE_ID", help="The page.")],
    version: Annotated[int, typer.Argument(min=1, help="The version whose content is to be current.")],
    source: SourceOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make the content of an older version of a page current again, as a new version.

    It stays until the source itself shows something new: what the source shows now is set aside.
    """
    from recrawl.operate.revert import revert_page
    from recrawl.run.wire import the_clock

    with known_store(store) as opened:
        found = page_named(opened, page, source)
        made = revert_page(opened, found, version, the_clock().now())
    url = found.facts["url"]
    if json:
        emit({"source": found.source, "url": url, "to": version, "version": made, "changed": made is not None})
    elif made is None:
        out().print(f"{safe(url)}: has the content of version {version} already")
    else:
        out().print(f"{safe(url)}: version {made} has the content of version {version}")

"""Which fields of a source differ at every look: found by looking twice, proposed, and never applied by itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from recrawl.decide.twice import Restless, restless
from recrawl.declare import Urls
from recrawl.declare.article import Article
from recrawl.errors import Permanent
from recrawl.run.wire import Declared, store_at, tools_for
from recrawl.steps.identify import identify
from recrawl.steps.tools import Tools
from recrawl.steps.twice import look_twice
from recrawl.store import migrate, queries

HANDFUL = 5


@dataclass(frozen=True, slots=True)
class Examination:
    """What two looks at a handful of a source's pages came to."""

    source: str
    pages: int
    restless: list[Restless]
    troubles: dict[str, str]


def examine_source(declared: Declared, address: str | None) -> Examination:
    """Look twice at a handful of known pages. Raises Permanent where no page is known yet, StoreUnavailable."""
    return asyncio.run(_examine(declared, address))


async def _examine(declared: Declared, address: str | None) -> Examination:
    store = store_at(address)
    source = declared.source
    try:
        migrate.ready(store)
        async with tools_for(declared, store) as tools:
            known = queries.some_pages(store, source.name, 40 * HANDFUL) or _listed(tools)
            if not known:
                action = f"Find them first: recrawl sync {declared.origin}"
                raise Permanent(f"no page of {source.name} is known yet", place=store.place, action=action)
            chosen = tools.chance.sample(known, min(HANDFUL, len(known)))
            twice = await look_twice(chosen, tools)
    finally:
        store.close()
    specs = source.records or (Article.__spec__,)
    return Examination(source.name, len(twice.looks), restless(specs, twice.looks), twice.troubles)


def _listed(tools: Tools) -> list[tuple[str, str]]:
    """Pages that the declaration itself lists."""
    urls = [url for finder in tools.source.finders if isinstance(finder, Urls) for url in finder.urls]
    return [(found.url, found.fetch_url) for found in (identify(tools.source, url, None) for url in urls)]

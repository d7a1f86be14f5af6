"""`recrawl serve`: the HTTP service, and the worker that stores what is pushed to it."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.surface import JsonOption, StoreOption, emit, err
from recrawl.errors import Misuse

if TYPE_CHECKING:
    from recrawl.declare import Source
    from recrawl.run.wire import Declared
    from recrawl.service.server import Address
    from recrawl.store.database import Store


def serve(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE|FILE", help="Names in recrawl.toml, or files that declare."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 is any free one.")] = 8470,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Store what is pushed, too.")] = True,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Serve records in, and changes, pages and dead letters out, over HTTP.

    Without tokens it answers anyone on this machine, and listens nowhere else: see `recrawl token`. Ctrl-C ends it;
    what was accepted is kept.
    """
    from recrawl.operate.sync import named
    from recrawl.run.wire import store_at
    from recrawl.store import migrate

    try:
        from recrawl.service.server import Address
    except ImportError:
        action = "Install it: pip install 'recrawl[serve]'."
        raise Misuse("the HTTP service is not installed", place="recrawl serve", action=action) from None
    declared = named(what or [])
    with closing(store_at(store)) as opened:
        migrate.ready(opened)
        asyncio.run(_serve(opened, declared, Address(host=host, port=port), worker, json))


async def _serve(store: Store, declared: list[Declared], address: Address, with_worker: bool, json: bool) -> None:
    from recrawl.service.server import by_name, serve

    sources = by_name([one.source for one in declared])
    done: Counter[str] = Counter()
    worker = partial(_until, store, list(sources.values()), done) if with_worker else None

    def ready(url: str) -> None:
        if json:
            emit({"url": url, "sources": list(sources)})
        else:
            err().print(f"recrawl serves {', '.join(sources)} at {url}; {url}/docs describes the API. Ctrl-C ends it.")

    await serve(store, sources, address, worker=worker, ready=ready)
    if not json:
        told = ", ".join(f"{count:,} {name}" for name, count in sorted(done.items())) or "nothing"
        err().print(f"stored meanwhile: {told}")


async def _until(store: Store, sources: list[Source], done: Counter[str], stop: asyncio.Event) -> None:
    from recrawl.operate.work import work

    await work(store, sources, stop=stop, told=done.update)

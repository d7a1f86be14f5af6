"""Bringing sources up to date: what a user named, as declarations, and the one call that syncs them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from recrawl.declare import Source, from_url
from recrawl.declare.checks import suggestion
from recrawl.declare.load import load
from recrawl.errors import Misuse
from recrawl.run.engine import Result
from recrawl.run.wire import Declared, store_at, sync_source

DECLARATION = "recrawl.toml"
"""The file of the working directory in which sources are looked up by name."""


def sync(
    *what: Source | str, store: str | None = None, concurrency: int | None = None, delay: float | None = None
) -> list[Result]:
    """Bring sources up to date, one after the other; a result each.

    `what` are declared sources, or what `recrawl sync` takes: a name in recrawl.toml, a URL, a file; nothing means all
    of recrawl.toml. `store` is the database's address (default: RECRAWL_STORE, else recrawl.db); `delay` is in seconds
    between two requests to one host. Raises Misuse for what cannot be understood, StoreUnavailable where the database
    cannot be used. What goes wrong at a source is told by its result.
    """
    declared = [one if isinstance(one, Declared) else Declared(one, one.name) for one in _given(what)]
    opened = store_at(store)
    try:
        return [asyncio.run(sync_source(one, opened, concurrency=concurrency, delay=delay)) for one in declared]
    finally:
        opened.close()


def _given(what: Sequence[Source | str]) -> list[Source | Declared]:
    if not what:
        return list(named([]))
    return [found for one in what for found in ([one] if isinstance(one, Source) else named([one]))]


def named(arguments: Sequence[str]) -> list[Declared]:
    """The sources that names, URLs and files stand for, each once; of nothing, all of recrawl.toml. Raises Misuse."""
    if not arguments:
        return _of_file(Path(DECLARATION))
    found: dict[str, Declared] = {}
    for argument in arguments:
        for declared in _one(argument):
            known = found.setdefault(declared.source.name, declared)
            if known.origin != declared.origin:
                raise Misuse(
                    f"two sources have the name {declared.source.name!r}",
                    place=f"{known.origin} and {declared.origin}",
                    action="Give each a name of its own, or sync one at a time.",
                )
    return list(found.values())


def _one(argument: str) -> list[Declared]:
    if "://" in argument:
        return [Declared(from_url(argument), argument)]
    if argument.endswith((".py", ".toml")):
        return _of_file(Path(argument))
    path = Path(DECLARATION)
    if not path.exists() and "." in argument:
        action = f"Write https://{argument} for a site, or a path that ends in .py or .toml for a declaration."
        raise Misuse(f"{argument!r} is no URL and no file", action=action)
    declared = _of_file(path)
    for one in declared:
        if one.source.name == argument:
            return [one]
    names = [one.source.name for one in declared]
    raise Misuse(f"{argument!r} is no source", place=str(path.resolve()), action=suggestion(argument, names))


def _of_file(path: Path) -> list[Declared]:
    if path == Path(DECLARATION) and not path.exists():
        raise Misuse(
            f"there is no {DECLARATION} here",
            place=str(Path.cwd()),
            action="Write one with `recrawl init`, or name a site: `recrawl sync https://site.example`.",
        )
    return [Declared(source, str(path)) for source in load(path)]

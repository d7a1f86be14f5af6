"""Finding the page that a user means."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from recrawl.errors import Misuse, Permanent

if TYPE_CHECKING:
    from recrawl.store.database import Store
    from recrawl.store.queries import PageRow, VersionRow


def source_named(store: Store, name: str) -> str:
    """The name of a source that the database knows. Raises Misuse for another one."""
    from recrawl.declare.checks import suggestion
    from recrawl.store import queries

    names = queries.source_names(store)
    if name not in names:
        problem = f"{name!r} is no source of this database"
        raise Misuse(problem, place=store.place, action=suggestion(name, names))
    return name


def page_named(store: Store, name: str, source: str | None) -> PageRow:
    """The page of a URL or page id. Raises Permanent if there is none, Misuse if several sources have one."""
    from recrawl.decide.urls import canonical_url
    from recrawl.store import queries

    names = [name]
    with suppress(ValueError):
        names.append(canonical_url(name))
    found = queries.find_pages(store, names, source)
    if not found:
        action = "Name it as its source lists it, by URL or page id; `recrawl export pages` lists all."
        raise Permanent(f"no page {name!r} is known", place=store.place, action=action)
    if len(found) > 1:
        among = ", ".join(dict.fromkeys(page.source for page in found))
        raise Misuse(f"{name!r} is a page of several sources", place=among, action="Say which with --source.")
    return found[0]


def version_numbered(versions: list[VersionRow], number: int, option: str) -> VersionRow:
    for version in versions:
        if version.version == number:
            return version
    known = ", ".join(str(version.version) for version in versions[-20:]) or "none"
    raise Misuse(f"the page has no version {number}", place=option, action=f"Versions: {known}.")

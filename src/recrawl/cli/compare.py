"""`recrawl diff`: what changed between two versions of a page, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.lookup import page_named, version_numbered
from recrawl.cli.surface import JsonOption, SourceOption, StoreOption, emit, known_store, out, safe
from recrawl.errors import Permanent

if TYPE_CHECKING:
    from recrawl.model.record import Json
    from recrawl.store.database import Store
    from recrawl.store.queries import PageRow, VersionRow

_LONG = 60
_STYLES = {"-": "red", "+": "green", "@": "cyan"}

Records = dict[tuple[str, str], dict[str, "Json"]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one record. None stands for a value that is not there, too."""

    table: str
    key: str
    field: str
    before: Json
    after: Json


def diff(
    page: Annotated[str, typer.Argument(metavar="URL|PAGE_ID", help="The page.")],
    before: Annotated[int | None, typer.Option("--from", metavar="N", help="Else the version before the last.")] = None,
    after: Annotated[int | None, typer.Option("--to", metavar="N", help="Else the last version.")] = None,
    source: SourceOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show what changed between two versions of a page."""
    with known_store(store) as opened:
        found = page_named(opened, page, source)
        old, new = _chosen(opened, found, before, after)
        differences = between(opened, found, old, new)
    if json:
        ends = {"from": old, "to": new}
        emit({"source": found.source, "url": found.facts["url"], **ends, "differences": differences})
    else:
        show(found, old, new, differences)


def _chosen(store: Store, page: PageRow, before: int | None, after: int | None) -> tuple[VersionRow, VersionRow]:
    from recrawl.store import queries

    versions = queries.versions_of(store, page.id)
    if len(versions) < 2:
        problem = "the page has one version only" if versions else "the page has no version yet"
        action = "See it with `recrawl show`; a change makes another one."
        raise Permanent(f"{problem}: there is nothing to compare", place=page.facts["url"], action=action)
    new = version_numbered(versions, after, "--to") if after is not None else versions[-1]
    earlier = [version for version in versions if version.version < new.version]
    old = version_numbered(versions, before, "--from") if before is not None else (earlier or versions)[-1]
    return old, new


def between(store: Store, page: PageRow, old: VersionRow, new: VersionRow) -> list[Difference]:
    """The fields that differ, in the order of their records."""
    from recrawl.store import contents

    before = contents.records_of(store, page.id, old.version)
    after = contents.records_of(store, page.id, new.version)
    return list(_differences(before, after))


def _differences(before: Records, after: Records) -> Iterator[Difference]:
    for table, key in dict.fromkeys([*before, *after]):
        old, new = before.get((table, key), {}), after.get((table, key), {})
        for name in dict.fromkeys([*old, *new]):
            if old.get(name) != new.get(name):
                yield Difference(table, key, name, old.get(name), new.get(name))


def show(page: PageRow, old: VersionRow, new: VersionRow, differences: list[Difference]) -> None:
    console = out()
    console.print(f"{safe(page.facts['url'])}", style="bold", soft_wrap=True)
    console.print(
        f"  version {old.version} ({old.fetched_at:%Y-%m-%d %H:%M:%S} UTC) -> "
        f"{new.version} {new.kind} ({new.fetched_at:%Y-%m-%d %H:%M:%S} UTC)"
    )
    if not differences:
        console.print("  no field differs")
    record = None
    for one in differences:
        if (one.table, one.key) != record:
            record = (one.table, one.key)
            console.print(f"  {safe(one.table)} {safe(one.key)}", soft_wrap=True)
        _show_field(one)


def _show_field(one: Difference) -> None:
    console = out()
    before, after = _lines(one.before), _lines(one.after)
    if max(map(len, before), default=0) <= _LONG and len(before) <= 1 and len(after) <= 1:
        console.print(f"    {one.field}")
        for sign, lines in (("-", before), ("+", after)):
            for line in lines:
                console.print(f"      {sign} {line}", style=_STYLES[sign], soft_wrap=True)
        return
    console.print(f"    {one.field}")
    for line in list(unified_diff(before, after, n=1, lineterm=""))[2:]:
        console.print(f"      {line}", style=_STYLES.get(line[:1]))


def _lines(value: Json) -> list[str]:
    return [] if value is None else safe(value).splitlines()

"""`recrawl show`: all that is known of one page."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from recrawl.cli.lookup import page_named, version_numbered
from recrawl.cli.surface import JsonOption, SourceOption, StoreOption, emit, known_store, out, safe
from recrawl.errors import Permanent

if TYPE_CHECKING:
    from recrawl.model.record import Json
    from recrawl.store.database import Store
    from recrawl.store.queries import PageRow, VersionRow

_FACTS = (
    ("page_id", "page id"),
    ("url", "url"),
    ("status", "state"),
    ("moved_to_url", "moved to"),
    ("first_seen_at", "first seen"),
    ("last_fetched_at", "last fetched"),
    ("last_changed_at", "last changed"),
    ("source_updated_at", "source says"),
    ("hint", "hint"),
    ("etag", "etag"),
    ("last_modified", "last-modified"),
    ("content_type", "type"),
    ("failures", "failures"),
    ("gone_at", "not found at"),
    ("misses", "cycles absent"),
    ("confirms", "confirmed"),
    ("held", "held back"),
    ("approved", "approved"),
    ("deleted_at", "deleted at"),
    ("delete_reason", "because"),
    ("due_at", "next look"),
)
_LONG = 400


def show(
    page: Annotated[str, typer.Argument(metavar="URL|PAGE_ID", help="The page.")],
    source: SourceOption = None,
    body: Annotated[bool, typer.Option("--body", help="Write the stored bytes to standard output.")] = False,
    version: Annotated[int | None, typer.Option(help="This version's records or body; else the last.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show a page: its facts, its versions, and its records."""
    from recrawl.store import contents, queries

    with known_store(store) as opened:
        found = page_named(opened, page, source)
        versions = queries.versions_of(opened, found.id)
        chosen = version_numbered(versions, version, "--version") if version is not None else _last(versions)
        if body:
            sys.stdout.buffer.write(_body(opened, found, chosen if version is not None else None))
            return
        records = contents.records_of(opened, found.id, chosen.version) if chosen else {}
        events = queries.events_of(opened, found.id)
        letters = queries.letters_of(opened, found.id)
    if json:
        items = [{"table": table, "key": key, "data": data} for (table, key), data in records.items()]
        told = {"versions": versions, "records": items, "events": events, "dead_letters": letters}
        emit({"page": _plain(found), "aliases": found.aliases, **told})
        return
    _show_facts(found)
    _show_versions(versions)
    for at, kind, data in events:
        out().print(f"  event         {at:%Y-%m-%d %H:%M} UTC {kind} {safe(data)}")
    for letter in letters:
        out().print(f"  dead letter   {safe(letter.signature)}: {safe(letter.reason)}", style="yellow")
    for (table, key), data in records.items():
        assert chosen is not None
        _show_record(table, key, data, chosen.version)


def _last(versions: list[VersionRow]) -> VersionRow | None:
    return versions[-1] if versions else None


def _plain(page: PageRow) -> dict[str, object]:
    inner = ("id", "page_hash", "moved_to")
    return {name: value for name, value in page.facts.items() if name not in inner}


def _body(store: Store, page: PageRow, version: VersionRow | None) -> bytes:
    """The stored bytes; of a page that never read well, those that its newest dead letter keeps."""
    from recrawl.store import contents, queries

    raw_hash = version.raw_hash if version else page.facts["raw_hash"] or _last_hash(store, page)
    found = contents.body(store, raw_hash) if raw_hash else queries.dead_body(store, page.id)
    if found is None:
        action = "It is stored when the page is next read: `recrawl sync`."
        raise Permanent("no body of it is stored", place=page.facts["url"], action=action)
    return found


def _last_hash(store: Store, page: PageRow) -> str | None:
    """What a page that is gone held last."""
    from recrawl.store import queries

    last = _last(queries.versions_of(store, page.id))
    return last.raw_hash if last else None


def _show_facts(page: PageRow) -> None:
    console = out()
    console.print(f"{safe(page.source)}", style="bold")
    for name, label in _FACTS:
        value = page.facts[name]
        if value is True:
            console.print(f"  {label:13} yes: too much vanished at once" if name == "held" else f"  {label:13} yes")
        elif value not in (None, 0):
            told = f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else safe(value)
            console.print(f"  {label:13} {told}", soft_wrap=True)
    if page.facts["fetch_url"] != page.facts["url"]:
        console.print(f"  {'fetched as':13} {safe(page.facts['fetch_url'])}", soft_wrap=True)
    for alias in page.aliases:
        if alias != page.facts["url"]:
            console.print(f"  {'also known as':13} {safe(alias)}", soft_wrap=True)


def _show_versions(versions: list[VersionRow]) -> None:
    console = out()
    if not versions:
        console.print("  no version yet: it never read well", style="yellow")
        return
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("  version", "kind", "fetched", "content", "bytes"):
        table.add_column(name)
    for one in versions:
        hashes = ((value or "-")[:10] for value in (one.content_hash, one.raw_hash))
        table.add_row(f"  {one.version}", one.kind, f"{one.fetched_at:%Y-%m-%d %H:%M:%S} UTC", *hashes)
    console.print(table)


def _show_record(table: str, key: str, data: dict[str, Json], version: int) -> None:
    console = out()
    console.print(f"\n{safe(table)} {safe(key)} (version {version})", style="bold", soft_wrap=True)
    for name, value in data.items():
        told = safe(value) if value is not None else "-"
        if len(told) > _LONG:
            told = f"{told[:_LONG]}... ({len(told):,} characters)"
        console.print(f"  {name:13} {told}")

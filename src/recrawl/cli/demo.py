"""`recrawl demo`: the program at work on a small site that misbehaves, held against the truth."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recrawl.cli.surface import Exit, JsonOption, emit, out, safe
from recrawl.errors import Misuse

if TYPE_CHECKING:
    from recrawl.demo.plot import Change
    from recrawl.demo.site import DemoSite
    from recrawl.run.engine import Result
    from recrawl.store.database import Store
    from recrawl.store.queries import PageRow

_PLACE = Path("demo-data") / "demo.db"
_SHOWN = "/shop/zh/HB-2001"
"""The page whose change is shown in full."""

_DAYS = {
    1: "Day 1: the first sync. All is new.",
    2: "Day 2: pages were edited, added, moved and removed; the shop has a new frame.",
    3: "Day 3: a few edits, one of them silent: the sitemap keeps its old lastmod.",
}
_CALM = ("noise", "template", "trouble")


def demo(
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="A new database; else demo-data/demo.db."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the site running until Ctrl-C.")] = False,
    json: JsonOption = False,
) -> None:
    """Sync a small built-in site on three of its days, and hold what was found against what truly happened."""
    from recrawl.demo.site import DemoSite
    from recrawl.run.wire import store_at
    from recrawl.store import migrate

    address = store or _own_place()
    opened = store_at(address)
    try:
        if migrate.present(opened) is not None:
            action = "Name one that is not there yet, or leave --store out."
            raise Misuse("the demo makes its database itself", place=opened.place, action=action)
        with DemoSite() as site:
            tour = Tour(opened, site, address, silent=json)
            told = tour.through()
            if json:
                emit(told)
            if keep:
                _stay(site.url, address, json)
    finally:
        opened.close()
    raise typer.Exit(Exit.GOOD)


def _own_place() -> str:
    _PLACE.parent.mkdir(exist_ok=True)
    for ending in ("", "-wal", "-shm"):
        _PLACE.with_name(_PLACE.name + ending).unlink(missing_ok=True)
    return str(_PLACE)


def _stay(url: str, address: str, json: bool) -> None:
    if not json:
        out().print(f"The site stands at {url} until Ctrl-C.")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return


@dataclass(slots=True)
class Tour:
    """Three days of the site, synced one after the other."""

    store: Store
    site: DemoSite
    address: str
    silent: bool

    def through(self) -> dict[str, object]:
        days = [self._day(day) for day in (1, 2, 3)]
        if not self.silent:
            self._show_change()
            self._farewell()
        return {"store": self.address, "site": self.site.url, "days": days}

    def _say(self, text: str = "", style: str | None = None) -> None:
        if not self.silent:
            out().print(text, style=style, soft_wrap=True)

    def _day(self, day: int) -> dict[str, object]:
        from recrawl.cli.summary import facts, table
        from recrawl.demo.shop import declarations
        from recrawl.run.wire import Declared, sync_source

        self.site.step(day)
        self._say(f"{_DAYS[day]}", style="bold")
        results: list[Result] = []
        for source in declarations(self.site.url):
            result = asyncio.run(sync_source(Declared(source, self.site.url), self.store))
            results.append(result)
            if not self.silent:
                out().print(f" {source.name}")
                out().print(table(result, 0))
        verdicts = [] if day == 1 else self._judged(day, results)
        return {
            "day": day,
            "sources": [facts(result.progress.source, result, 0) for result in results],
            "truth": [
                {"kind": change.kind, "url": change.url, "found": found, "how": how} for change, found, how in verdicts
            ],
        }

    def _judged(self, day: int, results: list[Result]) -> list[tuple[Change, bool, str]]:
        """Each thing that truly happened, and what was made of it."""
        recorded = {url: kind for result in results for kind, url in result.progress.changes}
        verdicts = [(change, *self._found(change, recorded)) for change in self.site.story(day)]
        self._say(" what truly happened, and what was made of it")
        calm = 0
        for change, found, how in verdicts:
            if found and change.kind in _CALM:
                calm += 1
                continue
            self._line(change, found, how)
        true = {change.url for change, _, _ in verdicts if change.kind not in _CALM}
        true |= {change.after for change, _, _ in verdicts if change.kind == "moved"}
        false = [url for url in recorded if url not in true]
        self._say(f"   {calm} pages only looked changed (noise, new frame, captcha, login, ...): no version was made")
        self._say(f"   changes recorded that did not happen: {len(false)}", style=None if not false else "red")
        self._say()
        return verdicts

    def _line(self, change: Change, found: bool, how: str) -> None:
        if self.silent:
            return
        words = " -> ".join(word for word in (change.before, change.after) if word)
        line = Text(f"   {'seen' if found else 'not yet':8}", style="green" if found else "yellow")
        line.append(f"{change.kind:9}{safe(change.url.removeprefix(self.site.url))}", style="default")
        if words and change.kind != "moved":
            line.append(f"  {safe(words)}", style="dim")
        out().print(line, soft_wrap=True)
        if how:
            out().print(f"           {how}")

    def _found(self, change: Change, recorded: dict[str, str]) -> tuple[bool, str]:
        """Whether a change was seen, and a word where that is not plain."""
        page = self._page(change.url)
        match change.kind:
            case "added" | "edited":
                found = recorded.get(change.url) in ("created", "updated")
                if not change.silent:
                    return found, ""
                if found:
                    return True, "a silent edit, seen by chance: 1 % of pages are looked at whatever their hint says"
                return False, "a silent edit: its lastmod stayed, so it was left alone; the random looks find it later"
            case "removed":
                if page is not None and page.facts["gone_at"] is not None:
                    return True, "404 noted; what is stored stays until its absence is confirmed"
                return False, "no longer listed; absence alone proves nothing, so what is stored stays"
            case "restored":
                return page is not None and page.facts["status"] == "active" and page.facts["gone_at"] is None, ""
            case "moved":
                found = page is not None and (page.facts["status"] == "moved" or page.facts["url"] == change.after)
                return found, f"to {change.after.removeprefix(self.site.url)}: its record was handed over"
            case _:
                return recorded.get(change.url) != "updated", ""

    def _page(self, url: str) -> PageRow | None:
        from recrawl.store import queries

        found = queries.find_pages(self.store, [url], None)
        return found[0] if found else None

    def _show_change(self) -> None:
        from recrawl.cli import compare
        from recrawl.store import queries

        page = self._page(self.site.url + _SHOWN)
        versions = queries.versions_of(self.store, page.id) if page else []
        if page is None or len(versions) < 2:
            return
        self._say("One change in full", style="bold")
        compare.show(page, versions[0], versions[-1], compare.between(self.store, page, versions[0], versions[-1]))
        self._say()

    def _farewell(self) -> None:
        self._say("Look around", style="bold")
        called = Path(sys.argv[0])
        # In a clone the command stands in .venv, which need not be on the path.
        program = os.path.relpath(called) if called.name == "recrawl" and not which("recrawl") else "recrawl"
        for command in ("status", "show HB-2001", "diff HB-1001", "export products"):
            self._say(f"  {program} {command} --store {self.address}")

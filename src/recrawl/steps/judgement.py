"""Judging what came in place of a page, with what is known of its source and of the page itself."""

from __future__ import annotations

from dataclasses import replace

from recrawl.decide.quarantine import Finding, Known, judge, suspicious
from recrawl.model.fetched import Page
from recrawl.model.outcome import Look, Quarantined
from recrawl.model.record import RecordRow
from recrawl.model.signals import Signals
from recrawl.model.work import PageView
from recrawl.steps.read import Reading, signals_in
from recrawl.steps.tools import Tools
from recrawl.store import contents, profiles

MANY = 3
"""Pages that may be moved to one address; the next ones, and those, are not believed."""


async def doubt(page: PageView, look: Look, reading: Reading, tools: Tools, *, away: bool) -> Finding | None:
    """What a body is taken for if it is not the page. `away`: it came from an address that is not the page's own."""
    signals = reading.signals
    if signals is None:
        return None
    experience = tools.experience
    await experience.load(tools)
    known = Known(
        profile=experience.profile,
        values=_values(reading.rows),
        failures=page.failures,
        redirected=away,
        sent_along=len(experience.redirected(look.final_url or "", page.id)) if away else 0,
        twins=experience.twins(page.id, signals),
        template=experience.rebuilding,
    )
    if not suspicious(signals, known):
        return None
    if page.version:
        own, rows = await _last_good(page, tools)
        known = replace(known, own=own, own_values=_values(rows))
    return judge(signals, known)


async def _last_good(page: PageView, tools: Tools) -> tuple[Signals | None, tuple[RecordRow, ...]]:
    """The page's last good look, read again from its stored body: for the few pages that give cause to doubt."""
    stored = await tools.db(contents.records_of, page.id, page.version)
    rows = tuple(RecordRow(table, key, data) for (table, key), data in stored.items())
    if not page.has_body or page.raw_hash is None:
        return None, rows
    last = await tools.db(contents.last_look, page.id, page.raw_hash)
    signals = signals_in(Page(page.url, last.final_url or page.url, last.body, last.content_type, last.fetched_at))
    return (replace(signals, structure=page.structure_hash) if signals else None), rows


def _values(rows: tuple[RecordRow, ...]) -> int:
    """How many values records hold, but for addresses, which say nothing of what was read."""
    return sum(name != "url" and value not in (None, "", []) for row in rows for name, value in row.data.items())


async def mass_move(page: PageView, look: Look, target: str, tools: Tools) -> Quarantined | None:
    """The outcome where this page is one of many that were moved to the same address. Those before it, which were
    believed, are looked at again at once."""
    await tools.experience.load(tools)
    others = tools.experience.redirected(target, page.id)
    if len(others) < MANY:
        return None
    await tools.db(profiles.look_again, others, tools.clock.now())
    reason = f"moved to {target}, as {len(others)} other pages or more were"
    return Quarantined(look=look, reason=reason, name="mass redirect")

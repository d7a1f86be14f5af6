"""Judging what came in place of a page, with what is known of its source and of the page itself."""

from __future__ import annotations

from dataclasses import replace

from recrawl.decide.quarantine import MANY, Finding, Known, judge, suspicious
from recrawl.model.fetched import Page
from recrawl.model.outcome import Look, Quarantined
from recrawl.model.record import Json, RecordRow
from recrawl.model.work import PageView
from recrawl.steps.read import Reading, signals_in
from recrawl.steps.tools import Tools
from recrawl.store import contents


async def doubt(page: PageView, look: Look, reading: Reading, tools: Tools, *, away: bool) -> Finding | None:
    """What a body is taken for if it is not the page. `away`: it came from an address that is not the page's own."""
    signals = reading.signals
    if signals is None:
        return None
    experience = tools.experience
    await experience.load(tools)
    values = _values(reading.rows)
    known = Known(
        profile=experience.profile,
        values=len(values),
        unseen=sum(str(value) not in signals.opening and value not in signals.headings for value in values),
        failures=page.failures,
        redirected=away,
        sent_along=len(experience.redirected(look.final_url or "", page.id)) if away else 0,
        twins=experience.twins(page.id, signals),
        template=experience.rebuilding,
    )
    if not suspicious(signals, known):
        return None
    if page.version:
        known = await _with_last_good(known, page, tools)
    return judge(signals, known)


async def _with_last_good(known: Known, page: PageView, tools: Tools) -> Known:
    """The page's last good look, read again from its stored body: for the few pages that give cause to doubt."""
    stored = await tools.db(contents.records_of, page.id, page.version)
    rows = tuple(RecordRow(table, key, data) for (table, key), data in stored.items())
    known = replace(known, own_values=len(_values(rows)))
    if not page.has_body or page.raw_hash is None:
        return known
    last = await tools.db(contents.last_look, page.id, page.raw_hash)
    if last is None:
        return known
    own = signals_in(Page(page.url, last.final_url or page.url, last.body, last.content_type, last.fetched_at))
    return replace(
        known,
        own=replace(own, structure=page.structure_hash) if own else None,
        at_home=last.final_url in (page.fetch_url, page.url),
    )


def _values(rows: tuple[RecordRow, ...]) -> list[Json]:
    """The values that records hold, but for addresses, which say nothing of what was read."""
    return [value for row in rows for name, value in row.data.items() if name != "url" and value not in (None, "", [])]


async def mass_move(page: PageView, look: Look, target: str, tools: Tools) -> Quarantined | None:
    """The outcome where this page is one of many that were moved to the same address. Those before it, which were
    believed, are looked at again at once."""
    await tools.experience.load(tools)
    others = tools.experience.redirected(target, page.id)
    if len(others) < MANY:
        return None
    tools.experience.look_again(others)
    reason = f"moved to {target}, as {len(others)} other pages or more were"
    return Quarantined(look=look, reason=reason, name="mass redirect")

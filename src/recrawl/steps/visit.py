"""One page's whole path, from its task to an outcome: fetch, judge bytes, read, judge content.

refused? -> fetch -> what does the answer mean? -> same bytes? -> extract, clean -> same content? -> outcome
"""

from __future__ import annotations

from hashlib import sha256

from recrawl.clean.fingerprint import content_hash, settle_moments
from recrawl.decide.answers import AskAgain, Content, NotModified, Redirected, look_of, meaning
from recrawl.decide.urls import host_of, site_of
from recrawl.declare.specs import Kind
from recrawl.model.fetched import Answer, Page, Request, Validators
from recrawl.model.outcome import (
    Body,
    Broken,
    By,
    Changed,
    Invalid,
    Look,
    Moved,
    Outcome,
    Quarantined,
    Unchanged,
)
from recrawl.model.record import RecordRow
from recrawl.model.sighting import Sighting
from recrawl.model.work import NO_HOST, PageState, PageView, Task
from recrawl.steps import parsers
from recrawl.steps.control import Control
from recrawl.steps.courtesy import Courtesy, TooFar
from recrawl.steps.experience import looks_into, sends_validators
from recrawl.steps.identify import identify
from recrawl.steps.inline import told_of
from recrawl.steps.judgement import doubt, mass_move
from recrawl.steps.read import Reading
from recrawl.steps.tools import Tools
from recrawl.store import contents, recordtables


async def visit(task: Task, tools: Tools, control: Control) -> Outcome:
    """Look at the page of a task. Never raises for anything that a server, a network or a page does."""
    page = task.page
    assert page is not None
    if (stored := await _in_hand(task, page, tools)) is not None:
        look = Look(
            at=stored.fetched_at, url=page.fetch_url, final_url=stored.final_url, content_type=stored.content_type
        )
        raw_hash = task.body_hash or sha256(stored.body).hexdigest()
        return await _judge_content(page, look, stored.body, raw_hash, tools, in_hand=task.body_hash is not None)
    await tools.experience.load(tools)
    host = host_of(page.fetch_url) if task.host == NO_HOST else task.host
    try:
        outcome = await control.look(page, host, forced=task.forced)
    except TooFar as error:
        return error.as_outcome(page.fetch_url, tools.clock.now())
    _learn(task, page, outcome, tools)
    await tools.experience.keep(tools)
    return outcome


def _learn(task: Task, page: PageView, outcome: Outcome, tools: Tools) -> None:
    """What a good look at a known page says of its source."""
    if not isinstance(outcome, Changed | Unchanged) or not page.version:
        return
    moved = bool(outcome.structure_hash and page.structure_hash) and outcome.structure_hash != page.structure_hash
    tools.experience.looked(moved=moved)
    full = not outcome.look.conditional or tools.experience.validators_believed(task.host)
    if page.hint_stayed and page.status is PageState.ACTIVE and full:
        tools.experience.checked_hint(page.id, true=isinstance(outcome, Unchanged))


_MOST_REQUESTS = 6


async def look_at(page: PageView, host: str, *, forced: bool = False, tools: Tools, courtesy: Courtesy) -> Outcome:
    """Ask for the page, once more where the answer makes that necessary: without validators, or where it stands now.

    A share of answers that say "not modified" is looked into at once, for ever, by a request without validators.
    Raises TooFar.
    """
    url = page.fetch_url
    trusted = page.has_body and page.status is not PageState.FAILING and not forced and _same_rules(page, tools)
    trusted = trusted and sends_validators(tools.experience, host, tools.chance.random)
    known = page.validators if trusted else Validators()
    asked_again = 0
    checked: str | None = None
    for requests in range(1, _MOST_REQUESTS + 1):
        refusal = await courtesy.refusal(url, host)
        if refusal is not None:
            return refusal
        answer = await courtesy.fetch(Request(url, known), host)
        look = look_of(answer, page.fetch_url, requests)
        found = meaning(answer, look, has_body=page.has_body, now=tools.clock.now(), max_wait=tools.max_wait)
        known = Validators()
        if isinstance(found, AskAgain) and not asked_again:
            asked_again = requests
        elif isinstance(found, NotModified) and looks_into(
            tools.experience, host, tools.source.forced_looks, tools.chance.random
        ):
            checked = host
        elif isinstance(found, Redirected) and (same := _same_page(page, found.target, tools)) is not None:
            url, host = same.fetch_url, same.host
        else:
            break
    match found:
        case AskAgain(reason):
            return Broken(look=look, kind="senseless", message=f"{reason}, twice: {page.fetch_url}")
        case NotModified():
            return Unchanged(look=look, by=By.NOT_MODIFIED, raw_hash=page.raw_hash, reader_hash=_rules(tools))
        case Redirected(target):
            if _same_page(page, target, tools) is not None:
                return Broken(look=look, kind="redirect_loop", message=f"{page.fetch_url} is moved to itself")
            return await _moved(page, look, target, tools)
        case Content():
            assert isinstance(answer, Answer)
            outcome = await _judge_bytes(page, look, answer.body, tools)
            if checked is not None and isinstance(outcome, Changed | Unchanged):
                tools.experience.checked_validators(checked, true=isinstance(outcome, Unchanged))
            return outcome
        case outcome:
            return outcome


def _rules(tools: Tools) -> str:
    return tools.source.reader_hash


def _same_rules(page: PageView, tools: Tools) -> bool:
    return page.reader_hash == _rules(tools)


def _same_page(page: PageView, target: str, tools: Tools) -> Sighting | None:
    """The new address of a page that moved only within its own identity: another scheme, a trailing slash, its id."""
    try:
        sighting = identify(tools.source, target, None)
    except ValueError:
        return None
    return sighting if sighting.page_id == page.page_id or sighting.url == page.url else None


async def _moved(page: PageView, look: Look, target: str, tools: Tools) -> Outcome:
    try:
        sighting = identify(tools.source, target, None)
    except ValueError as error:
        return Broken(look=look, kind="bad_redirect", message=f"{look.url} moved to an address of no use: {error}")
    if site_of(sighting.host) not in {site_of(host) for host in tools.source.named_hosts}:
        reason = f"moved to another site, {target}: name its host in hosts=[...] if that is right"
        return Quarantined(look=look, reason=reason, name="another site")
    if (many := await mass_move(page, look, sighting.url, tools)) is not None:
        return many
    return Moved(
        look=look, page_id=sighting.page_id, url=sighting.url, fetch_url=sighting.fetch_url, host=sighting.host
    )


async def _judge_bytes(page: PageView, look: Look, body: bytes, tools: Tools) -> Outcome:
    """Equal bytes read by equal rules need no reading."""
    raw_hash = sha256(body).hexdigest()
    known = raw_hash == page.raw_hash and page.has_body and bool(page.version)
    if known and page.status is not PageState.FAILING and _same_rules(page, tools):
        return Unchanged(look=look, by=By.RAW, raw_hash=raw_hash, reader_hash=_rules(tools))
    return await _judge_content(page, look, body, raw_hash, tools)


async def _in_hand(task: Task, page: PageView, tools: Tools) -> contents.StoredLook | None:
    """The body that a task brings along: nothing is fetched for it. None where it brings none, or it is gone."""
    if task.body_hash is not None:
        return await tools.db(contents.last_look, page.id, task.body_hash)
    if task.replay_of is not None:
        return await tools.db(contents.buried_look, task.replay_of)
    return None


async def _judge_content(
    page: PageView, look: Look, body: bytes, raw_hash: str, tools: Tools, *, in_hand: bool = False
) -> Outcome:
    """Read the body, and compare what it says with what is stored. What was fetched may be something else than the
    page; what was in hand is what it was taken for."""
    source = tools.source
    fetched = look.requests > 0
    final_url = look.final_url or page.fetch_url
    reading = await parsers.read(Page(page.url, final_url, body, look.content_type, look.at), tools)
    rows: tuple[RecordRow, ...] = ()
    content = None
    if reading.reason is None:
        await tools.db(recordtables.ensure, reading.specs)
        rows = await _with_known_moments(page, reading, tools)
        content = content_hash(rows)
    same = content is not None and content == page.content_hash and bool(page.version)
    reread = raw_hash == page.raw_hash and bool(page.version)
    away = final_url != page.fetch_url and _same_page(page, final_url, tools) is None
    if not same and fetched:
        finding = await doubt(page, look, reading, tools, away=away)
        if finding is not None:
            signs = tuple((sign.name, sign.weight, sign.told) for sign in finding.signs)
            return Quarantined(look=look, reason=finding.reason, name=finding.name, signs=signs, raw=body)
    if content is None:
        return Invalid(
            look=look,
            stage=reading.stage,
            reason=reading.reason or "",
            errors=reading.errors,
            raw=body,
            raw_hash=raw_hash,
        )
    if fetched:
        tools.experience.good(page.id, reading.signals, away=away)
    kept = None if in_hand else Body(raw_hash, "plain", len(body), body)
    told = told_of(page.url, body, source)
    if same:
        return Unchanged(
            look=look,
            by=By.CONTENT,
            raw_hash=raw_hash,
            reader_hash=source.reader_hash,
            structure_hash=reading.structure_hash,
            body=kept,
            rows=rows,
            reread=in_hand and reread,
        )
    return Changed(
        look=look,
        raw_hash=raw_hash,
        content_hash=content,
        structure_hash=reading.structure_hash,
        reader_hash=source.reader_hash,
        rows=rows,
        body=kept,
        page_id=reading.page_id,
        canonical=reading.canonical,
        source_version=reading.source_version or told.version,
        source_updated_at=reading.source_updated_at or told.updated,
        reread=reread,
    )


async def _with_known_moments(page: PageView, reading: Reading, tools: Tools) -> tuple[RecordRow, ...]:
    """Relative times ("an hour ago") that agree with what is stored stay as they are stored."""
    relative = {spec.table: spec for spec in reading.specs if any(f.kind is Kind.MOMENT for f in spec.fields)}
    if not page.version or not relative:
        return reading.rows
    stored = await tools.db(contents.records_of, page.id, page.version)
    return tuple(
        settle_moments(row, stored.get((row.table, row.key)), relative[row.table]) if row.table in relative else row
        for row in reading.rows
    )

"""Fetching one document of a stream and taking in what it lists."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256

from recrawl.decide.answers import look_of, meaning
from recrawl.decide.schedule import next_look
from recrawl.decide.urls import canonical_url, host_of, origin, site_of
from recrawl.declare import Finder
from recrawl.discover.walk import Listed, Listing, read_document
from recrawl.model.fetched import Answer, Failure, Request, Validators
from recrawl.model.outcome import Broken, Gone, Outcome, Quarantined, Refused, Rejected, Throttled
from recrawl.model.record import Json
from recrawl.model.sighting import Batch, Seen, Sighting
from recrawl.model.work import Task
from recrawl.steps.courtesy import Courtesy, TooFar
from recrawl.steps.identify import identify
from recrawl.steps.tools import Tools
from recrawl.store import cursor, documents
from recrawl.store.see import see

LEASE = timedelta(seconds=60)
FEEDS = {"rss", "atom", "json", "rdf"}
"""Documents that show what is newest, and are never all that there is."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A document that could not be read, and whether asking again may help."""

    url: str
    kind: str
    message: str
    again: bool
    raw: bytes = b""
    wait: Throttled | None = None


@dataclass(slots=True)
class Stream:
    """One stream being walked: its lease, its `seen` point, and what was met on the way."""

    task: Task
    finder: Finder
    tools: Tools
    courtesy: Courtesy
    seen: Json
    told: Callable[[Counter[str]], None]
    counts: Counter[str] = field(default_factory=Counter)
    troubles: list[Trouble] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    known: int = 0  # pages that were met on the way and that the store knew
    whole: bool = True  # its end means that everything was seen, as far as the finder can tell

    @property
    def name(self) -> str:
        assert self.task.stream is not None
        return self.task.stream

    @property
    def cycle(self) -> int:
        assert self.task.cycle is not None
        return self.task.cycle

    def count(self, **counts: int) -> None:
        self.counts.update(counts)
        self.told(Counter(counts))


async def open_stream(
    task: Task, finder: Finder, tools: Tools, courtesy: Courtesy, told: Callable[[Counter[str]], None]
) -> Stream:
    assert task.stream is not None
    known = await tools.db(cursor.cursor, task.source, task.stream)
    return Stream(task, finder, tools, courtesy, known.seen, told)


async def visit_document(stream: Stream, url: str, *, feed: bool = False) -> list[str]:
    """Read the document at `url` unless it is unchanged; the documents that it lists.

    What is wrong with it is noted in the stream's troubles: one bad document never stops the rest.
    """
    tools, task = stream.tools, stream.task
    known = await tools.db(documents.document, task.source, stream.name, url)
    if known.cycle == stream.cycle:
        if not known.complete:
            stream.troubles.append(Trouble(url, "incomplete", f"{url} could not be read to its end", again=False))
        return await _unchanged(stream, known)
    trusted = known.complete and known.spec == tools.source.spec_hash and not tools.full
    answer = await fetch_document(stream, url, known.validators if trusted else Validators())
    if isinstance(answer, Trouble):
        stream.troubles.append(answer)
        return []
    hashed = sha256(answer.body).hexdigest()
    if answer.status == 304 or (trusted and hashed == known.hash):
        sent = answer.validators or known.validators
        await tools.db(documents.still_the_same, task.id, task.token, known, cycle=stream.cycle, validators=sent)
        return await _unchanged(stream, known)
    listing = read_document(answer.body, url, answer.content_type, zone=tools.source.zone, feed=feed)
    return await _take_in(stream, known, listing, answer, hashed)


async def _unchanged(stream: Stream, known: documents.Document) -> list[str]:
    """What an unchanged document lists is seen, at no cost."""
    stream.kinds.add(known.kind or "")
    found = await stream.tools.db(documents.members_of, stream.task.source, known)
    stream.count(found=found.listed, unchanged_hint=found.spared)
    stream.known += found.listed
    return await stream.tools.db(documents.children, known.id, known.reading)


async def _take_in(
    stream: Stream, known: documents.Document, listing: Listing, answer: Answer, hashed: str
) -> list[str]:
    tools, task = stream.tools, stream.task
    if listing.kind == "invalid":
        list(listing.batches)
        problem = listing.problems[0] if listing.problems else "no sitemap and no feed"
        stream.troubles.append(
            Trouble(known.url, "no_document", f"{known.url} cannot be read: {problem}", again=False, raw=answer.body)
        )
        return []
    reading = await tools.db(documents.begin_reading, task.id, task.token, known)
    done, hints = 0, False
    writing: asyncio.Task[Seen] | None = None
    for batch in listing.batches:
        # The next batch is read while the last one is written; written they are one after the other.
        found = sightings(stream, batch)
        if writing is not None:
            await writing
        done += len(batch)
        hints = hints or any(sighting.hint for sighting in found)
        point: Json = {"cycle": stream.cycle, "document": known.url, "entries": done}
        writing = asyncio.create_task(sight(stream, known.id, reading, found, point))
        await asyncio.sleep(0)
    if writing is not None:
        await writing
    children = list(dict.fromkeys(_absolute(listing.children)))
    if children:
        await tools.db(documents.adopt, task.id, task.token, task.source, stream.name, known.id, reading, children)
    # Far more often a fault than the truth: it is believed when the next cycle finds the same.
    emptied = listing.complete and not done and not children and await tools.db(documents.is_emptied, known)
    await tools.db(
        documents.end_reading,
        task.id,
        task.token,
        known,
        cycle=stream.cycle,
        kind=documents.EMPTIED if emptied else listing.kind,
        body_hash=hashed,
        validators=answer.validators,
        spec=tools.source.spec_hash,
        complete=listing.complete and not emptied,
        leads_to=[listing.next] if listing.next else [],
        hints=hints,
        due_of=partial(_due, tools) if listing.kind in FEEDS else None,
    )
    stream.kinds.add(listing.kind)
    if emptied:
        message = f"{known.url} lists nothing, and did before: believed when the next sync finds the same"
        stream.troubles.append(Trouble(known.url, "emptied", message, again=False))
    if not listing.complete:
        problem = listing.problems[0] if listing.problems else "it is cut short"
        stream.troubles.append(
            Trouble(known.url, "incomplete", f"{known.url} was read in part only: {problem}", again=False)
        )
    return children


def _due(tools: Tools, rate: float | None) -> datetime:
    """When a page is looked at that no finder speaks of any more."""
    shortest, longest = tools.rules.shortest, tools.rules.longest
    draw = tools.chance.random()
    return next_look(tools.clock.now(), rate=rate, shortest=shortest, longest=longest, hinted=False, draw=draw)


def _absolute(urls: Iterable[str]) -> Iterator[str]:
    for url in urls:
        try:
            canonical_url(url)
        except ValueError:
            continue
        yield url


def sightings(stream: Stream, listed: Iterable[Listed]) -> list[Sighting]:
    """The pages among what a document lists: wanted, on the source's own site; of one page the newest hint."""
    source, finder = stream.tools.source, stream.finder
    own = {site_of(host) for host in source.named_hosts}
    found: dict[str, Sighting] = {}
    for entry in listed:
        try:
            sighting = identify(source, entry.url, entry.hint)
        except ValueError:
            stream.count(bad_urls=1)
            continue
        if site_of(sighting.host) not in own:
            stream.count(off_site=1)
        elif finder.wants(sighting.url):
            other = found.get(sighting.page_id)
            if other is None or (sighting.hint or "") > (other.hint or ""):
                found[sighting.page_id] = sighting
    return list(found.values())


async def sight(stream: Stream, document: int | None, reading: int, found: list[Sighting], point: Json) -> Seen:
    """One batch through `see`."""
    tools, task = stream.tools, stream.task
    now = tools.clock.now()
    batch = Batch(task.source, stream.name, stream.cycle, document, reading, tuple(found), stream.seen, point)
    share = tools.source.forced_looks
    seen = await tools.db(
        see,
        batch,
        task=task.id,
        token=task.token,
        now=now,
        until=now + LEASE,
        forced=lambda: share > 0 and tools.chance.random() < share,
        expires_at=now + tools.task_life,
    )
    stream.seen = point
    stream.known += len(seen.pages) - seen.new
    stream.count(found=seen.new + seen.hinted + seen.forced + seen.same + seen.unhinted, unchanged_hint=seen.same)
    return seen


async def fetch_document(stream: Stream, url: str, validators: Validators) -> Answer | Trouble:
    """Fetch a document, or tell why there is none."""
    answer = await ask(stream, Request(url, validators))
    if isinstance(answer, Answer) and (answer.status == 200 or (answer.status == 304 and answer.conditional)):
        return answer
    return answer if isinstance(answer, Trouble) else failed(stream, url, answer)


async def ask(stream: Stream, request: Request) -> Answer | Failure | Trouble:
    """What comes back for a request of discovery, whatever its status; a trouble where it could not be made."""
    try:
        return await _follow(stream, request)
    except TooFar as error:
        wait = error.as_outcome(request.url, stream.tools.clock.now())
        return Trouble(request.url, "throttled", f"{request.url}: {error}", again=True, wait=wait)


async def _follow(stream: Stream, request: Request) -> Answer | Failure | Trouble:
    """Ask for a document. A moved one is followed: where it stands is its own business."""
    url = request.url
    for _ in range(6):
        try:
            host = host_of(canonical_url(request.url))
        except ValueError as error:
            return Trouble(url, "bad_redirect", f"{url} leads to an address of no use: {error}", again=False)
        refusal = await stream.courtesy.refusal(request.url, host)
        if refusal is not None:
            return trouble_of(url, refusal)
        answer = await stream.courtesy.fetch(request, host)
        stream.count(requests=1)
        if isinstance(answer, Failure) or answer.location is None:
            return answer
        if request.method != "GET":
            return Trouble(url, "moved", f"{url} is moved to {answer.location}: declare that address", again=False)
        kept = request.headers if origin(answer.location) == origin(request.url) else ()
        request = Request(answer.location, headers=kept)
    return Trouble(url, "too_many_redirects", f"{url} is moved on and on", again=False)


def failed(stream: Stream, url: str, answer: Answer | Failure) -> Trouble:
    """The trouble that an answer without a document is."""
    look = look_of(answer, url, 1)
    tools = stream.tools
    found = meaning(answer, look, has_body=False, now=tools.clock.now(), max_wait=tools.max_wait)
    if isinstance(found, (Broken, Gone, Quarantined, Refused, Rejected, Throttled)):
        return trouble_of(url, found)
    return Trouble(url, "senseless", f"the server answers {look.status} for {url}", again=True)


def trouble_of(url: str, outcome: Outcome) -> Trouble:
    match outcome:
        case Throttled():
            return Trouble(url, "throttled", f"the host of {url} asks to wait", again=True, wait=outcome)
        case Broken(kind=kind, message=message):
            return Trouble(url, kind, message, again=True)
        case Rejected(kind=kind, message=message):
            return Trouble(url, kind, message, again=False)
        case Refused(reason=reason):
            return Trouble(url, "refused", reason, again=False)
        case Gone(look=look):
            return Trouble(url, f"http_{look.status}", f"the server answers {look.status} for {url}", again=False)
        case _:
            return Trouble(url, "unusable", f"{url} has no usable answer", again=False)

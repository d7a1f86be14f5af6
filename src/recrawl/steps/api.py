"""Walking an API: answer after answer, each one batch of sightings with the point at which it stands.

ask -> items and the way on -> which of them count? -> see -> the next answer, another turn, or the end
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from recrawl.decide.cursor import Id, Pass, Reach, Time, asked, begun, further, is_future, resumed, settled, stored_pass
from recrawl.decide.paging import (
    MOST_RESTARTS,
    End,
    Place,
    Stop,
    after,
    first,
    has_moved,
    parameters,
    refused,
)
from recrawl.decide.urls import BadUrl, host_of, site_of, wire_url
from recrawl.declare import Api, NextLink, NextToken
from recrawl.declare.policies import seconds
from recrawl.discover.api import Answered, Item, Unusable, dumped, mark_of, read_answer, request_for
from recrawl.discover.walk import BATCH, Listed
from recrawl.model.fetched import Answer, Failure, Request, Validators
from recrawl.model.record import Json
from recrawl.model.sighting import Sighting
from recrawl.steps.documents import Stream, Trouble, ask, failed, sight, sightings
from recrawl.steps.inline import taken
from recrawl.steps.tools import Tools
from recrawl.store import cursor, documents, notes

_LARGE = 64 * 1024  # bytes; reading more would hold the event loop too long
_MOST_MET = 200_000  # items that are remembered to tell whether a list moves: some 15 MB


@dataclass(slots=True)
class _Walk:
    """A stream of an API being walked. `trail` knows the answers of this turn, so that a pager that goes in a circle is
    found out, and `met` the items, so that a list that moves is; `gaps` says that it still shrank in its last turn."""

    stream: Stream
    api: Api
    document: documents.Document | None
    trail: set[str] = field(default_factory=set)
    met: set[int] = field(default_factory=set)
    noted: Counter[str] = field(default_factory=Counter)
    gaps: bool = False

    def trouble(self, kind: str, reason: str, place: Place, *, again: bool, raw: bytes = b"") -> None:
        """Something stands in the way at this place."""
        where = "" if place.at is None else f" (answer {place.answers + 1}, at {place.at})"
        self.add(Trouble(self.api.url, kind, f"{self.api.url}{where} {reason}", again=again, raw=raw))

    def add(self, trouble: Trouble) -> None:
        """A trouble is told and stored, so no secret may be in it."""
        keys = self.stream.tools.keys
        told = replace(trouble, url=keys.conceal(trouble.url), message=keys.conceal(trouble.message))
        self.stream.troubles.append(replace(told, raw=keys.conceal_bytes(told.raw)))

    def turn(self) -> None:
        """Begin the list anew."""
        self.trail.clear()
        self.met.clear()

    async def note(self, what: str, told: str) -> None:
        """An event of this stream; of each kind the first of a walk."""
        self.noted[what] += 1
        if self.noted[what] == 1:
            tools, task = self.stream.tools, self.stream.task
            data: dict[str, Json] = {"stream": self.stream.name, "what": what, "told": tools.keys.conceal(told)}
            await tools.db(notes.note, task.source, "paging", data, tools.clock.now())


async def is_due(tools: Tools, stream: str) -> bool:
    """Whether the stream that reads everything is to be walked: it never was, not for `full_scan`, or now is asked."""
    last = await tools.db(cursor.ended_at, tools.source.name, stream)
    return tools.full or last is None or tools.clock.now() - last >= timedelta(seconds=seconds(tools.source.full_scan))


async def walk_api(stream: Stream, api: Api) -> None:
    """Read one stream of an API to its end. What stands in the way is noted in the stream's troubles."""
    tools, task = stream.tools, stream.task
    exhaustive = api.streams[stream.name]
    document = await tools.db(documents.document, task.source, stream.name, api.url) if exhaustive else None
    walk = _Walk(stream, api, document)
    passing = await _begin(walk)
    while passing is not None and passing.place is not None:
        passing = await _step(walk, passing, passing.place)
    if passing is not None and document is not None:
        await tools.db(
            documents.end_reading,
            task.id,
            task.token,
            document,
            cycle=stream.cycle,
            kind="api",
            body_hash="",
            validators=Validators(),
            spec=tools.source.spec_hash,
            complete=not walk.gaps,
        )


async def _begin(walk: _Walk) -> Pass | None:
    """The pass to go on with, or a new one; None where this stream has nothing to do yet."""
    stream, api = walk.stream, walk.api
    tools, task = stream.tools, stream.task
    known = stored_pass(stream.seen)
    going = resumed(known, stream.cycle, tools.source.spec_hash)
    if going is not None:
        return going
    since = None
    if api.since is not None and stream.name != api.whole:
        since = settled(known)
        if since is None and api.whole in api.streams:
            # The first time everything is read by the other stream, and once is enough.
            whole = stored_pass((await tools.db(cursor.cursor, task.source, api.whole)).seen)
            if whole is None or not whole.ended:
                return None
            since = whole.reach
    reading = await tools.db(documents.begin_reading, task.id, task.token, walk.document) if walk.document else 0
    kind: type[Reach] | None = (Time if api.updated else Id) if api.since else None
    now = tools.clock.now()
    return begun(first(api.pages), stream.cycle, tools.source.spec_hash, now, since, kind, reading)


async def _step(walk: _Walk, passing: Pass, place: Place) -> Pass | None:
    """Take one answer in; the pass after it, or None where it cannot go on now."""
    api, stream = walk.api, walk.stream
    request = _request(walk, passing, place)
    answer = await ask(stream, request)
    if isinstance(answer, Trouble):
        walk.add(answer)
        return None
    if isinstance(answer, Failure) or answer.status not in (200, 204):
        way = refused(api.pages, place, answer.status) if isinstance(answer, Answer) else None
        if way is None:
            walk.add(failed(stream, request.url, answer))
            return None
        return await _onwards(walk, passing, place, way, [])
    try:
        found = await _read(walk, answer, place)
    except Unusable as error:
        if error.kind == "error" and place.at is not None and isinstance(api.pages, (NextToken, NextLink)):
            return await _onwards(walk, passing, place, Stop("token_expired", error.reason), [])
        walk.trouble(error.kind, error.reason, place, again=True, raw=answer.body)
        return None
    counted = await _counted(walk, passing, found.items, answer, place)
    if counted is None:
        return None
    items, reach = counted
    sighted = await _sighted(walk, items, answer)
    return await _onwards(walk, replace(passing, reach=reach), place, after(api.pages, place, found.told), sighted)


def _request(walk: _Walk, passing: Pass, place: Place) -> Request:
    api, keys = walk.api, walk.stream.tools.keys
    link = keys.restored(str(place.at)) if isinstance(api.pages, NextLink) and place.at is not None else None
    values: dict[str, Any] = parameters(api.pages, place)
    if api.since is not None and passing.since is not None:
        values = {api.since.param: asked(passing.since, seconds(api.since.overlap))} | values
    known = link is None or keys.may_know(link)
    revealed = {
        "params": keys.reveal(api.params or {}),
        "json": keys.reveal(api.json or {}),
        "headers": keys.reveal(api.headers or {}) if known else {},
    }
    return request_for(api, values, link, revealed)


async def _read(walk: _Walk, answer: Answer, place: Place) -> Answered:
    """What an answer holds. Raises Unusable."""
    api, zone = walk.api, walk.stream.tools.source.zone
    if len(answer.body) > _LARGE:
        found = await asyncio.to_thread(read_answer, answer, api, place, zone)
    else:
        found = read_answer(answer, api, place, zone)
    if found.no_total:
        await walk.note("no_total", "the total is no number: the end is where there are no more items")
    follows = found.told.next
    if isinstance(api.pages, NextLink) and follows is not None:
        follows = _link(walk, str(follows), answer)
    marks = {mark for mark in (found.digest, f"next {follows}" if follows is not None else "") if mark}
    repeated = bool(marks & walk.trail)
    walk.trail |= marks
    items = {hash(mark_of(item)) for item in found.items}
    twice = not walk.met.isdisjoint(items)
    if len(walk.met) < _MOST_MET:
        walk.met |= items
    return replace(found, told=replace(found.told, next=follows, repeated=repeated, twice=twice))


def _link(walk: _Walk, link: str, answer: Answer) -> str:
    """The next link, absolute, without secrets. Raises Unusable for one that leads away."""
    source = walk.stream.tools.source
    try:
        url = wire_url(link, answer.final_url)
    except BadUrl as error:
        raise Unusable("bad_link", f"names a next link of no use: {error}") from None
    if (
        walk.api.url.startswith("https:")
        and url.startswith("http:")
        and host_of(url) == host_of(wire_url(walk.api.url))
    ):
        # Behind a proxy many an API does not know that it is asked by https.
        url = f"https{url.removeprefix('http')}"
    if site_of(host_of(url)) not in {site_of(host) for host in source.named_hosts}:
        raise Unusable("off_site", f"names a next link on another site, {host_of(url)}: name its host in hosts=[...]")
    return walk.stream.tools.keys.conceal(url)


async def _counted(
    walk: _Walk, passing: Pass, items: Sequence[Item], answer: Answer, place: Place
) -> tuple[list[Item], Reach | None] | None:
    """The items that count, and how far they reach; None where one stops the stream, as declared."""
    since, now = walk.api.since, walk.stream.tools.clock.now()
    counting, reach = [], passing.reach
    for number, item in enumerate(items):
        if since is None:
            pass
        elif item.reach is None:
            at = walk.api.updated or walk.api.id
            given = dumped(item.given).decode()[:200]
            told = f"has {given} at {at!r} of item {number}, which is no {'time' if walk.api.updated else 'id'}"
            if since.missing == "raise":
                walk.trouble("no_cursor", told, place, again=False, raw=answer.body)
                return None
            await walk.note(f"{since.missing}d", told)
            if since.missing == "exclude":
                walk.stream.count(excluded=1)
                continue
        elif is_future(item.reach, now):
            await walk.note("future", f"item {number} is of {dumped(item.given).decode()[:200]}: more than a day ahead")
        else:
            reach = further(reach, item.reach, passing.began)
        counting.append(item)
    return counting, reach


async def _sighted(walk: _Walk, items: Sequence[Item], answer: Answer) -> list[Sighting]:
    """The pages among the items."""
    api, stream = walk.api, walk.stream
    lacking = "link" if api.link else "id"
    for item in items:
        if getattr(item, lacking) is None or (not api.link and not isinstance(item.value, dict)):
            await _bury(walk, item, lacking)
    if api.link is None:
        whole = [item for item in items if isinstance(item.value, dict)]
        return await taken(whole, api, answer.fetched_at, stream.tools)
    listed = []
    for item in items:
        if item.link is not None:
            try:
                listed.append(Listed(wire_url(item.link, answer.final_url), item.hint, item.id))
            except BadUrl:
                stream.count(bad_urls=1)
    return sightings(stream, listed)


async def _bury(walk: _Walk, item: Item, lacking: str) -> None:
    """An item that cannot be a page is kept where a person can read it; the others go on."""
    tools, task = walk.stream.tools, walk.stream.task
    expression = getattr(walk.api, lacking)
    reason = f"an item of {walk.api.url} has no {lacking} at {expression!r}"
    raw = tools.keys.conceal_bytes(dumped(item.value))
    now = tools.clock.now()
    await tools.db(notes.bury_document, task.source, task.key, f"no_{lacking}", reason, raw, task.observed, now)


async def _onwards(
    walk: _Walk, passing: Pass, place: Place, way: Place | End | Stop, sighted: list[Sighting]
) -> Pass | None:
    """See what was sighted, together with the point that follows."""
    match way:
        case Stop(kind="token_expired") if passing.restarts < MOST_RESTARTS:
            await walk.note(way.kind, f"{way.reason}: the list is read from its beginning again")
            walk.turn()
            return replace(passing, place=first(walk.api.pages), restarts=passing.restarts + 1)
        case Stop():
            await walk.note(way.kind, way.reason)
            walk.trouble(way.kind, way.reason, place, again=way.again)
            return None
        case End():
            then = replace(passing, place=await _next_turn(walk, passing, way))
            then = replace(then, turn=passing.turn + (then.place is not None))
        case Place():
            then = replace(passing, place=way)
    document = walk.document.id if walk.document else None
    for start in range(0, max(1, len(sighted)), BATCH):
        last = start + BATCH >= len(sighted)
        point = (then if last else replace(passing, place=place)).point()
        await sight(walk.stream, document, passing.reading, sighted[start : start + BATCH], point)
    return then


async def _next_turn(walk: _Walk, passing: Pass, end: End) -> Place | None:
    """Where a list that has come to its end is to be begun anew; None where it is done with."""
    if end.past:
        await walk.note("past_end", "the answer behind the last one is an error")
    if not has_moved(walk.api.pages, end.met, passing.turn):
        walk.gaps = end.met.shrunk
        if walk.gaps:
            await walk.note(
                "moving", f"the list shrank in each of {passing.turn} turns: something may not have been met"
            )
        return None
    await walk.note("moved", "the list moved while it was read: it is read once more")
    walk.turn()
    return first(walk.api.pages)

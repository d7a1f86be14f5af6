"""Documents that are HTML pages: listing pages, and pages whose links are followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from recrawl.decide.urls import BadUrl, canonical_url, host_of, site_of
from recrawl.discover.links import Shown
from recrawl.discover.walk import BATCH, Listed
from recrawl.errors import Permanent
from recrawl.model.fetched import Answer, Page, Validators
from recrawl.model.record import Json
from recrawl.model.sighting import Sighting
from recrawl.steps.documents import Stream, Trouble, fetch_document, sight, sightings
from recrawl.store import documents

MOST = 10_000
"""The most documents of one finder that are read in a cycle."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One document as it was read just now, and what it leads to.

    `shown` is None where it is unchanged, or where it was read before in this cycle (`resumed`). `moved` tells that it
    was other than when it was last read; `fresh` is how many of its pages were not met before on this walk, `new` how
    many the store did not know.
    """

    url: str
    leads_to: tuple[str, ...]
    shown: Shown | None = None
    final_url: str = ""
    moved: bool = False
    resumed: bool = False
    fresh: int = 0
    new: int = 0


@dataclass(slots=True)
class LinkWalk:
    """A walk over the documents of one stream. `met` are the pages met so far, `before` those that the documents listed
    when the walk came to them: what is in `before` alone was not met again."""

    stream: Stream
    read: Callable[[Page], Shown]
    kind: str
    drops_empty: bool = False  # a document without any link is none, and leaves what was read before as it is
    met: set[int] = field(default_factory=set)
    before: set[int] = field(default_factory=set)
    sighted: set[int] = field(default_factory=set)  # hashes of page ids, so that a page is sighted once
    digests: dict[str, str | None] = field(default_factory=dict)  # of each document as it was last read

    async def turn_to(self, url: str, *, again: bool = False) -> Turn | Trouble:
        """Read a document, unless it is unchanged, or was read in this cycle and is not to be read `again`.

        What a document listed earlier in the same cycle stays listed: a page that slips from one to another while they
        are read was there all the time.
        """
        stream = self.stream
        tools, task = stream.tools, stream.task
        known = await tools.db(documents.document, task.source, stream.name, url)
        here = known.cycle == stream.cycle
        if here and not again:
            self.digests[url] = known.hash
            return await self._unchanged(url, known, resumed=True)
        trusted = known.complete and known.hash is not None and known.spec == tools.source.spec_hash and not tools.full
        answer = await fetch_document(stream, url, known.validators if trusted else Validators())
        if isinstance(answer, Trouble):
            return answer
        shown = None if answer.status == 304 else self._shown(url, answer)
        if isinstance(shown, Trouble):
            return shown
        if shown is not None and not shown.pages and not shown.documents and self.drops_empty:
            return Turn(url, (), shown, answer.final_url, moved=True)
        if again and shown is not None and shown.digest == self.digests.get(url):
            return Turn(url, known.leads_to)
        self.digests[url] = known.hash if shown is None else shown.digest
        if shown is None or (trusted and shown.digest == known.hash):
            sent = answer.validators or known.validators
            await tools.db(documents.still_the_same, task.id, task.token, known, cycle=stream.cycle, validators=sent)
            return await self._unchanged(url, known, counted=not here)
        return await self._take_in(known, shown, answer, again=here)

    def _shown(self, url: str, answer: Answer) -> Shown | Trouble:
        page = Page(canonical_url(url), answer.final_url, answer.body, answer.content_type, answer.fetched_at)
        try:
            return self.read(page)
        except Permanent as error:
            return Trouble(url, "no_document", f"{url} cannot be read: {error.problem}", again=False, raw=answer.body)

    async def _unchanged(
        self, url: str, known: documents.Document, *, resumed: bool = False, counted: bool = True
    ) -> Turn:
        listed = await self.stream.tools.db(documents.pages_of, known)
        if counted:
            self.stream.count(found=len(listed))
        fresh = self._meet(listed)
        return Turn(url, known.leads_to, resumed=resumed, fresh=fresh)

    async def _take_in(self, known: documents.Document, shown: Shown, answer: Answer, *, again: bool) -> Turn:
        stream = self.stream
        tools, task = stream.tools, stream.task
        if again:
            reading = known.reading
        else:
            self.before.update(await tools.db(documents.pages_of, known))
            reading = await tools.db(documents.begin_reading, task.id, task.token, known)
        fresh = new = 0
        found = self._not_sighted(sightings(stream, [Listed(url, None) for url in shown.pages]), again=again)
        for start in range(0, len(found), BATCH):
            part = found[start : start + BATCH]
            point: Json = {"cycle": stream.cycle, "document": known.url, "entries": start + len(part)}
            seen = await sight(stream, known.id, reading, part, point)
            fresh += self._meet(seen.pages)
            new += seen.new
        leads_to = tuple(self._own(shown.documents))
        await tools.db(
            documents.end_reading,
            task.id,
            task.token,
            known,
            cycle=stream.cycle,
            kind=self.kind,
            # Of what changed while it was read, all that it listed is kept, and nothing would tell when that is over.
            body_hash=None if again else shown.digest,
            validators=answer.validators,
            spec=tools.source.spec_hash,
            complete=True,
            leads_to=leads_to,
        )
        return Turn(known.url, leads_to, shown, answer.final_url, moved=True, fresh=fresh, new=new)

    def _meet(self, pages: Iterable[int]) -> int:
        """Note pages as met; how many of them were not before."""
        count = len(self.met)
        self.met.update(pages)
        return len(self.met) - count

    def _not_sighted(self, found: list[Sighting], *, again: bool) -> list[Sighting]:
        """What is to be enrolled: all that a document lists, and of one that is read again what was nowhere yet."""
        rest = [one for one in found if not again or hash(one.page_id) not in self.sighted]
        self.sighted.update(hash(one.page_id) for one in found)
        return rest

    def _own(self, urls: Iterable[str]) -> Iterable[str]:
        """Those of the addresses that stand on the source's own site."""
        own = {site_of(host) for host in self.stream.tools.source.named_hosts}
        for url in urls:
            try:
                inside = site_of(host_of(canonical_url(url))) in own
            except BadUrl:
                continue
            if inside:
                yield url
            else:
                self.stream.count(off_site=1)

"""Discovery: each kind of finder walks its documents and tells what it saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime

from recrawl.decide.lifecycle import TaskEvent, task_after
from recrawl.decide.retry import backoff
from recrawl.decide.urls import canonical_url, host_of, origin
from recrawl.declare import Api, Auto, Derived, Feed, Finder, Links, Listing, Sitemap, Urls
from recrawl.extract.document import Document
from recrawl.extract.page import feeds_of
from recrawl.fetch.robots import robots_sitemaps
from recrawl.model.fetched import Answer, Page, Request
from recrawl.model.outcome import Throttled
from recrawl.model.settlement import TaskEnd
from recrawl.model.work import Stage, Task, TaskState
from recrawl.steps.api import is_due, walk_api
from recrawl.steps.courtesy import Courtesy, TooFar
from recrawl.steps.derived import walk_rows
from recrawl.steps.documents import FEEDS, Stream, Trouble, open_stream, trouble_of, visit_document
from recrawl.steps.feed import walk_feed
from recrawl.steps.links import walk_links
from recrawl.steps.listing import walk_listing
from recrawl.steps.lists import take_list
from recrawl.steps.tools import Tools
from recrawl.store import cursor, cycle, hosts, leases, notes

_MOST_DOCUMENTS = 100_000


async def streams_of(tools: Tools) -> list[cycle.Stream]:
    """The streams of a source that this cycle walks: of each finder its own, and what is due of the others."""
    return [
        cycle.Stream(name, host_of(canonical_url(finder.addresses[0])), exhaustive)
        for finder in tools.source.finders
        for name, exhaustive in finder.streams.items()
        if name == finder.stream or await is_due(tools, name)
    ]


async def discover(task: Task, tools: Tools, courtesy: Courtesy, told: Callable[[Counter[str]], None]) -> list[Trouble]:
    """Walk one stream to its end, and end its task; what went wrong on the way.

    Documents that were read in this cycle are not read again, so a task that is tried again goes on where it stopped.
    """
    finder = next((finder for finder in tools.source.finders if task.stream in finder.streams), None)
    if finder is None:
        await tools.db(leases.end_task, task.id, task.token, _done(), tools.clock.now())
        return []
    stream = await open_stream(task, finder, tools, courtesy, told)
    try:
        await _walk(stream, finder)
    except TooFar as error:
        wait = error.as_outcome(finder.addresses[0], tools.clock.now())
        stream.troubles.append(Trouble(finder.addresses[0], "throttled", str(error), again=True, wait=wait))
    await _end(stream)
    return stream.troubles


async def _walk(stream: Stream, finder: Finder) -> None:
    match finder:
        case Sitemap(url=url):
            await _walk_from(stream, [url])
        case Feed(url=url):
            await walk_feed(stream, url)
        case Urls(urls=urls):
            # A list in a declaration is a document too: what is taken out of it is no longer listed.
            await take_list(stream, f"declared:{stream.name}", "urls", list(urls))
        case Api():
            await walk_api(stream, finder)
        case Auto(url=url):
            await _find_by_itself(stream, url)
        case Listing():
            await walk_listing(stream, finder)
        case Derived():
            await walk_rows(stream, finder)
        case Links():
            stream.whole = await walk_links(stream, finder)
        case _:
            raise NotImplementedError(type(finder).__name__)


async def _walk_from(stream: Stream, roots: list[str]) -> None:
    """Read documents, and the documents that they list, each once: indexes may be nested, and may list themselves."""
    queue = list(roots)
    met = {canonical_url(url) for url in roots}
    while queue and len(met) < _MOST_DOCUMENTS:
        for child in await visit_document(stream, queue.pop(0)):
            name = canonical_url(child)
            if name not in met:
                met.add(name)
                queue.append(child)


async def _find_by_itself(stream: Stream, url: str) -> None:
    """A bare address: the sitemaps that robots.txt names, else the usual place, else what the address itself is."""
    host = host_of(canonical_url(url))
    robots = await stream.courtesy.robots_text(url, host)
    if not isinstance(robots, str):
        stream.troubles.append(trouble_of(f"{origin(url)}/robots.txt", robots))
        return
    named = robots_sitemaps(robots, origin(url))
    await _walk_from(stream, named or [f"{origin(url)}/sitemap.xml"])
    if not named and stream.troubles and not any(trouble.again for trouble in stream.troubles):
        # Nobody promised a sitemap at the usual place.
        stream.troubles.clear()
    await _feeds_of(stream, url, host)
    if not stream.counts["found"] and not stream.troubles:
        stream.troubles.append(
            Trouble(
                url,
                "nothing_found",
                f"no sitemap and no feed was found for {url}: name one in a declaration (`recrawl init`)",
                again=False,
            )
        )


async def _feeds_of(stream: Stream, url: str, host: str) -> None:
    """The feeds that a page names in its head, or the page itself where it is a feed or a sitemap."""
    refusal = await stream.courtesy.refusal(url, host)
    if refusal is not None:
        return
    answer = await stream.courtesy.fetch(Request(url), host)
    stream.count(requests=1)
    if not isinstance(answer, Answer) or answer.status != 200:
        return
    page = Page(canonical_url(url), answer.final_url, answer.body, answer.content_type, answer.fetched_at)
    for feed in feeds_of(Document(page)):
        await visit_document(stream, feed, feed=True)
    kind = (answer.content_type or "").lower()
    if "xml" in kind and "xhtml" not in kind:
        await _walk_from(stream, [url])


def _done() -> TaskEnd:
    return TaskEnd(state=task_after(TaskState.RUNNING, TaskEvent.FINISH), stage=Stage.SETTLE)


async def _end(stream: Stream) -> None:
    """End the task of a stream: done, to be tried again, or dead with what could not be read."""
    tools, task = stream.tools, stream.task
    now = tools.clock.now()
    again = [trouble for trouble in stream.troubles if trouble.again]
    if not stream.troubles:
        feeds = stream.kinds & FEEDS
        exhaustive = stream.finder.streams[stream.name] and stream.whole and not feeds
        await tools.db(
            cursor.end_stream,
            task.source,
            stream.name,
            cycle=stream.cycle,
            exhaustive=exhaustive,
            task=task.id,
            token=task.token,
        )
        await tools.db(notes.resolve_documents, task.source, stream.name, now)
        await tools.db(leases.end_task, task.id, task.token, _done(), now)
        return
    wait = max((trouble.wait for trouble in again if trouble.wait), key=lambda wait: wait.until, default=None)
    hopeless = all(trouble.kind == "unknown_host" for trouble in again)
    if wait is not None or (again and not hopeless and task.attempt < tools.source.max_attempts):
        await _postpone(stream, again[0], wait, now)
        return
    for trouble in stream.troubles:
        await tools.db(
            notes.bury_document, task.source, task.key, trouble.kind, trouble.message, trouble.raw, task.observed, now
        )
    first = stream.troubles[0]
    end = TaskEnd(
        state=task_after(TaskState.RUNNING, TaskEvent.KILL),
        stage=Stage.FETCH,
        error_class=first.kind,
        error=first.message,
    )
    await tools.db(leases.end_task, task.id, task.token, end, now)


async def _postpone(stream: Stream, trouble: Trouble, wait: Throttled | None, now: datetime) -> None:
    tools, task = stream.tools, stream.task
    if wait is not None and wait.host_wide:
        await tools.db(hosts.hold, task.host, wait.until)
    end = TaskEnd(
        state=task_after(TaskState.RUNNING, TaskEvent.POSTPONE),
        stage=Stage.FETCH,
        due_at=wait.until if wait else now + backoff(task.attempt, tools.chance.random()),
        error_class=trouble.kind,
        error=trouble.message,
        refund=wait is not None,
    )
    await tools.db(leases.end_task, task.id, task.token, end, now)

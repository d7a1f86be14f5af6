"""Reading a feed, and its pages with older entries as far as something unseen may stand there."""

from __future__ import annotations

from recrawl.decide.urls import BadUrl, canonical_url, host_of, site_of
from recrawl.steps.documents import Stream, visit_document
from recrawl.store import documents

_MOST_PAGES = 50


async def walk_feed(stream: Stream, url: str) -> None:
    """Read a feed. The page that comes after one is read too (RFC 5005 section 3) where all that the one lists was
    new, or where that page was never read to its end; 50 pages at most, on the source's own site."""
    met: set[str] = set()
    following: str | None = url
    while following is not None and len(met) < _MOST_PAGES:
        met.add(canonical_url(following))
        before = stream.known
        await visit_document(stream, following, feed=True)
        following = await _next(stream, following, only_news=stream.known == before)
        if following is not None and canonical_url(following) in met:
            return


async def _next(stream: Stream, url: str, *, only_news: bool) -> str | None:
    tools, task = stream.tools, stream.task
    if stream.troubles:
        return None
    page = await tools.db(documents.document, task.source, stream.name, url)
    following = next(iter(page.leads_to), None)
    if following is None or not _is_own(stream, following):
        return None
    known = await tools.db(documents.document, task.source, stream.name, following)
    return following if only_news or known.hash is None else None


def _is_own(stream: Stream, url: str) -> bool:
    try:
        return site_of(host_of(canonical_url(url))) in {site_of(host) for host in stream.tools.source.named_hosts}
    except BadUrl:
        return False

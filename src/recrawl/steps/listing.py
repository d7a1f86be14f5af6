"""Walking a listing: page after page to its end, and again where it may have moved meanwhile.

While a listing is read, items are added to it and taken out of it. What is added at the top pushes others down, onto
pages that are still to be read: they are seen twice. What is taken out lets others slip up, onto pages that were read
already: nobody sees them. So a listing that may have moved is read again from its end to its beginning, where slipping
up means being seen twice, and so on in turn until it stands still, or a pass has found nothing that the others missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from recrawl.decide.urls import canonical_url
from recrawl.declare import Listing
from recrawl.discover.links import read_listing
from recrawl.steps.documents import Stream, Trouble
from recrawl.steps.linked import MOST, LinkWalk, Turn

MOST_PASSES = 5
_ENOUGH_PASSES = 3
_MOST_BARREN = 5
"""So many pages on end without a link that was not seen before are a pager that leads nowhere."""
_GONE = ("http_404", "http_410")


@dataclass(slots=True)
class _Pager:
    """The pages of a listing, first to last, as they were found; `links` are hashes of all that they list."""

    walk: LinkWalk
    finder: Listing
    stream: Stream
    pages: list[Turn] = field(default_factory=list)
    addresses: set[str] = field(default_factory=set)
    links: set[int] = field(default_factory=set)
    barren: int = 0

    def trouble(self, url: str, kind: str, message: str) -> bool:
        self.stream.troubles.append(Trouble(url, kind, message, again=False))
        return False

    def is_news(self, turn: Turn) -> bool:
        """Whether a page lists anything that no page before it did; of an unchanged page it is taken for granted."""
        if turn.shown is None:
            return True
        count = len(self.links)
        self.links.update(map(hash, turn.shown.pages))
        return len(self.links) > count


async def walk_listing(stream: Stream, finder: Listing) -> None:
    """Read a listing to its end; what stands in the way is noted in the stream's troubles."""
    walk = LinkWalk(stream, partial(read_listing, finder=finder), "listing", drops_empty=True)
    pager = _Pager(walk, finder, stream)
    if not await _go_on(pager, finder.url):
        return
    if len(pager.pages) > 1 and await _may_have_moved(pager):
        await _until_it_stands_still(pager)


async def _go_on(pager: _Pager, url: str | None) -> bool:
    """Read from `url` to the end of the listing. False: the end was not reached, and why is noted."""
    while url is not None:
        if len(pager.pages) >= MOST:
            message = f"{pager.finder.url} has more than {MOST:,} pages; the rest was not read"
            return pager.trouble(url, "too_long", message)
        pager.addresses.add(canonical_url(url))
        turn = await pager.walk.turn_to(url)
        if _is_nothing(turn):
            pager.addresses.discard(canonical_url(url))
            following = await _behind(pager, url, turn)
        elif isinstance(turn, Trouble):
            pager.stream.troubles.append(turn)
            return False
        elif turn.final_url and _leads_back(pager, turn):
            if pager.finder.numbered:
                return True  # what comes after the last page is redirected to another
            return pager.trouble(url, "loop", f"{url} is redirected to {turn.final_url}, which was read already")
        else:
            pager.pages.append(turn)
            following = _next(pager, turn)
        if isinstance(following, bool):
            return following
        url = following
    return True


def _is_nothing(turn: Turn | Trouble) -> bool:
    """Whether there is no such page, or nothing on it."""
    if isinstance(turn, Trouble):
        return turn.kind in _GONE
    return turn.shown is not None and not turn.shown.pages and not turn.shown.documents


def _leads_back(pager: _Pager, turn: Turn) -> bool:
    final = canonical_url(turn.final_url)
    return final != canonical_url(turn.url) and final in pager.addresses


def _next(pager: _Pager, turn: Turn) -> str | bool:
    """Where to go from a page: on, or to the end (True), or nowhere because something is wrong (False)."""
    pager.barren = 0 if pager.is_news(turn) else pager.barren + 1
    if pager.barren >= _MOST_BARREN:
        message = f"the last {_MOST_BARREN} pages up to {turn.url} list nothing that the pages before them did not"
        return pager.trouble(turn.url, "repeats", message)
    if not turn.leads_to:
        if turn.shown is not None and turn.shown.documents:
            return pager.trouble(turn.url, "off_site", f"the page after {turn.url} stands on another site")
        return True
    url = turn.leads_to[0]
    if canonical_url(url) in pager.addresses:
        return pager.trouble(url, "loop", f"the page after {turn.url} is {url}, which was read already")
    return url


async def _behind(pager: _Pager, url: str, turn: Turn | Trouble) -> str | bool:
    """What to make of a page on which nothing is: the listing ended before it, or it has become shorter, or is broken.

    Numbered pages end like this. Where a link led here, the page with the link is asked once more.
    """
    if not pager.pages:
        if isinstance(turn, Trouble):
            pager.stream.troubles.append(turn)
            return False
        wanted = f"links={pager.finder.links!r} finds" if pager.finder.links else "match= fits"
        return pager.trouble(url, "no_links", f"{wanted} nothing on {url}: correct it, or look at what the page is now")
    if pager.finder.numbered:
        return True
    last = pager.pages[-1]
    again = await pager.walk.turn_to(last.url, again=True)
    if isinstance(again, Trouble):
        pager.stream.troubles.append(again)
        return False
    if again.leads_to and again.leads_to[0] == url:
        return pager.trouble(url, "empty", f"{last.url} leads to {url}, and nothing is listed there")
    pager.pages[-1] = again
    return _next(pager, again)


async def _may_have_moved(pager: _Pager) -> bool:
    """Whether anything could have slipped by while a listing was read.

    Nothing has, where all that was there before is still there, where what is new stands on the first page, and where
    that page has not changed meanwhile: then at most something was added, and what is taken out is missing.
    """
    first, *others = pager.pages
    if any(turn.resumed for turn in pager.pages) or any(turn.new for turn in others):
        return True
    if not pager.walk.before <= pager.walk.met:
        return True
    again = await pager.walk.turn_to(first.url, again=True)
    if isinstance(again, Trouble):
        pager.stream.troubles.append(again)
        return True
    return again.moved


async def _until_it_stands_still(pager: _Pager) -> None:
    """Read the listing again, backward and forward in turn; that it never stood still is a trouble."""
    for number in range(2, MOST_PASSES + 1):
        if pager.stream.troubles:
            return
        moved, late = await _again(pager, backward=number % 2 == 0)
        if not moved or (number >= _ENOUGH_PASSES and not late):
            return
    message = (
        f"{pager.finder.url} moves faster than it can be read: after {MOST_PASSES} passes there was still something "
        "that the others had missed, so nothing is concluded from what was not seen"
    )
    pager.trouble(pager.finder.url, "moving", message)


async def _again(pager: _Pager, *, backward: bool) -> tuple[bool, int]:
    """Read all pages once more: whether one of them was other than when it was last read, and how many items were met
    for the first time, but for the first page, where they are additions."""
    moved, late = False, 0
    there: list[Turn] = []
    for turn in reversed(pager.pages) if backward else pager.pages:
        again = await pager.walk.turn_to(turn.url, again=True)
        if _is_nothing(again):
            moved = True  # the listing has become shorter
            pager.addresses.discard(canonical_url(turn.url))
        elif isinstance(again, Trouble):
            pager.stream.troubles.append(again)
            return False, late
        else:
            moved |= again.moved
            late += again.fresh if turn is not pager.pages[0] else 0
            there.append(again)
    pager.pages = there[::-1] if backward else there
    if not pager.pages:
        pager.trouble(pager.finder.url, "no_links", f"nothing is listed on {pager.finder.url} any more")
        return False, late
    count = len(pager.pages)
    last = pager.pages[-1]
    if last.leads_to and canonical_url(last.leads_to[0]) not in pager.addresses:
        await _go_on(pager, last.leads_to[0])  # or it has become longer
    return moved or len(pager.pages) > count, late + sum(turn.fresh for turn in pager.pages[count:])

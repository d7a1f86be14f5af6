"""Following links by rule, breadth first, each page of links once."""

from __future__ import annotations

import re
from collections import Counter, deque
from functools import partial

from recrawl.decide.urls import canonical_url
from recrawl.declare import Links
from recrawl.discover.links import read_links
from recrawl.steps.documents import Stream, Trouble
from recrawl.steps.linked import MOST, LinkWalk, Turn
from recrawl.store import documents

_MOST_BARREN = 500
"""So many documents on end whose addresses differ in numbers only, and which list no page that was not met before, are
a calendar or session ids."""
_NUMBERS = re.compile(r"\d+|[0-9a-fA-F]{8,}")
_NOT_THERE = ("http_404", "http_410")


async def walk_links(stream: Stream, finder: Links) -> bool:
    """Follow the links; whether that came to its end by itself, without a bound that cut something off."""
    walk = LinkWalk(stream, partial(read_links, finder=finder), "links")
    queue = deque([(finder.url, 0)])
    known = {canonical_url(finder.url)}
    barren: Counter[str] = Counter()
    cut = False
    while queue:
        url, depth = queue.popleft()
        shape = _NUMBERS.sub("#", canonical_url(url))
        if barren[shape] >= _MOST_BARREN:
            continue
        turn = await walk.turn_to(url)
        if isinstance(turn, Trouble):
            if await _stands_in_the_way(stream, turn, first=depth == 0):
                stream.troubles.append(turn)
            continue
        barren[shape] = 0 if turn.fresh else barren[shape] + 1
        if barren[shape] == _MOST_BARREN:
            stream.troubles.append(_trap(url))
        for child in _unknown(turn, known):
            if finder.depth is not None and depth >= finder.depth:
                cut = True
            elif len(known) >= MOST:
                stream.troubles.append(_too_many(finder))
                return False
            else:
                known.add(canonical_url(child))
                queue.append((child, depth + 1))
    return not cut


def _unknown(turn: Turn, known: set[str]) -> list[str]:
    return [child for child in turn.leads_to if canonical_url(child) not in known]


async def _stands_in_the_way(stream: Stream, trouble: Trouble, *, first: bool) -> bool:
    """Whether a document that could not be read leaves something unseen. Sites are full of links that lead nowhere, and
    of such that robots.txt takes out; but what could be read once and is forbidden now is missing."""
    if first or trouble.kind not in (*_NOT_THERE, "refused"):
        return True
    if trouble.kind in _NOT_THERE:
        return False
    known = await stream.tools.db(documents.document, stream.task.source, stream.name, trouble.url)
    return known.kind is not None


def _trap(url: str) -> Trouble:
    message = (
        f"{_MOST_BARREN} addresses on end such as {url} listed no page that was not known: no more of them are "
        "followed. Leave them out of follow="
    )
    return Trouble(url, "trap", message, again=False)


def _too_many(finder: Links) -> Trouble:
    message = f"{finder.url} leads to more than {MOST:,} addresses that follow= fits; make it narrower, or set depth="
    return Trouble(finder.url, "too_many", message, again=False)

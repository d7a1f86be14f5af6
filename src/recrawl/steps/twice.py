"""Looking at the same pages twice, a few seconds apart, as politely as a run does. Nothing of it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recrawl.decide.answers import Content, look_of, meaning
from recrawl.decide.twice import Looks
from recrawl.decide.urls import host_of
from recrawl.model.fetched import Answer, Page, Request
from recrawl.steps import parsers
from recrawl.steps.courtesy import Courtesy, TooFar
from recrawl.steps.read import Reading
from recrawl.steps.tools import Tools

APART = 5.0
"""Seconds between the two looks at a page."""


@dataclass(frozen=True, slots=True)
class Twice:
    """Pages that were read at both looks, and what kept the others from it, by address."""

    looks: tuple[Looks, ...]
    troubles: dict[str, str]


async def look_twice(pages: Sequence[tuple[str, str]], tools: Tools) -> Twice:
    """Look at pages, given as (canonical URL, URL on the wire), twice and without validators."""
    courtesy = Courtesy(tools)
    first = [await _read(page, tools, courtesy) for page in pages]
    await tools.clock.sleep(APART)
    looks: list[Looks] = []
    troubles: dict[str, str] = {}
    for page, before in zip(pages, first, strict=True):
        after = before if isinstance(before, str) else await _read(page, tools, courtesy)
        if isinstance(before, str) or isinstance(after, str):
            troubles[page[1]] = str(after)
        else:
            looks.append((before.rows, after.rows))
    return Twice(tuple(looks), troubles)


async def _read(page: tuple[str, str], tools: Tools, courtesy: Courtesy) -> Reading | str:
    """What a page reads as, or why it cannot be read."""
    url, fetch_url = page
    host = host_of(url)
    try:
        if await courtesy.refusal(fetch_url, host) is not None:
            return "robots.txt does not allow it, or cannot be read"
        answer = await courtesy.fetch(Request(fetch_url), host)
    except TooFar as error:
        return str(error)
    look = look_of(answer, fetch_url, 1)
    found = meaning(answer, look, has_body=False, now=tools.clock.now(), max_wait=tools.max_wait)
    if not isinstance(answer, Answer) or not isinstance(found, Content):
        return f"the server answers {look.status}" if look.status else "no usable answer"
    read = await parsers.read(Page(url, answer.final_url, answer.body, answer.content_type, answer.fetched_at), tools)
    return read if read.reason is None else read.reason

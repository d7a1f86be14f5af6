"""The least that a crawler could do: aiohttp and selectolax, the hashes that recrawl takes, and nothing stored.

URLs are joined as recrawl joins them, so that the difference is what recrawl adds and no choice of a library.

python -m benchmarks.peers.bare LISTING
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress

import aiohttp
import can_ada
from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.peers.items import CONCURRENCY, Stopwatch, urls_of


async def crawl(urls: list[str], watch: Stopwatch) -> None:
    waiting = iter(urls)
    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        watch.begin()
        await asyncio.gather(*(_work(session, waiting) for _ in range(CONCURRENCY)))
        watch.end()


async def _work(session: aiohttp.ClientSession, waiting: Iterator[str]) -> None:
    for url in waiting:
        async with session.get(url) as answer:
            answer.raise_for_status()
            body = await answer.read()
        read(url, body)


def read(url: str, body: bytes) -> tuple[str | None, list[str], tuple[str, str, str]]:
    """Title, links, and the SHA-256 of the bytes, of the text, and of the set of tag paths."""
    raw = hashlib.sha256(body).hexdigest()
    tree = LexborHTMLParser(body.decode("utf-8", "replace"))
    title = tree.css_first("title")
    links = joined(url, [node.attributes["href"] or "" for node in tree.css("a[href]")])
    text = tree.body.text(separator=" ") if tree.body else ""
    assert tree.root is not None
    hashes = raw, hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(), structure(tree.root)
    return title.text() if title else None, links, hashes


def joined(url: str, found: list[str]) -> list[str]:
    base = can_ada.parse(url)
    links = []
    for link in found:
        with suppress(ValueError):
            links.append(str((base + link.strip()).href))
    return links


def structure(root: LexborNode) -> str:
    paths: list[str] = []
    level = {root.tag or "": [root]}
    while level:
        paths += level
        below: dict[str, list[LexborNode]] = {}
        for path, nodes in level.items():
            for node in nodes:
                for child in node.iter():
                    below.setdefault(f"{path}/{child.tag}", []).append(child)
        level = below
    return hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()


if __name__ == "__main__":
    _watch = Stopwatch()
    _urls = urls_of(sys.argv[1])
    asyncio.run(crawl(_urls, _watch))
    _watch.tell(len(_urls))

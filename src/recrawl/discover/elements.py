"""The elements that matter of an XML document of any length, one after the other, in flat memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, cast

from lxml import etree

from recrawl.discover.markup import Problems

_LONGEST_GAP: Final = 2 << 20  # bytes of markup without an element that matters; the tree grows with them


def elements(
    chunks: Iterable[bytes], tags: Iterable[str], base: str, problems: Problems, *, entities: bool = False
) -> Iterator[etree._Element]:
    """Each element with one of `tags` (as lxml writes them) once it has ended; use it before you ask for the next.

    Broken XML is read as far as it makes sense, and reported. Nothing outside of the document is ever loaded; entities
    that the document itself declares are expanded only if `entities`. Depth, names and text are bounded by libxml2.
    """
    parser = etree.XMLPullParser(
        events=("end",),
        tag=tuple(tags),
        base_url=base,
        encoding="utf-8",
        recover=True,
        resolve_entities="internal" if entities else False,  # type: ignore[arg-type]  # unknown to the stubs
        no_network=True,
        load_dtd=False,
        huge_tree=False,
    )
    gap = 0
    for chunk in chunks:
        parser.feed(chunk)
        last = None
        for last in _ended(parser):
            yield last
        _forget(last)
        gap = gap + len(chunk) if last is None else 0
        if gap > _LONGEST_GAP:
            problems.lost(f"There are more than {_LONGEST_GAP:,} bytes without an entry; the rest was not read.")
            break
    try:
        parser.close()
    except etree.XMLSyntaxError as error:
        problems.lost(f"The XML is broken: {error.msg}.")
    yield from _ended(parser)
    for entry in parser.feed_error_log:
        if entry.level == etree.ErrorLevels.FATAL:
            problems.lost(f"The XML is broken in line {entry.line}: {entry.message}.")


def _ended(parser: etree.XMLPullParser) -> Iterator[etree._Element]:
    for _, element in parser.read_events():
        yield cast(etree._Element, element)


def _forget(last: etree._Element | None) -> None:
    """Free what was read before an element, at every level, so that memory does not grow with the document.

    The last child stays: libxml2 may still be adding text behind it.
    """
    while last is not None and (parent := last.getparent()) is not None:
        del parent[:-1]
        last = parent

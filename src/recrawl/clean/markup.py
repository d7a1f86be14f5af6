"""Prose out of a piece of HTML."""

from __future__ import annotations

import html
import re

from recrawl.clean.plain import narrow

# Lexbor's time grows with the square of the nesting, so the number of tags is bounded (5,000 take about 0.1 s).
_MOST_TAGS = 5_000
_BLOCKS = re.compile(
    r"<(?=/?(?:p|div|br|li|ul|ol|dl|dt|dd|tr|td|th|table|h[1-6]|section|article|header|footer|blockquote|pre|hr)\b)",
    re.I,
)


def text_of(text: str) -> str:
    """The text without tags, scripts and styles, entities resolved, full-width forms narrow, white space folded.

    Raises ValueError for more tags than a piece of prose can have.
    """
    if "<" in text:
        if text.count("<") > _MOST_TAGS:
            raise ValueError(f"more than {_MOST_TAGS:,} tags")
        from selectolax.lexbor import LexborHTMLParser

        tree = LexborHTMLParser(_BLOCKS.sub("\n<", text))
        tree.strip_tags(["script", "style", "template", "noscript"])
        body = tree.body
        text = body.text() if body else ""
    elif "&" in text:
        text = html.unescape(text)
    return " ".join(narrow(text).split())

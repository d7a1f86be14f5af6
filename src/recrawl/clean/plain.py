"""One form for text: what every value parser reads, and what the store can hold."""

from __future__ import annotations

import re

# Full-width ASCII and signs (Unicode block FF00) become their ordinary forms; zero-width marks vanish.
_WIDTH: dict[int, int | str | None] = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_WIDTH |= {0x3000: " ", 0xFFE0: "¢", 0xFFE1: "£", 0xFFE5: "¥", 0xFFE6: "₩"}
_MARKS: dict[int, int | str | None] = dict.fromkeys((0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF, 0xAD))
_FOLDED = _WIDTH | _MARKS

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def plain(text: str) -> str:
    """Full-width forms made ordinary, zero-width marks dropped, white space of any kind folded to single blanks."""
    if not text.isascii():
        text = text.translate(_FOLDED)
    return " ".join(text.split())


def narrow(text: str) -> str:
    """Full-width forms made ordinary; nothing else."""
    return text if text.isascii() else text.translate(_WIDTH)


def storable(text: str) -> str:
    """The same text with NUL and lone surrogates, which no database keeps, shown as U+FFFD."""
    try:
        text.encode()  # finds lone surrogates, many times faster than a pattern
    except UnicodeEncodeError:
        return _UNSTORABLE.sub("\ufffd", text)
    return text.replace("\0", "\ufffd")

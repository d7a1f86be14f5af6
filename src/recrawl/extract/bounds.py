"""What an HTML parser can be given: its time grows with the square of some things that a page can hold.

Three of them are bounded here before parsing, by one linear pass over the tags as the HTML standard (section 13.2.5,
tokenization) delimits them: attributes of one tag (each is compared with those before it), nesting (each tag walks the
open ones), and formatting elements that are never closed (each paragraph opens all of them again). The pass may take a
page for worse than it is, never for better; sloppy pages of the web stay far below the bounds, which stand for about
two seconds of parsing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from recrawl.errors import Permanent

LONGEST = 20_000_000  # characters
_HARMLESS_LENGTH = 32_000  # nothing in so short a page can take more than a second
_HARMLESS_TAGS = 3_000
_HARMLESS_TAG = 1_000  # characters of attributes
_MOST_COMPARISONS = 500_000_000
_MOST_STEPS = 400_000_000
_MOST_REOPENED = 3_000_000

_SPACE = r"[ \t\n\f\r]"
_ATTRIBUTE = (
    r"[ \t\n\f\r/]*+[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
    rf"(?:{_SPACE}*+={_SPACE}*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\f\r>]*+))?+"
)
_TOKEN = re.compile(
    r"<(?:!--(?:-?>|.*?(?:--!?>|\Z))|[!?][^>]*+|/[^a-zA-Z>][^>]*+"
    rf"|(/?+[a-zA-Z][^ \t\n\f\r/>]*+)((?:{_ATTRIBUTE})*+)[ \t\n\f\r/]*+>?+)",
    re.DOTALL,
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)

_VOID = frozenset(
    ["area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "image", "img", "input", "keygen",
     "link", "meta", "param", "source", "track", "wbr"]
)  # fmt: skip
# Their start tags close an open one of their kind, so that they cannot nest without others between.
_SELF_LIMITING = frozenset(
    ["html", "head", "body", "p", "li", "dd", "dt", "option", "optgroup", "rb", "rt", "rtc", "rp", "tr", "td", "th",
     "thead", "tbody", "tfoot", "caption", "colgroup"]
)  # fmt: skip
_FORMATTING = frozenset(
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]
)
_PHRASING = frozenset(["span", "label", "sup", "sub", "abbr", "cite", "q", "time", "kbd", "var", "samp", "mark"])
_RAW = {
    name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}


@dataclass(slots=True)
class _Nesting:
    """The elements that a parser would hold open."""

    open: list[str]
    formatting: dict[tuple[str, str], int]  # by tag and attributes; a parser opens at most three alike again
    reopened: int = 0
    steps: int = 0
    deepest: int = 0

    def start(self, name: str, attributes: str) -> None:
        if name in _VOID or name in _SELF_LIMITING:
            self.steps += len(self.open)
            self.reopened += sum(self.formatting.values())
            return
        self.steps += len(self.open)
        self.open.append(name)
        self.deepest = max(self.deepest, len(self.open))
        if name in _FORMATTING:
            alike = (name, "" if name in ("a", "nobr") else attributes)
            self.formatting[alike] = min(self.formatting.get(alike, 0) + 1, 1 if name in ("a", "nobr") else 3)
        else:
            self.reopened += sum(self.formatting.values())

    def end(self, name: str) -> None:
        if name in _FORMATTING:
            self._end_formatting(name)
            return
        above = len(self.open)
        while above and self.open[above - 1] != name:
            inner = self.open[above - 1]
            if inner not in _PHRASING and inner not in _FORMATTING:
                return  # a parser may ignore this end tag
            above -= 1
        if above:
            self.open[above - 1 :] = [inner for inner in self.open[above:] if inner in _FORMATTING]

    def _end_formatting(self, name: str) -> None:
        for place in range(len(self.open) - 1, -1, -1):
            if self.open[place] == name:
                del self.open[place]
                break
        for alike in reversed(self.formatting):
            if alike[0] == name:
                self.formatting[alike] -= 1
                if not self.formatting[alike]:
                    del self.formatting[alike]
                return


def check_bounds(text: str, place: str, *, deepest: int | None = None) -> None:
    """Raise Permanent for an HTML text that would take a parser too long, or nests deeper than `deepest`."""
    if len(text) > LONGEST:
        raise _refused(f"{len(text):,} characters", place)
    if deepest is None and len(text) <= _HARMLESS_LENGTH:
        return
    tokens = _TOKEN.findall(text)
    comparisons = sum(
        len(_ATTRIBUTES.findall(attributes)) ** 2 for _, attributes in tokens if len(attributes) > _HARMLESS_TAG
    )
    if comparisons > _MOST_COMPARISONS:
        raise _refused("tags with too many attributes", place)
    if deepest is not None or len(tokens) > _HARMLESS_TAGS:
        nesting = _nesting(text)
        if nesting is None or (deepest is not None and nesting.deepest > deepest):
            raise _refused("elements nested too deep", place)


def _nesting(text: str) -> _Nesting | None:
    """How the tags nest, or None where it is too deep."""
    nesting = _Nesting([], {})
    position = 0
    while token := _TOKEN.search(text, position):
        position = token.end()
        name = (token[1] or "").lower()
        if not name:
            continue
        if name[0] == "/":
            nesting.end(name[1:])
            continue
        if name in _RAW and "svg" not in nesting.open and "math" not in nesting.open:
            closing = _RAW[name].search(text, position)
            position = closing.end() if closing else len(text)
        elif not (token[0].endswith("/>") and _is_foreign(nesting.open)):
            nesting.start(name, token[2])
            if nesting.steps > _MOST_STEPS or nesting.reopened > _MOST_REOPENED:
                return None
    return nesting


def _is_foreign(open_elements: list[str]) -> bool:
    """Whether `/>` closes an element here: inside of svg and math only, and not in HTML inside of them."""
    for name in reversed(open_elements):
        if name in ("svg", "math"):
            return True
        if name in ("foreignobject", "desc", "title", "annotation-xml", "mi", "mo", "mn", "ms", "mtext"):
            return False
    return False


def _refused(what: str, place: str) -> Permanent:
    return Permanent(
        f"the page holds {what}: parsing it could take for ever",
        place=place,
        action="Look at the page; if it is real, read it with a function over Fetched.text.",
    )

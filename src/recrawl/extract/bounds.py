"""What an HTML parser can be given: its time grows with the square of some things that a page can hold.

Three of them are bounded here before parsing, by linear passes over the tags as the HTML standard delimits them
(section 13.2.5, tokenization): attributes of one tag (each is compared with those before it), nesting (each tag walks
the open ones), and formatting elements that are never closed (each paragraph opens all of them again). A page may be
taken for worse than it is, never for much better. The sloppy pages of the web stay far below the bounds, which stand
for about two seconds of parsing; most pages are seen to be harmless by their size alone.
"""

from __future__ import annotations

import re

from recrawl.errors import Permanent

LONGEST = 20_000_000  # characters
_HARMLESS_LENGTH = 100_000  # so short a page cannot hold enough attributes
_MOST_ATTRIBUTES = 300
_HARMLESS_TAGS = 3_000  # so few start tags cannot reopen enough
_MOST_STEPS = 400_000_000
_STEPS_OF_OURS = 30  # one of our own steps takes as long as so many of a parser
_MOST_REOPENED = 3_000_000

_NAME = r"[a-zA-Z][^ \t\n\f\r/>]*+"
_SPACE = r"[ \t\n\f\r]"
_ATTRIBUTE = (
    r"[ \t\n\f\r/]*+[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
    rf"(?:{_SPACE}*+={_SPACE}*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\f\r>]*+))?+"
)
_COMMENT = r"!--(?:-?>|.*?(?:--!?>|\Z))|[!?][^>]*+|/(?![a-zA-Z])[^>]*+"
# All of a text without tags of too many attributes: one match, for objects of all tags would cost more than parsing.
_MODEST = re.compile(
    rf"(?:[^<]++|<(?:/?+{_NAME}(?:>|(?:{_ATTRIBUTE}){{0,{_MOST_ATTRIBUTES}}}+[ \t\n\f\r/]*+(?:>|\Z))"
    rf"|{_COMMENT}|(?![a-zA-Z!?/])))*+",
    re.DOTALL,
)
_TOKEN = re.compile(rf"<(?:{_COMMENT}|(/?+{_NAME})((?:{_ATTRIBUTE})*+)[ \t\n\f\r/]*+>?+)", re.DOTALL)
_REOPENED = r"(b|big|code|em|font|i|s|small|strike|strong|tt|u)"
_REOPENING = re.compile(rf"<{_REOPENED}[ \t\n\f\r/>]", re.IGNORECASE | re.ASCII)
# With nothing but text inside, and no attribute that could hide where the tag ends.
_CLOSED = re.compile(
    rf"<{_REOPENED}(?:{_SPACE}++[\w:-]++(?:=(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\s\"'<>=]++))?+)*+{_SPACE}*+>[^<]*+</\1>",
    re.IGNORECASE | re.ASCII,
)

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
_ONCE = frozenset(["a", "nobr"])  # a start tag closes the open one
_STRANGE = frozenset(["svg", "math", "frameset"])  # the rules for HTML's elements do not hold inside
# An end tag outside of one of these does not always reach what it would close.
_SPECIAL = frozenset(
    ["address", "annotation-xml", "applet", "article", "aside", "blockquote", "button", "center", "desc", "details",
     "dialog", "dir", "div", "dl", "fieldset", "figcaption", "figure", "footer", "foreignobject", "form", "frameset",
     "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "iframe", "listing", "main", "marquee", "menu", "mi", "mn",
     "mo", "ms", "mtext", "nav", "noembed", "noframes", "noscript", "object", "ol", "plaintext", "pre", "script",
     "search", "section", "select", "style", "summary", "table", "template", "textarea", "title", "ul", "xmp"]
)  # fmt: skip
_RAW = {
    name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}


class _Nesting:
    """The elements that a parser would hold open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.formatting: dict[tuple[str, str], int] = {}  # by tag and attributes, how many would be opened again
        self.waiting = 0  # the sum of these
        self.strange = self.reopened = self.steps = self.deepest = 0

    def start(self, name: str, attributes: str) -> None:
        self.steps += len(self.open)
        if name not in _FORMATTING:
            self.reopened += self.waiting
        if not self.strange and (name in _VOID or name in _SELF_LIMITING):
            return
        self.open.append(name)
        self.strange += name in _STRANGE
        self.deepest = max(self.deepest, len(self.open))
        if name in _FORMATTING:
            alike = (name, "" if name in _ONCE else attributes)
            known = self.formatting.get(alike, 0)
            if known < (1 if name in _ONCE else 3):  # the standard's "Noah's Ark clause"
                self.formatting[alike] = known + 1
                self.waiting += 1

    def end(self, name: str) -> None:
        if name in _FORMATTING and self._end_formatting(name):
            return
        if name in _SELF_LIMITING and not self.strange:
            return  # never held here
        if name == "form":
            self._close(name)  # and leaves open what stands inside
            return
        above = len(self.open)
        while above and self.open[above - 1] != name:
            if self.open[above - 1] in _SPECIAL:
                break
            above -= 1
        self.steps += _STEPS_OF_OURS * (len(self.open) - above)
        if above and self.open[above - 1] == name:
            self.strange -= sum(inner in _STRANGE for inner in self.open[above - 1 :])
            self.open[above - 1 :] = [inner for inner in self.open[above:] if inner in _FORMATTING]

    def _end_formatting(self, name: str) -> bool:
        """False where none would be opened again: it ends like any other element then."""
        known = list(self.formatting)
        place = max((place for place, alike in enumerate(known) if alike[0] == name), default=None)
        self.steps += _STEPS_OF_OURS * len(known)
        if place is None:
            return False
        alike = known[place]
        self.waiting -= 1
        self.formatting[alike] -= 1
        if not self.formatting[alike]:
            del self.formatting[alike]
        self._close(name)
        return True

    def _close(self, name: str) -> None:
        for place in range(len(self.open) - 1, -1, -1):
            if self.open[place] == name:
                self.steps += _STEPS_OF_OURS * (len(self.open) - 1 - place)
                del self.open[place]
                return
        self.steps += _STEPS_OF_OURS * len(self.open)


def check_bounds(text: str, place: str, *, deepest: int | None = None) -> None:
    """Raise Permanent for an HTML text that would take a parser too long, or may nest deeper than `deepest`."""
    if len(text) > LONGEST:
        raise _refused(f"{len(text):,} characters", place)
    if len(text) > _HARMLESS_LENGTH:
        modest = _MODEST.match(text)
        if modest is None or modest.end() < len(text):
            raise _refused(f"a tag of more than {_MOST_ATTRIBUTES} attributes", place)
    ends = text.count("</")
    starts = text.count("<") - ends
    if deepest is None:
        if starts * (starts // 2 + ends) <= _MOST_STEPS and _reopens_little(text, starts):
            return
    elif starts <= deepest:
        return
    nesting = _nesting(text)
    if nesting is None or (deepest is not None and nesting.deepest > deepest):
        raise _refused("elements nested too deep", place)


def _reopens_little(text: str, starts: int) -> bool:
    """Whether so few formatting elements are left open that no order of the tags could reopen them too often."""
    if starts <= _HARMLESS_TAGS:
        return True
    opened = len(_REOPENING.findall(text))
    if opened * starts > _MOST_REOPENED:
        opened -= len(_CLOSED.findall(text))
    return opened * starts <= _MOST_REOPENED


def _nesting(text: str) -> _Nesting | None:
    """How the tags nest, or None where it is too deep."""
    nesting = _Nesting()
    position = 0
    while token := _TOKEN.search(text, position):
        position = token.end()
        name = (token[1] or "").lower()
        if not name:
            continue
        if name[0] == "/":
            nesting.end(name[1:])
            if nesting.steps > _MOST_STEPS:
                return None
        elif name in _RAW and not nesting.strange:
            closing = _RAW[name].search(text, position)
            position = closing.end() if closing else len(text)
        else:
            # `/>` closes nothing in HTML, and whether this is SVG can be hidden from so simple a reader.
            nesting.start(name, token[2])
            if nesting.steps > _MOST_STEPS or nesting.reopened > _MOST_REOPENED:
                return None
    return nesting


def _refused(what: str, place: str) -> Permanent:
    return Permanent(
        f"the page holds {what}: parsing it could take for ever",
        place=place,
        action="Look at the page; if it is real, read it with a function over Fetched.text.",
    )

"""What an HTML parser can be given: its time grows with the square of some things that a page can hold.

Four of them are bounded here before parsing, by linear passes over the tags as the HTML standard delimits them
(section 13.2.5, tokenization): attributes of one tag (each is compared with those before it), nesting (each tag walks
the open ones), formatting elements that are never closed (each paragraph opens all of them again), and those closed
across blocks (the "adoption agency" of section 13.2.6.4.7, whose every round makes the tree deeper). A page may be
taken for worse than it is, never for much better. The sloppy pages of the web stay far below the bounds, which stand
for about two seconds of parsing. Most pages are seen to be harmless by their size alone, most others by one match of a
pattern; only the rest is followed tag by tag.
"""

from __future__ import annotations

import re

from recrawl.errors import Permanent

LONGEST = 20_000_000  # characters
_HARMLESS_LENGTH = 100_000  # so short a page cannot hold enough attributes
_HARMLESS_TAGS = 2_000  # nor so few tags, ends included, do enough of anything else
_MOST_ATTRIBUTES = 300
_MOST_REOPENED = 3_000_000
_MOST_STEPS = 400_000_000
_STEPS_OF_OURS = 30  # one of our own steps takes as long as so many of a parser
_STEPS_OF_ADOPTION = 3
_MOST_ROUNDS = 8  # of one adoption

_NAME = r"[a-zA-Z][^ \t\n\f\r/>]*+"
_NAME_ENDS = r"(?=[ \t\n\f\r/>])"
_SPACE = r"[ \t\n\f\r]"
_ATTRIBUTE = (
    r"[ \t\n\f\r/]*+[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
    rf"(?:{_SPACE}*+={_SPACE}*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\f\r>]*+))?+"
)
_REST = rf"(?:>|(?:{_ATTRIBUTE}){{0,{_MOST_ATTRIBUTES}}}+[ \t\n\f\r/]*+(?:>|\Z))"  # of a tag, after its name
_COMMENT = r"!--(?:-?>|.*?(?:--!?>|\Z))|[!?][^>]*+|/(?![a-zA-Z])[^>]*+"
_TOKEN = re.compile(rf"<(?:{_COMMENT}|(/?+{_NAME})((?:{_ATTRIBUTE})*+)[ \t\n\f\r/]*+>?+)", re.DOTALL)

_RAW_NAMES = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
_RAW_ENDS = {name: re.compile(rf"</{name}{_NAME_ENDS}", re.IGNORECASE) for name in _RAW_NAMES}
_RAW = "|".join(_RAW_NAMES)
_FORMATTED = "a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"
_FOREIGN = "svg|math|frameset"  # the rules for HTML's elements do not hold inside
_DRAWN = "path|g|circle|rect|line|polyline|polygon|ellipse|use|defs|symbol|text|tspan|stop|lineargradient|clippath|mask"
_INLINE = "span|br|img|abbr|cite|del|dfn|ins|kbd|label|mark|q|samp|sub|sup|time|var|wbr"


def _tag(names: str) -> str:
    return rf"(?:{names}){_NAME_ENDS}{_REST}"


def _closed(level: int) -> str:
    """A formatting element that ends where it should: inside are only text, inline elements, and others like it."""
    inside = f"|{_closed(level - 1)}" if level else ""
    name = f"f{level}"
    return (
        rf"<(?P<{name}>{_FORMATTED}){_NAME_ENDS}{_REST}"
        rf"[^<]*+(?:(?:</?+{_tag(_INLINE)}{inside})[^<]*+)*</{_tag(f'(?P={name})')}"
    )


# All of a page in small letters, up to a tag of a formatting element that does not end where it should, or to anything
# else that has to be looked at. One match, for objects of all tags would cost more than parsing.
_TIDY = re.compile(
    (
        # The most frequent first.
        rf"[^<]*+(?:(?:</?+(?:span{_NAME_ENDS}|(?!(?:{_FORMATTED}|{_FOREIGN}|{_RAW}){_NAME_ENDS}){_NAME}){_REST}"
        rf"|{_closed(2)}|<(?P<raw>{_RAW}){_NAME_ENDS}{_REST}(?:[^<]++|<(?!/(?P=raw){_NAME_ENDS}))*+|</{_tag(_RAW)}"
        rf"|<{_tag('svg')}(?:[^<]++|</?+{_tag(_DRAWN)}|<title>[^<]*+</title>)*+</{_tag('svg')}"
        rf"|<(?:{_COMMENT}|(?![a-z!?/])))[^<]*+)*"
    ).encode(),
    re.DOTALL,
)
_LOOSE = re.compile(f"</?+{_tag(_FORMATTED)}".encode())
_MANY = re.compile(rf"(?:{_ATTRIBUTE}){{{_MOST_ATTRIBUTES + 1}}}")

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
_SCOPES = frozenset(["applet", "marquee", "object", "table", "template"])  # end tags inside reach nothing outside


class _Nesting:
    """The elements that a parser would hold open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.formatting: dict[tuple[str, str], int] = {}  # by tag and attributes, how many would be opened again
        self.waiting = 0  # the sum of these
        self.strange = self.reopened = self.adopted = self.steps = self.deepest = 0

    @property
    def endless(self) -> bool:
        return self.steps > _MOST_STEPS or self.reopened > _MOST_REOPENED

    def start(self, name: str, attributes: str) -> None:
        self.steps += len(self.open)
        if name not in _FORMATTING:
            self.reopened += self.waiting
        elif name in _ONCE:
            self._end_formatting(name)
        if not self.strange and (name in _VOID or name in _SELF_LIMITING):
            return
        self.open.append(name)
        self.strange += name in _STRANGE
        self.deepest = max(self.deepest, len(self.open))
        if name in _FORMATTING:
            alike = (name, "" if name in _ONCE else attributes)
            known = self.formatting.get(alike, 0)
            if known < 3:  # the standard's "Noah's Ark clause"
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
        alike = next((alike for alike in reversed(self.formatting) if alike[0] == name), None)
        self.steps += _STEPS_OF_OURS * len(self.formatting)
        if alike is None:
            return False
        if self._adopt(name):
            return True
        self.waiting -= 1
        self.formatting[alike] -= 1
        if not self.formatting[alike]:
            del self.formatting[alike]
        self._close(name)
        return True

    def _adopt(self, name: str) -> bool:
        """Move a formatting element into the blocks that stand open in it; whether it is open after that, too."""
        blocks: list[int] = []
        for place in range(len(self.open) - 1, -1, -1):
            inner = self.open[place]
            if inner == name:
                break
            if inner in _SCOPES:
                return True  # out of reach
            if inner in _SPECIAL:
                blocks.append(place)
        else:
            return False
        rounds = min(len(blocks), _MOST_ROUNDS)
        self.steps += _STEPS_OF_ADOPTION * rounds * (len(self.open) + self.adopted)
        self.adopted += rounds
        if rounds < _MOST_ROUNDS:
            return False
        self.open.insert(blocks[-_MOST_ROUNDS] + 1, name)
        del self.open[place]
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
    tags = text.count("<")
    if len(text) <= _HARMLESS_LENGTH and tags <= min(_HARMLESS_TAGS, deepest or _HARMLESS_TAGS):
        return
    ends = text.count("</")
    if (deepest is None or tags - ends <= deepest) and _is_tidy(text, tags - ends, ends):
        return
    nesting = _followed(text, place)
    if nesting.endless or (deepest is not None and nesting.deepest > deepest):
        raise _refused("elements nested too deep", place)


def _is_tidy(text: str, starts: int, ends: int) -> bool:
    """Whether so few formatting elements are left open, or closed late, that no order of the tags could do harm."""
    if starts * (starts // 2 + ends) > _MOST_STEPS:
        return False
    page = text.encode("utf-8", "surrogatepass").lower()
    loose = position = 0
    while tidy := _TIDY.match(page, position):
        position = tidy.end()
        if position == len(page):
            return True
        tag = _LOOSE.match(page, position)
        if tag is None:
            return False
        position = tag.end()
        loose += 1
        steps = _STEPS_OF_ADOPTION * _MOST_ROUNDS * loose * (starts + _MOST_ROUNDS * loose // 2)
        if steps > _MOST_STEPS or loose * starts > _MOST_REOPENED:
            return False
    raise AssertionError("unreachable")


def _followed(text: str, place: str) -> _Nesting:
    """How the tags nest, as far as it takes to see that parsing them would not end."""
    nesting = _Nesting()
    position = 0
    while position < len(text):
        for token in _TOKEN.finditer(text, position):
            position = token.end()
            name = (token[1] or "").lower()
            if name.startswith("/"):
                nesting.end(name[1:])
            elif name in _RAW_ENDS and not nesting.strange:
                closing = _RAW_ENDS[name].search(text, position)
                position = closing.end() if closing else len(text)
                break
            elif name:
                # `/>` closes nothing in HTML, and whether this is SVG can be hidden from so simple a reader.
                nesting.start(name, token[2])
            if nesting.endless:
                return nesting
            if _has_too_many(token[2]):
                raise _refused(f"a tag of more than {_MOST_ATTRIBUTES} attributes", place)
        else:
            return nesting
    return nesting


def _has_too_many(attributes: str | None) -> bool:
    return attributes is not None and len(attributes) > 2 * _MOST_ATTRIBUTES and bool(_MANY.match(attributes))


def _refused(what: str, place: str) -> Permanent:
    return Permanent(
        f"the page holds {what}: parsing it could take for ever",
        place=place,
        action="Look at the page; if it is real, read it with a function over Fetched.text.",
    )

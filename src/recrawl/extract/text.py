"""The text of an element, as a reader would see its pieces apart, and its outline, which the same walk comes by."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

_HIDDEN = frozenset(["script", "style", "template"])
_BLOCKS = frozenset(
    ["address", "article", "aside", "blockquote", "br", "caption", "center", "dd", "details", "dialog", "dir", "div",
     "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
     "hgroup", "hr", "legend", "li", "main", "menu", "nav", "ol", "optgroup", "option", "p", "pre", "search",
     "section", "select", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"]
)  # fmt: skip

# Numbers are compared faster than names; Lexbor's are the same in all documents.
_BLANK = LexborHTMLParser("")
_TEXT = next(node.tag_id for node in LexborHTMLParser("text").css("body")[0].iter(include_text=True))
_BLOCK_IDS = frozenset(_BLANK.create_node(name).tag_id for name in _BLOCKS)
_HIDDEN_IDS = frozenset(_BLANK.create_node(name).tag_id for name in _HIDDEN)


Outline = dict[str, "Outline"]
"""The tags below an element: those of its children, each with the outline of all of that tag."""


def text_of(node: LexborNode, outlines: dict[int, Outline] | None = None) -> str:
    """All text in an element, joined as it stands, with a line break at the edges of blocks and at `<br>`.

    Without the break `<div>51</div><div>24</div>` would be read as 5124. Scripts and styles inside are left out.
    `outlines` is given the outline of an element that had to be walked for its text, under its `mem_id`.
    """
    inner = node.first_child
    if inner is None:
        return ""
    if inner.next is None and inner.tag == "-text":
        return inner.text_content or ""
    if node.tag in _HIDDEN:
        return node.text()
    text, outline = _walked(node)
    if outlines is not None:
        outlines[node.mem_id] = outline
    return text


def _walked(root: LexborNode) -> tuple[str, Outline]:
    parts: list[str] = []
    edge = False
    outline: Outline = {}
    place, block, shown, walk = outline, False, True, root.iter(include_text=True)
    around: list[tuple[Outline, bool, bool, Iterator[LexborNode]]] = []  # the elements that are open, but the innermost
    while True:
        for node in walk:
            kind = node.tag_id
            if kind != _TEXT:
                around.append((place, block, shown, walk))
                place = place.setdefault(node.tag or "", {})
                block = kind in _BLOCK_IDS
                edge |= block
                shown = shown and kind not in _HIDDEN_IDS
                walk = node.iter(include_text=shown)
                break
            text = node.text_content
            if text == "\n":
                edge = True
            elif text:
                if edge and parts:
                    parts.append("\n")
                edge = False
                parts.append(text)
        else:
            edge |= block
            if not around:
                return "".join(parts), outline
            place, block, shown, walk = around.pop()


def text_of_lxml(element: etree._Element) -> str:
    """The same of an lxml element."""
    parts: list[str] = []
    hidden = 0
    for event, inner in etree.iterwalk(element, events=("start", "end", "comment", "pi")):
        block = inner.tag in _BLOCKS and inner is not element
        if event == "start":
            hidden += inner.tag in _HIDDEN and inner is not element
            parts += ["\n"] * block
            if not hidden:
                parts.append(inner.text or "")
            continue
        if event == "end":
            hidden -= inner.tag in _HIDDEN and inner is not element
            parts += ["\n"] * block
        if inner is not element and not hidden:
            parts.append(inner.tail or "")
    return _folded(parts)


def _folded(parts: list[str]) -> str:
    """The parts, with one line break where several blocks begin and end, and none at the edges."""
    kept: list[str] = []
    for part in parts:
        if part and not (part == "\n" and (not kept or kept[-1] == "\n")):
            kept.append(part)
    while kept and kept[-1] == "\n":
        kept.pop()
    return "".join(kept)

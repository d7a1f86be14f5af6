"""The text of an element, as a reader would see its pieces apart."""

from __future__ import annotations

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


def text_of(node: LexborNode) -> str:
    """All text in an element, joined as it stands, with a line break at the edges of blocks and at `<br>`.

    Without the break `<div>51</div><div>24</div>` would be read as 5124. Scripts and styles inside are left out.
    """
    inner = node.first_child
    if inner is None:
        return ""
    if inner.next is None and inner.tag == "-text":
        return inner.text_content or ""
    if node.tag in _HIDDEN:
        return node.text()
    return _joined(node)


def _joined(node: LexborNode) -> str:
    """One walk in document order: what closes there is known by the node that comes after it."""
    parts: list[str] = []
    edge = False
    hidden_until: int | None = None
    after: set[int] = set()  # the nodes that follow blocks
    walk = node.traverse(include_text=True)
    next(walk)
    for inner in walk:
        kind, place = inner.tag_id, inner.mem_id
        if place in after:
            edge = True
        if hidden_until is not None:
            if place != hidden_until:
                continue
            hidden_until = None
        if kind == _TEXT:
            text = inner.text_content
            if text == "\n":
                edge = True
            elif text:
                if edge and parts:
                    parts.append("\n")
                edge = False
                parts.append(text)
        elif kind in _BLOCK_IDS:
            edge = True
            after.add(_following(inner, _BLOCK_IDS))  # where the block around it ends too, that one says so
        elif kind in _HIDDEN_IDS:
            hidden_until = _following(inner)
    return "".join(parts)


def _following(node: LexborNode, bounds: frozenset[int] = frozenset()) -> int:
    """The first node after an element and all in it; 0 for the end of the document, or of a parent out of `bounds`."""
    current: LexborNode | None = node
    while current is not None:
        beside = current.next
        if beside is not None:
            return beside.mem_id
        current = current.parent
        if current is not None and current.tag_id in bounds:
            break
    return 0


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

"""The text of an element, as a reader would see its pieces apart."""

from __future__ import annotations

from lxml import etree
from selectolax.lexbor import LexborNode

_HIDDEN = frozenset(["script", "style", "template"])
_BLOCKS = frozenset(
    ["address", "article", "aside", "blockquote", "br", "caption", "center", "dd", "details", "dialog", "dir", "div",
     "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
     "hgroup", "hr", "legend", "li", "main", "menu", "nav", "ol", "optgroup", "option", "p", "pre", "search",
     "section", "select", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"]
)  # fmt: skip


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
    parts: list[str] = []
    top = node.mem_id
    current = node.first_child
    while current is not None:
        tag = current.tag or ""
        down = None
        if tag == "-text":
            parts.append(current.text_content or "")
        elif tag not in _HIDDEN:
            if tag in _BLOCKS:
                parts.append("\n")
            down = current.first_child
        # Not recursive: pages nest deeper than Python does.
        while down is None and current is not None:
            if current.tag in _BLOCKS:
                parts.append("\n")
            down = current.next
            if down is None:
                current = current.parent
                if current is None or current.mem_id == top:
                    return _folded(parts)
        current = down
    return _folded(parts)


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

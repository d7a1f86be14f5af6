"""The signals of a page, taken from the tree that its records are read from: one query and one text."""

from __future__ import annotations

import re
from hashlib import sha256

from recrawl.extract.content import Content
from recrawl.extract.document import Document
from recrawl.extract.text import text_of
from recrawl.model.signals import Signals

SHORT = 1_500
"""Letters up to which a page may be nothing but a notice: longer ones are not searched through."""

_MOST_HEADINGS = 4
_LONGEST = 200
# The id by which a maker's script is known. What stands on good pages too, such as a form's captcha, is none.
_CHALLENGES = {
    "_cf_chl_opt": "Cloudflare",
    "cf-browser-verification": "Cloudflare",
    "captcha-delivery.com": "DataDome",
    "/_sec/cp_challenge": "Akamai",
    "_Incapsula_Resource": "Imperva",
    "px-captcha": "PerimeterX",
    "awsWafCookieDomainList": "AWS WAF",
    "/punish?x5secdata": "Alibaba",
    "_____tmd_____": "Alibaba",
}
_ASKED = "script, style, template, noscript, title, h1, h2, input[type=password i]"
_ROOTS = "#root, #app, #__next, #__nuxt, #q-app, #main-app, app-root"
_TAG = re.compile(r"<[^<>]{1,500}>")
_MARKED = re.compile(r"<(title|h1|h2)[^<>]*>(.*?)</\1", re.IGNORECASE | re.DOTALL)
_BLANK = bytes(code for code in range(128) if chr(code).isspace())
_NUMBERS = re.compile(r"[0-9a-f]*\d[0-9a-f.:-]*", re.IGNORECASE)
_SAID = ("error", "message", "msg", "detail", "errmsg", "error_description")


def signals_of(document: Document, structure: str | None = None) -> Signals:
    """What a page looks like. Raises Permanent where its body cannot be what it says it is."""
    match document.content:
        case Content.BINARY:
            return Signals(0)
        case Content.JSON:
            return _of_json(document, structure)
        case Content.TEXT:
            return _of_text(document)
        case _:
            return _of_tree(document, structure)


def _of_tree(document: Document, structure: str | None) -> Signals:
    root = document.root
    hidden = scripts = 0
    headings: list[str] = []
    password = False
    for node in root.css(_ASKED):
        tag = node.tag
        if tag == "input":
            password = True
        elif tag in ("title", "h1", "h2"):
            if len(headings) < _MOST_HEADINGS:
                headings.append(_line(node.text()))
        else:
            scripts += tag == "script"
            hidden += _letters(node.text())
    letters = max(_letters(root.text()) - hidden, 0)
    title = root.css_first("title")
    letters = max(letters - (_letters(title.text()) if title else 0), 0)
    opening = text_of(root).strip() if letters <= SHORT else ""
    return Signals(
        letters,
        tuple(heading for heading in dict.fromkeys(headings) if heading),
        opening,
        _print(opening),
        structure,
        password,
        next((maker for sign, maker in _CHALLENGES.items() if sign in document.text), None) if opening else None,
        scripts,
        letters <= SHORT and scripts > 0 and any(not _letters(node.text()) for node in root.css(_ROOTS)),
    )


def _of_text(document: Document) -> Signals:
    text = document.text
    headings = [_line(_TAG.sub("", found)) for _, found in _MARKED.findall(text[:20_000])]
    plain = _TAG.sub(" ", text)
    letters = _letters(plain)
    opening = plain.strip() if letters <= SHORT else ""
    first = _line(plain.lstrip().partition("\n")[0])
    return Signals(letters, tuple(headings[:_MOST_HEADINGS] or [first]), opening, _print(opening))


def _of_json(document: Document, structure: str | None) -> Signals:
    value = document.json
    said = [value.get(name) for name in _SAID] if isinstance(value, dict) else []
    headings = tuple(_line(text) for text in said if isinstance(text, str) and text)
    return Signals(_letters(document.text), headings, structure=structure)


def _letters(text: str) -> int:
    if text.isascii():
        return len(text.encode().translate(None, _BLANK))
    return sum(map(len, text.split()))


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


def _print(opening: str) -> str | None:
    if not opening:
        return None
    return sha256(_NUMBERS.sub("#", " ".join(opening.split())).encode("utf-8", "surrogatepass")).hexdigest()

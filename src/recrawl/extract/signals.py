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
_SPACES = " \n\t\r\xa0\u3000"
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
_UNSEEN = "script, style, template, noscript, input[type=password i]"
_HEADINGS = ("title", "h1", "h2")
_ROOTS = "#root, #app, #__next, #__nuxt, #q-app, #main-app, app-root"
_TAG = re.compile(r"<[^<>]{1,500}>")
_MARKED = re.compile(r"<(title|h1|h2)[^<>]*>(.*?)</\1", re.IGNORECASE | re.DOTALL)
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
    unseen = root.css(_UNSEEN)
    headings = [node for node in (root.css_first(tag) for tag in _HEADINGS) if node]
    hidden = sum(_letters(node.text()) for node in unseen if node.tag != "input")
    letters = max(_letters(root.text()) - hidden - sum(_letters(n.text()) for n in headings if n.tag == "title"), 0)
    opening = text_of(root).strip() if letters <= SHORT else ""
    return Signals(
        letters,
        tuple(heading for heading in dict.fromkeys(_line(node.text()) for node in headings) if heading),
        opening,
        _print(opening),
        structure,
        password=any(node.tag == "input" for node in unseen),
        challenge=_challenge(document) if letters <= SHORT else None,
        scripts=(scripts := sum(node.tag == "script" for node in unseen)),
        shell=letters <= SHORT and scripts > 0 and any(not _letters(node.text()) for node in root.css(_ROOTS)),
    )


def _challenge(document: Document) -> str | None:
    return next((maker for sign, maker in _CHALLENGES.items() if sign in document.text), None)


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
    return len(text) - sum(map(text.count, _SPACES))


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


def _print(opening: str) -> str | None:
    if not opening:
        return None
    return sha256(_NUMBERS.sub("#", " ".join(opening.split())).encode("utf-8", "surrogatepass")).hexdigest()

"""The article of a page, where nothing is declared: main text, title, author, time and language.

Nothing depends on the day on which it is read, and nothing is guessed: the language is what the page says of itself,
the time what its metadata say; where they say nothing, htmldate's day from the page's markup and address.
"""

from __future__ import annotations

import re
from typing import Any

from recrawl.errors import Permanent
from recrawl.extract.content import Content
from recrawl.extract.document import Document
from recrawl.extract.jsonld import values_at
from recrawl.extract.text import text_of

_LONGEST = 2_000_000  # characters; so long a page takes some seconds
_LONGEST_TITLE = 300
_TIMES = (
    "article:published_time",
    "og:published_time",
    "datepublished",
    "date",
    "dc.date.issued",
    "dc.date",
    "dcterms.created",
    "dcterms.date",
    "pubdate",
    "publishdate",
    "parsely-pub-date",
    "sailthru.date",
    "citation_publication_date",
)
_MANY_TAGS = 8_000  # beyond, the thorough way grows with the square of the paragraphs
# htmldate takes days after "today" for wrong; today must not matter.
_DATES = {"original_date": True, "extensive_search": False, "min_date": "1995-01-01", "max_date": "2100-01-01"}


def read_article(document: Document) -> dict[str, Any]:
    """The raw fields of an `Article`; what the page does not tell is left out.

    Raises Permanent for a body that holds no article: JSON, XML, binary.
    """
    if document.content is Content.HTML:
        found = _of_html(document)
    elif document.content is Content.TEXT:
        found = _of_text(document.text)
    else:
        raise Permanent(
            f"the body is {document.content}, and no article can be read from it",
            place=document.page.url,
            action="Declare a Record for such pages, or keep them out with match or skip.",
        )
    return {"url": document.page.url} | {name: value for name, value in found.items() if value and value.strip()}


def _of_html(document: Document) -> dict[str, str | None]:
    import trafilatura

    if len(document.text) > _LONGEST:
        action = "Declare a Record for such pages, or keep them out with match or skip."
        raise Permanent(
            f"a page of {len(document.text):,} characters is no article", place=document.page.url, action=action
        )
    _ = document.root  # within bounds?
    try:
        article = trafilatura.bare_extraction(
            document.text,
            url=document.page.url,
            fast=document.text.count("<") > _MANY_TAGS,
            include_comments=False,
            with_metadata=True,
            date_extraction_params=dict(_DATES),
        )
    except Exception as error:  # the library's own mistakes must not end a worker
        raise Permanent(
            f"the article could not be told from the page: {type(error).__name__}: {error}",
            place=document.page.url,
            action="Declare a Record for such pages.",
        ) from error
    main = {name: getattr(article, name, None) for name in ("title", "author", "date", "text")}
    body = document.root.css_first("body")
    return {
        "title": main["title"],
        "author": main["author"],
        "published": _published(document) or main["date"],
        "language": _language(document),
        "text": main["text"] or (text_of(body).strip() if body else None),
    }


def _published(document: Document) -> str | None:
    told = values_at(document.jsonld, "datePublished")
    for name in _TIMES:
        told += document.metas.get(name, [])
    for node in document.root.css('[itemprop~="datePublished"], time[pubdate]'):
        given = node.attributes
        told.append(given.get("content") or given.get("datetime") or text_of(node))
    return next((value for value in told if isinstance(value, str) and value.strip()), None)


def _language(document: Document) -> str | None:
    given = document.root.attributes
    told = [given.get("lang"), given.get("xml:lang"), *document.metas.get("content-language", [])]
    told += [value.replace("_", "-") for value in document.metas.get("og:locale", [])]
    return next((value for value in told if value and value.strip()), None)


def _of_text(text: str) -> dict[str, str | None]:
    """Plain text or Markdown: its title is the first heading, or the first line."""
    lines = iter(text.removeprefix("\ufeff").splitlines())
    first: str | None = None
    fenced = False
    before = ""
    for number, line in enumerate(lines):
        bare = line.strip()
        if number == 0 and bare == "---" and re.search(r"^---\s*$", text[4:], re.MULTILINE):
            # Front matter is no text; its end is known to come.
            while next(lines).strip() != "---":
                pass
            continue
        if bare.startswith(("```", "~~~")):
            fenced = not fenced
        heading = re.fullmatch(r"#{1,6}\s+(.*?)\s*#*", bare)
        if heading and not fenced:
            return {"title": heading[1], "text": text}
        if before and not fenced and re.fullmatch(r"=+|-{2,}", bare):
            return {"title": before, "text": text}
        before = bare
        first = first or bare
    return {"title": first if first and len(first) <= _LONGEST_TITLE else None, "text": text}

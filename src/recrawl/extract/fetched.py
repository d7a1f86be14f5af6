"""What a user's own reader function is given."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recrawl.declare.specs import Selector
from recrawl.extract.document import Document
from recrawl.extract.select import Scope, select


class Fetched:
    """A page that was fetched, for a function that reads records out of it. It never touches the network."""

    def __init__(self, document: Document) -> None:
        self._document = document

    @property
    def url(self) -> str:
        """The page's canonical URL."""
        return self._document.page.url

    @property
    def final_url(self) -> str:
        """Where the body came from, after redirects."""
        return self._document.page.final_url

    @property
    def body(self) -> bytes:
        """The bytes, after Content-Encoding."""
        return self._document.page.body

    @property
    def content_type(self) -> str | None:
        return self._document.page.content_type

    @property
    def fetched_at(self) -> datetime:
        """When it was fetched, on a replay too."""
        return self._document.page.fetched_at

    @property
    def text(self) -> str:
        """The body as text. Raises Permanent for binary bodies."""
        return self._document.text

    def json(self) -> Any:
        """The value of a JSON body. Raises Permanent where it is none."""
        return self._document.json

    def css(self, selector: str) -> list[str]:
        """All values that a CSS selector finds, as in fields: `h1::text`, `a::attr(href)`."""
        found = select(Selector("css", (selector,)), Scope(self._document))
        return [str(value) for value in found]

    def join(self, link: str) -> str | None:
        """A link of this page, made absolute; None for what is no link to the web."""
        return self._document.join(link)

"""What is read where nothing is declared: the article of a page."""

from __future__ import annotations

from recrawl.declare.record import Record
from recrawl.declare.values import Moment, Url


class Article(Record, table="articles", key="url"):
    """The main text of a page and who wrote it when, as far as the page tells."""

    url: Url
    title: str | None
    author: str | None
    published: Moment | None
    language: str | None
    text: str

"""The article of a page, read where nothing is declared."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest

from recrawl.declare import Source, Urls
from recrawl.errors import Permanent
from recrawl.extract.page import extract
from recrawl.model.fetched import Page

URL = "https://site.example/2026/a-1"
SENTENCES = "".join(
    f"<p>Paragraph {number} of the story tells at some length what happened in the harbour that night.</p>"
    for number in range(6)
)


def article(body: str | bytes, content_type: str | None = "text/html", year: int = 2026) -> dict[str, Any]:
    data = body.encode() if isinstance(body, str) else body
    fetched = Page(URL, URL, data, content_type, datetime(year, 3, 1, tzinfo=UTC))
    (row,) = extract(fetched, Source("s", find=Urls([URL]))).rows
    assert row.spec.table == "articles"
    return row.values


def html(head: str = "", body: str = "", lang: str = "") -> str:
    return f"""<html {lang}><head><title>The harbour - Site</title>{head}</head><body>
        <nav><a href=/>Home</a> <a href=/news>All news</a></nav>
        <article><h1>The harbour</h1>{body}{SENTENCES}</article><footer>All rights reserved</footer></body></html>"""


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ('{"a": 1}', "application/json"),
        (b"%PDF-1.7 ...", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n\x00", "image/png"),
        ('<?xml version="1.0"?><rss><channel/></rss>', "application/rss+xml"),
        ("<urlset></urlset>", None),
    ],
)
def test_what_holds_no_article_is_refused_with_a_reason(body: str | bytes, content_type: str | None) -> None:
    with pytest.raises(Permanent, match="no article can be read from it") as caught:
        article(body, content_type)
    assert caught.value.place == URL
    assert "match or skip" in caught.value.action


@pytest.mark.parametrize("body", ["", "   ", "<html><body></body></html>", "<script>x</script>"])
def test_a_page_without_text_gives_an_article_without_text(body: str) -> None:
    assert article(body) == {"url": URL}


def test_the_main_text_is_told_from_what_stands_around_it() -> None:
    found = article(html(lang='lang="en-GB"', head='<meta name="author" content="Ann Lee">'))
    assert found["title"] == "The harbour"
    assert found["author"] == "Ann Lee"
    assert found["language"] == "en-GB"
    assert "Paragraph 5 of the story" in found["text"]
    assert "All news" not in found["text"]
    assert "published" not in found


@pytest.mark.parametrize(
    ("head", "body", "published"),
    [
        (
            '<meta property="article:published_time" content="2026-01-02T03:04:05+08:00">',
            "",
            "2026-01-02T03:04:05+08:00",
        ),
        ('<script type="application/ld+json">{"datePublished": "2026-01-02T03:04Z"}</script>', "", "2026-01-02T03:04Z"),
        ("", '<time itemprop="datePublished" datetime="2026-01-02 03:04">yesterday</time>', "2026-01-02 03:04"),
        ("", "<time pubdate>2 January 2026</time>", "2 January 2026"),
        ('<meta name="DC.date" content="2026-01">', "", "2026-01"),
    ],
)
def test_the_time_is_what_the_page_tells_word_for_word(head: str, body: str, published: str) -> None:
    assert article(html(head, body))["published"] == published


@pytest.mark.parametrize(
    ("lang", "head", "language"),
    [
        ("", '<meta property="og:locale" content="zh_CN">', "zh-CN"),
        ("", '<meta http-equiv="content-language" content="de">', "de"),
        ("lang=''", "", None),
    ],
)
def test_the_language_is_only_what_the_page_tells(lang: str, head: str, language: str | None) -> None:
    assert article(html(head, lang=lang)).get("language") == language


def test_a_day_that_is_yet_to_come_is_read_like_any_other() -> None:
    page = html('<meta property="article:modified_time" content="2091-05-06">', "<p>Published on 3 May 2091</p>")
    assert article(page, year=2026) == article(page, year=2092)
    assert article(page)["published"] == "2091-05-06"


def test_a_page_of_very_many_tags_is_read_in_time() -> None:
    found = article("<html><body>" + "<div><div>word</div></div>" * 6_000)
    assert found["text"].count("word") == 6_000


def test_a_page_too_long_for_an_article_is_refused() -> None:
    with pytest.raises(Permanent, match="is no article"):
        article("<p>word</p>" * 300_000)


def test_a_page_that_the_library_fails_on_is_refused_and_ends_nothing() -> None:
    with (
        patch("trafilatura.bare_extraction", side_effect=RecursionError("too deep")),
        pytest.raises(Permanent, match="RecursionError: too deep"),
    ):
        article(html())


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# The *harbour* #\n\nText.\n", "The *harbour*"),
        ("First line\n\n## Heading\n", "Heading"),
        ("The harbour\n===========\n\nText\n", "The harbour"),
        ("\n\n  First line \nsecond\n", "First line"),
        ("---\ntitle: x\n---\n\n# Real\n", "Real"),
        ("---\nno front matter\n", "---"),
        ("```\n# comment\n```\n# Real\n", "Real"),
        ("x" * 400 + "\nshort\n", None),
    ],
)
def test_plain_text_and_markdown_have_their_heading_as_title(text: str, title: str | None) -> None:
    for content_type in ("text/markdown", "text/plain; charset=utf-8"):
        assert article(text, content_type) == {"url": URL, "text": text, **({"title": title} if title else {})}

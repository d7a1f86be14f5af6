"""robots.txt: what may be fetched."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.fetch.robots import crawl_delay, robots_allows, robots_sitemaps, rules_for_status

# docs/decisions/robots.md: in these the RFC and Google's parser say otherwise.
_CONTRADICTED = "TestProtego::test_grouping_unknown_keys"


def text_of(value: Any) -> str:
    found: str = value if isinstance(value, str) else value["latin1"]
    return found


@pytest.mark.parametrize("table", ["google", "protego"])
def test_every_row_of_the_public_tables_is_right(cases: Path, table: str) -> None:
    rows = json.loads((cases / "robots" / f"{table}.json").read_text())["cases"]
    usable = [row for row in rows if row["agent"] and row["url"] and row["test"] != _CONTRADICTED]
    assert len(usable) > 100
    wrong = [
        (row["test"], row["agent"], row["url"])
        for row in usable
        if robots_allows(text_of(row["robots"]), text_of(row["agent"]), text_of(row["url"])) != row["allowed"]
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "agent", "url", "allowed"),
    [
        ("", "recrawl", "https://s.example/a", True),
        ("User-agent: *\nDisallow: /a", "recrawl", "https://s.example/abc", False),
        ("User-agent: *\nDisallow: /a", "recrawl", "https://s.example/A", True),
        ("User-agent: *\nDisallow:", "recrawl", "https://s.example/a", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "recrawl", "https://s.example/a/b/c", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "recrawl", "https://s.example/a", True),
        ("User-agent: *\nDisallow: /*.pdf$", "recrawl", "https://s.example/x.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "recrawl", "https://s.example/x.pdf?y", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: recrawl\nAllow: /", "recrawl/1.0", "https://s.example/a", True),
        ("User-agent: other\nUser-agent: recrawl\nDisallow: /", "recrawl", "https://s.example/a", False),
        ("User-agent: *\nDisallow: /b%20c", "recrawl", "https://s.example/b c", False),
        ("User-agent: *\nDisallow: /~x", "recrawl", "https://s.example/%7Ex", False),
        ("User-agent: *\nDisallow: /a?b=1", "recrawl", "https://s.example/a?b=12", False),
        ("User-agent: *\nDisallow: /", "recrawl", "https://s.example/robots.txt", True),
        ("User-agent: *\rDisallow: /a\r", "recrawl", "https://s.example/a", False),
        ("\ufeffUser-agent: *\nDisallow: /a", "recrawl", "https://s.example/a", False),
        ("<!doctype html><title>Log in</title>", "recrawl", "https://s.example/a", True),
        ("User-agent: *\nUnknown: x\nDisallow: /a", "recrawl", "https://s.example/a", False),
    ],
)
def test_the_longest_rule_of_the_fitting_group_counts(text: str, agent: str, url: str, allowed: bool) -> None:
    assert robots_allows(text, agent, url) is allowed


def test_sitemaps_are_absolute_each_once_and_belong_to_no_group() -> None:
    text = "Sitemap: /a.xml\nUser-agent: x\nSitemap: https://s.example/a.xml\nsitemap: https://cdn.example/b.xml"
    assert robots_sitemaps(text, "https://s.example") == ["https://s.example/a.xml", "https://cdn.example/b.xml"]


def test_a_crawl_delay_belongs_to_its_group() -> None:
    text = "User-agent: a\nCrawl-delay: 3\n\nUser-agent: *\nCrawl-delay: nonsense"
    assert crawl_delay(text, "a") == 3.0
    assert crawl_delay(text, "recrawl") is None


def test_a_missing_file_allows_all_and_a_broken_server_nothing() -> None:
    forbidding = "User-agent: *\nDisallow: /"
    assert rules_for_status(200, forbidding) == forbidding
    for status in (401, 403, 404, 410):
        assert robots_allows(rules_for_status(status, forbidding), "recrawl", "https://s.example/a")
    assert not robots_allows(rules_for_status(503, ""), "recrawl", "https://s.example/a")


def test_a_pattern_of_many_stars_costs_no_more_than_its_length() -> None:
    text = "User-agent: *\nDisallow: /" + "*a" * 5_000 + "b"
    started = time.monotonic()
    assert robots_allows(text, "recrawl", "https://s.example/" + "a" * 15_000)
    assert time.monotonic() - started < 2


@given(st.text(), st.text(), st.text())
def test_no_text_raises(text: str, agent: str, url: str) -> None:
    assert robots_allows(text, agent, url) in (True, False)

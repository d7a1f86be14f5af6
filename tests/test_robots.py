"""robots.txt: what may be fetched."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.fetch.robots import MOST, crawl_delay, robots_allows, robots_sitemaps, rules_for_status

SITE = "https://s.example"
ALL_FORBIDDEN = "User-agent: *\nDisallow: /\n"


def text_of(value: Any) -> str:
    found: str = value if isinstance(value, str) else value["latin1"]
    return found


def contradicts_the_rfc(row: dict[str, Any]) -> bool:
    """docs/decisions/robots.md: the RFC and a row of Google's table say otherwise."""
    return (row["test"], row["agent"]) == ("TestProtego::test_grouping_unknown_keys", "agent")


@pytest.mark.parametrize(("table", "contradictions"), [("google", 0), ("protego", 3)])
def test_every_row_of_the_public_tables_is_right(cases: Path, table: str, contradictions: int) -> None:
    rows = json.loads((cases / "robots" / f"{table}.json").read_text(encoding="utf-8"))["cases"]
    assert len(rows) > 100
    assert sum(map(contradicts_the_rfc, rows)) == contradictions
    wrong = [
        (row["test"], row["agent"], row["url"])
        for row in rows
        if robots_allows(text_of(row["robots"]), row["agent"], text_of(row["url"])) != row["allowed"]
        and not contradicts_the_rfc(row)
    ]
    assert wrong == []


def test_every_crawl_delay_of_the_public_table_is_right(cases: Path) -> None:
    rows = json.loads((cases / "robots" / "protego.json").read_text(encoding="utf-8"))["other"]
    delays = [row for row in rows if row["what"] == "crawl_delay"]
    assert delays
    assert [crawl_delay(row["robots"], row["agent"]) for row in delays] == [row["value"] for row in delays]


# Texts that are hostile, or no robots.txt at all


@given(st.text(), st.text(), st.text())
def test_no_text_raises(text: str, agent: str, url: str) -> None:
    assert robots_allows(text, agent, url) in (True, False)


@given(st.text(), st.lists(st.sampled_from(["*", "$", "/a", "%24", "%2a", "%", "é", "\ud800", "?", "#"])).map("".join))
def test_no_pattern_raises(path: str, pattern: str) -> None:
    assert robots_allows(f"User-agent: *\nDisallow: {pattern}", "recrawl", path) in (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "User-agent: *\nDisallow: /" + "*a" * 5_000 + "b",
        "User-agent: *\n" + "".join(f"Disallow: *a*a*a*b{n}\n" for n in range(20_000)),
        "".join(f"User-agent: a{n}\n" for n in range(14_000)) + "".join(f"Allow: /{n}\n" for n in range(14_000)),
        "User-agent: *\nDisallow:" + " " * 400_000 + "/",
        "\r" * 400_000,
    ],
    ids=["many stars", "many rules with stars", "many agents for many rules", "spaces", "empty lines"],
)
def test_a_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    started = time.monotonic()
    assert robots_allows(text, "recrawl", f"{SITE}/" + "a" * 15_000)
    assert time.monotonic() - started < 5


def test_what_lies_beyond_the_limit_is_not_read_and_a_line_cut_by_it_neither() -> None:
    head = "User-agent: *\nDisallow: /a\n"
    # The cut falls behind `Disallow: /`, which would forbid the whole site.
    cut = head + "#" * (MOST - len(head) - len("\nDisallow: /")) + "\nDisallow: /private\nDisallow: /b\n"
    assert cut[:MOST].endswith("\nDisallow: /")
    assert not robots_allows(cut, "recrawl", f"{SITE}/a")
    assert robots_allows(cut, "recrawl", f"{SITE}/b")


@pytest.mark.parametrize(
    "text",
    ["", "\ufeff", "<!doctype html><title>Log in</title>\n<p>Disallow: /</p>", '{"error": "not found"}', "\0" * 99],
)
def test_a_text_without_rules_allows_everything(text: str) -> None:
    assert robots_allows(text, "recrawl", f"{SITE}/a")
    assert crawl_delay(text, "recrawl") is None
    assert robots_sitemaps(text, SITE) == []


@pytest.mark.parametrize("start", ["\ufeff", "ï»¿", "", "\n\n  "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_byte_order_marks_and_all_line_ends_are_read(start: str, end: str) -> None:
    text = start + end.join(["User-agent: *", "Disallow: /a", ""])
    assert not robots_allows(text, "recrawl", f"{SITE}/a")
    assert robots_allows(text, "recrawl", f"{SITE}/b")


@pytest.mark.parametrize("line", ["disallow /a", "DISALLOW : /a", "  Disallow:/a", "disalow: /a", "Disallow: /a # why"])
@pytest.mark.parametrize("agent", ["user-agent *", "User agent: *", "useragent:*", "USER-AGENT: * # all"])
def test_careless_spelling_is_understood(agent: str, line: str) -> None:
    assert not robots_allows(f"{agent}\n{line}\n", "recrawl", f"{SITE}/a")
    assert robots_allows(f"{agent}\n{line}\n", "recrawl", f"{SITE}/b")


def test_a_line_longer_than_google_s_limit_is_cut() -> None:
    text = "User-agent: *\nDisallow: /" + "a" * 20_000
    assert not robots_allows(text, "recrawl", f"{SITE}/" + "a" * 17_000)


# Whom a group means


@pytest.mark.parametrize(
    ("name", "agent", "fits"),
    [
        ("recrawl", "recrawl", True),
        ("ReCrawl", "recrawl/0.1 (+https://recrawl.example)", True),
        ("recrawl/2.0", "recrawl/0.1", True),
        ("recrawl, of all robots", "recrawl", True),
        ("*recrawl*", "recrawl", True),
        ("recrawl", "Mozilla/5.0 (compatible; recrawl/0.1; +https://recrawl.example/other)", True),
        ("recrawl", "recrawl-images", True),
        ("recrawl-images", "recrawl", False),
        ("re", "recrawl", False),
        ("crawl", "recrawl", False),
        ("recrawler", "recrawl", False),
        ("example", "recrawl/0.1 (+https://recrawl.example/other)", False),
        ("", "recrawl", False),
        ("recrawl", "", False),
        ("爬虫", "爬虫/1.0", True),
    ],
)
def test_a_group_means_the_agent_whose_product_token_it_names(name: str, agent: str, fits: bool) -> None:
    assert robots_allows(f"User-agent: {name}\nDisallow: /\n", agent, f"{SITE}/a") is not fits


def test_an_agent_with_a_group_of_its_own_does_not_heed_the_group_of_all() -> None:
    text = f"{ALL_FORBIDDEN}\nUser-agent: recrawl\nDisallow: /a\n"
    assert robots_allows(text, "recrawl", f"{SITE}/b")
    assert not robots_allows(text, "other", f"{SITE}/b")


def test_the_most_telling_name_counts_wherever_it_stands() -> None:
    text = "User-agent: recrawl-news\nDisallow: /a\n\nUser-agent: recrawl\nDisallow: /b\n"
    assert robots_allows(text, "recrawl-news", f"{SITE}/b")
    assert not robots_allows(text, "recrawl-news", f"{SITE}/a")


@pytest.mark.parametrize(
    ("agent", "own"),
    [
        ("recrawl/0.1 library/3.14", "recrawl"),
        ("library/3.14 recrawl/0.1", "library"),
        ("Mozilla/5.0 (compatible; recrawl/0.1)", "recrawl"),
        ("Mozilla/5.0 (Some Device)", "mozilla"),
    ],
)
def test_of_the_products_of_a_header_the_most_significant_with_a_group_counts(agent: str, own: str) -> None:
    text = "".join(f"User-agent: {name}\nDisallow: /{name}\n" for name in ("mozilla", "library", "recrawl"))
    forbidden = [name for name in ("mozilla", "library", "recrawl") if not robots_allows(text, agent, f"{SITE}/{name}")]
    assert forbidden == [own]


def test_an_agent_of_several_words_has_only_a_group_without_a_colon() -> None:
    assert not robots_allows("user agent odd robot\ndisallow /a", "odd robot", f"{SITE}/a")
    assert robots_allows("User-agent: odd robot\nDisallow: /a", "odd robot", f"{SITE}/a")


def test_groups_of_one_name_are_one() -> None:
    text = "User-agent: recrawl\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\nUser-agent: recrawl\nDisallow: /b\n"
    assert [robots_allows(text, "recrawl", f"{SITE}/{path}") for path in "abc"] == [False, False, True]


@pytest.mark.parametrize("between", ["Sitemap: /s.xml", "Crawl-delay: 2", "Unknown: x", "", "# remark", "nonsense"])
def test_only_rules_end_a_list_of_agents(between: str) -> None:
    text = f"User-agent: recrawl\n{between}\nUser-agent: other\nDisallow: /a\n"
    assert not robots_allows(text, "recrawl", f"{SITE}/a")


def test_an_empty_rule_ends_a_list_of_agents() -> None:
    assert robots_allows("User-agent: recrawl\nDisallow:\nUser-agent: other\nDisallow: /\n", "recrawl", f"{SITE}/a")


def test_rules_before_any_agent_are_nobody_s() -> None:
    assert robots_allows("Disallow: /a\nUser-agent: *\nDisallow: /b\n", "recrawl", f"{SITE}/a")


# Which rule counts


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("Disallow: /a", "/abc", False),
        ("Disallow: /a", "/A", True),
        ("Disallow: /a", "/b/a", True),
        ("Disallow:", "/a", True),
        ("Disallow: /", "", False),
        ("Disallow: /", "?q", False),
        ("Disallow: /", "/robots.txt", True),
        ("Disallow: /a?b=1", "/a?b=12", False),
        ("Disallow: /a;b", "/a;b?c", False),
        ("Disallow: /*?", "/a?", False),
        ("Disallow: /#a", "/b", False),
        ("Disallow: private/", "/private/a", False),
        # The longest pattern wins, of equals the allowing one.
        ("Disallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("Allow: /a/b\nDisallow: /a", "/a/c", False),
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Allow: /page\nDisallow: /*.html", "/page.html", False),
        ("Allow: /a\nDisallow: /a$", "/a", False),
        ("Disallow: /\nAllow: /$", "/", True),
        ("Disallow: /\nAllow: /x/index.html", "/x/", True),
        ("Disallow: /\nAllow: /x/index.html", "/x/y", False),
        # Stars and the end.
        ("Disallow: /*.pdf$", "/x.pdf", False),
        ("Disallow: /*.pdf$", "/x.pdf?y", True),
        ("Disallow: /a*b*c", "/a-b-c-d", False),
        ("Disallow: /a*b*c", "/a-c-b", True),
        ("Disallow: /a*b*b", "/ab", True),
        ("Disallow: /a*b*b*c", "/abc", True),
        ("Disallow: /ab*ba$", "/aba", True),
        ("Disallow: /ab*ba$", "/abba", False),
        ("Disallow: *", "/a", False),
        ("Disallow: /a**b", "/ab", False),
        # What stands for itself.
        ("Disallow: /a$", "/a$", False),
        ("Allow: /a$\nDisallow: /", "/a$b", False),
        ("Disallow: /a$b", "/a%24b", False),
        ("Disallow: /a%24", "/a$b", False),
        ("Disallow: /a%2Ab", "/a*b", False),
        ("Disallow: /a%2Ab", "/axb", True),
        # Escapes.
        ("Disallow: /b%20c", "/b c", False),
        ("Disallow: /~x", "/%7ex", False),
        ("Disallow: /caf%c3%a9", "/café", False),
        ("Disallow: /新闻", "/%E6%96%B0%E9%97%BB/1", False),
        ("Disallow: /caf%E9", "/café", True),
        ("Disallow: /a%2Fb", "/a/b", True),
        ("Disallow: /a%3x", "/a%3x", False),
    ],
)
def test_the_longest_rule_that_matches_decides(rules: str, path: str, allowed: bool) -> None:
    assert robots_allows(f"User-agent: *\n{rules}\n", "recrawl", SITE + path) is allowed
    if path.startswith("/"):
        assert robots_allows(f"User-agent: *\n{rules}\n", "recrawl", path) is allowed


@given(st.text("ab", max_size=8), st.text("ab*", max_size=6), st.booleans())
def test_a_pattern_matches_what_the_regular_expression_that_it_stands_for_matches(
    path: str, pattern: str, anchored: bool
) -> None:
    end = "$" * anchored
    expression = re.compile("/" + pattern.replace("*", ".*") + ("\\Z" if anchored else ""))
    text = f"User-agent: *\nDisallow: /{pattern}{end}\n"
    assert robots_allows(text, "recrawl", f"/{path}") is not bool(expression.match(f"/{path}"))


# What else it says


@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        ("Crawl-delay: 1.5", 1.5),
        ("crawl delay 3", 3.0),
        ("Crawl-delay: 0", 0.0),
        ("Crawl-delay: 2\nCrawl-delay: 5\nCrawl-delay: 1", 5.0),
        ("Crawl-delay: soon", None),
        ("Crawl-delay: -1", None),
        ("Crawl-delay: nan", None),
        ("Crawl-delay: inf", None),
        ("Crawl-delay: 1e300", None),
        ("Crawl-delay:", None),
    ],
)
def test_a_crawl_delay_is_a_number_of_seconds_or_nothing(lines: str, delay: float | None) -> None:
    assert crawl_delay(f"User-agent: *\n{lines}\n", "recrawl") == delay


def test_a_crawl_delay_belongs_to_the_agents_named_before_it() -> None:
    text = "User-agent: a\nCrawl-delay: 3\nUser-agent: b\nDisallow: /x\n\nUser-agent: *\nCrawl-delay: 9"
    assert [crawl_delay(text, agent) for agent in ("a", "b", "recrawl")] == [3.0, None, 9.0]


def test_sitemaps_are_absolute_each_once_and_belong_to_no_group() -> None:
    lines = [
        "Sitemap: /a.xml",
        "User-agent: x",
        "Sitemap: https://s.example/a.xml",
        "Disallow: /",
        "sitemap: https://cdn.example/B.xml?x=1 # a remark",
        "Site-map https://s.example/c.xml",
        "Sitemap: ftp://s.example/d.xml",
        "Sitemap: https://[::/e.xml",
    ]
    found = ["https://s.example/a.xml", "https://cdn.example/B.xml?x=1", "https://s.example/c.xml"]
    for base in (SITE, f"{SITE}/", f"{SITE}/deep/page?q"):
        assert robots_sitemaps("\n".join(lines), base) == found


@pytest.mark.parametrize(
    ("status", "allowed"),
    [(200, False), (203, False), (301, True), (401, True), (403, True), (404, True), (410, True)],
)
def test_a_missing_file_allows_all(status: int, allowed: bool) -> None:
    assert robots_allows(rules_for_status(status, ALL_FORBIDDEN), "recrawl", f"{SITE}/a") is allowed


@pytest.mark.parametrize("status", [500, 502, 503, 599])
def test_a_server_in_trouble_allows_nothing(status: int) -> None:
    assert not robots_allows(rules_for_status(status, "User-agent: *\nAllow: /"), "recrawl", f"{SITE}/a")

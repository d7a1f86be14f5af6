"""Identity of URLs: what is one page, what is another, and what is no page."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.decide.urls import MOST, BadUrl, canonical_url, host_of, origin, site_of, wire_url
from recrawl.declare.policies import Identity
from recrawl.errors import Permanent

SHOP = "https://shop.example"


def rows(cases: Path, table: str, part: str = "cases") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((cases / "url" / f"{table}.json").read_text(encoding="utf-8"))[part]
    assert found
    return found


# What is no page


@pytest.mark.parametrize(
    "url",
    [
        "", " ", "/relative", "shop.example/a", "//shop.example/a", "mailto:me@shop.example", "javascript:void(0)",
        "data:text/html,a", "ftp://shop.example/a", "file:///etc/passwd", "about:blank", "http://", "https://:443/",
        "https://?q", "http://shop.example:99999/", "http://shop.example:port/", "http://[::1/", "http://[1.2.3]/",
        "http://256.256.256.256/", "http://a b/", "http://a\0b/", "http://a<b/", "http://%zz/", "http://xn--a/",
        "http://shop.example/\ud800",
    ],
)  # fmt: skip
def test_what_is_no_http_url_is_refused(url: str) -> None:
    for form in (canonical_url, wire_url):
        with pytest.raises(BadUrl, match="is no"):
            form(url)


@pytest.mark.parametrize(
    ("url", "base"),
    [("mailto:me@shop.example", SHOP), ("a", "mailto:me@shop.example"), ("a", "/b"), ("http://[", SHOP)],
)
def test_what_leads_to_no_http_url_from_its_base_is_refused(url: str, base: str) -> None:
    with pytest.raises(BadUrl):
        canonical_url(url, base)


def test_a_refusal_is_a_value_error_for_good_and_names_url_and_base() -> None:
    with pytest.raises(ValueError, match=r"'http://\[oops' is no URL, nor beside 'https://shop\.example'") as caught:
        canonical_url("http://[oops", SHOP)
    assert isinstance(caught.value, Permanent)


@pytest.mark.parametrize(
    "url",
    ["ftp://me:s3cret@shop.example/", "http://me:s3cret@[", "http://me:s3/cr@et@shop.example/", "http://:s3cret@a b/"],
)
def test_a_refusal_does_not_tell_a_password(url: str) -> None:
    with pytest.raises(BadUrl) as caught:
        canonical_url(url)
    assert "s3" not in str(caught.value)


def test_a_url_of_8000_characters_is_a_url_and_one_beyond_the_limit_is_refused_with_its_length() -> None:
    long = f"{SHOP}/" + "a" * (8_000 - len(SHOP) - 1)
    assert canonical_url(long) == long
    assert len(canonical_url(f"{SHOP}/".ljust(MOST, "a"))) == MOST
    with pytest.raises(BadUrl, match=r"16,385 characters") as caught:
        canonical_url(f"{SHOP}/".ljust(MOST + 1, "a"))
    assert "16,384" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_limit_holds_for_what_a_url_becomes() -> None:
    for form in (canonical_url, wire_url):
        with pytest.raises(BadUrl, match="too long"):
            form("é" * 10_000, SHOP)
        with pytest.raises(BadUrl, match="too long"):
            form("b" * 10_000, f"{SHOP}/{'a' * 10_000}/")
    with pytest.raises(BadUrl, match="too long"):
        canonical_url("http://shop.example/".ljust(MOST, "a"), None, Identity(https=True))


# The tables


def test_every_pair_of_the_wpt_is_one_page(cases: Path) -> None:
    pairs = rows(cases, "wpt_http_pairs", "pairs")
    assert [
        (pair["input"], pair["base"], pair["href"])
        for pair in pairs
        if not pair.get("version_sensitive")
        and canonical_url(pair["input"], pair["base"]) != canonical_url(pair["href"])
    ] == []


def test_every_failure_of_the_wpt_is_refused(cases: Path) -> None:
    taken = []
    for row in rows(cases, "wpt_http_pairs", "failures"):
        try:
            taken.append((row["input"], canonical_url(row["input"], row["base"])))
        except BadUrl:
            continue
    assert taken == []


def test_every_hard_row_of_the_equivalences_holds(cases: Path) -> None:
    hard = [row for row in rows(cases, "equivalence") if not row.get("policy") and not row.get("option")]
    assert [
        row for row in hard if (canonical_url(row["a"]) == canonical_url(row["b"])) != (row["relation"] == "same")
    ] == []


def test_the_row_that_asks_for_fragments_holds_with_that_option(cases: Path) -> None:
    for row in rows(cases, "equivalence"):
        if row.get("option") == "keep_fragments":
            kept = {canonical_url(row[side], None, Identity(fragments=True)) for side in "ab"}
            assert len(kept) == 2
            assert canonical_url(row["a"]) == canonical_url(row["b"])


# One page


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        # Scheme, host, port (RFC 3986 section 6.2.2.1, WHATWG).
        ("HTTPS://Shop.Example", "https://shop.example/"),
        ("https://shop.example:443/a", "https://shop.example/a"),
        ("http://shop.example:80/a", "http://shop.example/a"),
        ("http://shop.example:0080/a", "http://shop.example/a"),
        ("https://shop.example:80/a", "https://shop.example:80/a"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://例子.example/", "https://xn--fsqu00a.example/"),
        ("https://s%68op.example/", "https://shop.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
        ("  https://shop.example/a\t\n", "https://shop.example/a"),
        ("https:\\\\shop.example\\a\\b", "https://shop.example/a/b"),
        # Path.
        ("https://shop.example/a/./b/../c", "https://shop.example/a/c"),
        ("https://shop.example/a/%2e%2E/c", "https://shop.example/c"),
        ("https://shop.example/../../a", "https://shop.example/a"),
        ("https://shop.example/A/a", "https://shop.example/A/a"),
        ("https://shop.example/a//b/", "https://shop.example/a//b/"),
        ("https://shop.example/index.html", "https://shop.example/index.html"),
        # Escapes.
        ("https://shop.example/%7Euser/%41%2d%2D%5F%2e", "https://shop.example/~user/A--_."),
        ("https://shop.example/café", "https://shop.example/caf%C3%A9"),
        ("https://shop.example/caf%c3%a9", "https://shop.example/caf%C3%A9"),
        ("https://shop.example/caf%E9", "https://shop.example/caf%E9"),
        ("https://shop.example/新闻?词=早", "https://shop.example/%E6%96%B0%E9%97%BB?%E8%AF%8D=%E6%97%A9"),
        ("https://shop.example/a%2fb%3fc%23d%25e", "https://shop.example/a%2Fb%3Fc%23d%25e"),
        ("https://shop.example/100%/a b", "https://shop.example/100%/a%20b"),
        ("https://shop.example/%2541%252e", "https://shop.example/%2541%252e"),
        ("https://shop.example/a/%2%65/b", "https://shop.example/a/%2%65/b"),
        # Fragment and query.
        ("https://shop.example/a#top", "https://shop.example/a"),
        ("https://shop.example/a?#", "https://shop.example/a"),
        ("https://shop.example/a?&&", "https://shop.example/a"),
        ("https://shop.example/a?b=2&a=1", "https://shop.example/a?a=1&b=2"),
        ("https://shop.example/a?b=2&a=z&b=1&a=y", "https://shop.example/a?a=z&a=y&b=2&b=1"),
        ("https://shop.example/a?B=1&b=&b", "https://shop.example/a?B=1&b=&b"),
        ("https://shop.example/a?q=a%26b%3Dc+d%20e", "https://shop.example/a?q=a%26b%3Dc+d%20e"),
        ("https://shop.example/a?u=http://x.example/?y", "https://shop.example/a?u=http://x.example/?y"),
        # Whom the page is for.
        ("https://me:s3cret@shop.example/a", "https://me@shop.example/a"),
        ("https://:s3cret@shop.example/a", "https://shop.example/a"),
        ("https://@shop.example/a", "https://shop.example/a"),
        ("https://m%65%40b%3ac:x@shop.example/a", "https://me%40b%3Ac@shop.example/a"),
    ],
)
def test_a_url_has_one_canonical_form(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical
    assert canonical_url(canonical) == canonical


@pytest.mark.parametrize(
    ("url", "base", "canonical"),
    [
        ("", f"{SHOP}/a/b?q#f", f"{SHOP}/a/b?q"),
        ("c", f"{SHOP}/a/b", f"{SHOP}/a/c"),
        ("../c", f"{SHOP}/a/b", f"{SHOP}/c"),
        ("?x=1", f"{SHOP}/a/b?q", f"{SHOP}/a/b?x=1"),
        ("//cdn.example/c", f"{SHOP}/a/b", "https://cdn.example/c"),
        ("HTTP://other.example", f"{SHOP}/a/b", "http://other.example/"),
        ("c", "https://me:s3cret@shop.example/a", "https://me@shop.example/c"),
    ],
)
def test_a_relative_url_is_resolved(url: str, base: str, canonical: str) -> None:
    assert canonical_url(url, base) == canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://shop.example/a", "http://shop.example/a"),
        ("https://shop.example/a", "https://www.shop.example/a"),
        ("https://shop.example/a", "https://shop.example/a/"),
        ("https://shop.example/a", "https://shop.example/A"),
        ("https://shop.example/?a=b", "https://shop.example/?a=B"),
        ("https://shop.example/?a=", "https://shop.example/?a"),
        ("https://shop.example/?a=1&a=2", "https://shop.example/?a=2&a=1"),
        ("https://shop.example/a%2Fb", "https://shop.example/a/b"),
        ("https://shop.example/caf%E9", "https://shop.example/caf%C3%A9"),
        ("https://me:x@shop.example/a", "https://you:x@shop.example/a"),
        ("https://me:x@shop.example/a", "https://shop.example/a"),
        ("https://shop.example:8080/a", "https://shop.example/a"),
    ],
)
def test_what_a_server_may_tell_apart_stays_apart(one: str, other: str) -> None:
    assert canonical_url(one) != canonical_url(other)


# Parameters that make no page


@pytest.mark.parametrize(
    "parameter",
    [
        "utm_source=x", "UTM_Campaign=", "utm_", "gclid=1", "dclid=1", "gbraid=1", "wbraid=1", "msclkid=1", "fbclid=1",
        "yclid=1", "ysclid=1", "twclid=1", "ttclid=1", "igshid=1", "mc_cid=1", "mc_eid=1", "_ga=1", "_gl=1",
        "spm=a.b.c", "scm=1", "vd_source=1", "jsessionid=1", "JSESSIONID=1", "PHPSESSID=1a2b", "ASPSESSIONIDQQ=1",
        "sid=0123456789abcdef", "sid=0123456789ABCDEF0", "%75tm_source=x", "utm%5Fsource=x",
    ],
)  # fmt: skip
def test_tracking_and_session_parameters_are_dropped(parameter: str) -> None:
    assert canonical_url(f"{SHOP}/a?{parameter}") == f"{SHOP}/a"
    assert canonical_url(f"{SHOP}/a?id=3&{parameter}&z=1") == f"{SHOP}/a?id=3&z=1"


@pytest.mark.parametrize(
    "parameter",
    [
        "mc=5", "utm=1", "ga=1", "gclid2=1", "xutm_source=1", "sid=12", "sid=0123456789abcde", "sid=0123456789abcdeg",
        "sid", "session=1", "ref=x", "cursor=eyJpZCI6MX0", "id=utm_source", "%26utm_source=x",
    ],
)  # fmt: skip
def test_parameters_that_may_make_a_page_are_kept(parameter: str) -> None:
    assert canonical_url(f"{SHOP}/a?{parameter}") == f"{SHOP}/a?{parameter}"


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("/a;jsessionid=1F", "/a"),
        ("/a;JSESSIONID=1F?b=1", "/a?b=1"),
        ("/a;jsessionid=1F;v=2/b", "/a;v=2/b"),
        ("/a;jsessionid=1;jsessionid=2", "/a"),
        ("/a;v=2", "/a;v=2"),
        ("/a;jsessionid", "/a;jsessionid"),
        # Without it these segments would lead one step up.
        ("/a/..;jsessionid=1/b", "/a/..;jsessionid=1/b"),
        ("/a/%2e;jsessionid=1", "/a/.;jsessionid=1"),
    ],
)
def test_a_session_in_the_path_is_dropped(url: str, canonical: str) -> None:
    assert canonical_url(SHOP + url) == SHOP + canonical
    assert canonical_url(SHOP + canonical) == SHOP + canonical


# Rules of a source


@pytest.mark.parametrize(
    ("rules", "url", "canonical"),
    [
        (Identity(drop=("ref", "share_*")), "/a?REF=x&share_token=1&refs=2", "/a?refs=2"),
        (Identity(keep=("utm_id", "_g*")), "/a?utm_id=1&utm_source=2&_ga=3", "/a?_ga=3&utm_id=1"),
        (Identity(keep=("sid",)), "/a?sid=0123456789abcdef", "/a?sid=0123456789abcdef"),
        (Identity(keep=("ref",), drop=("re*",)), "/a?ref=1&rex=2", "/a?ref=1"),
        (Identity(keep=("jsessionid",)), "/a;jsessionid=1?jsessionid=2", "/a;jsessionid=1?jsessionid=2"),
        (Identity(slash=True), "/a/b//?c", "/a/b?c"),
        (Identity(slash=True), "/", "/"),
        (Identity(slash=True), "/a/;jsessionid=1", "/a"),
        (Identity(fragments=True), "/a#!/item/%7e1", "/a#!/item/~1"),
        (Identity(fragments=True), "/a#", "/a"),
    ],
)
def test_a_source_can_fold_more_or_less(rules: Identity, url: str, canonical: str) -> None:
    assert canonical_url(SHOP + url, None, rules) == SHOP + canonical
    assert canonical_url(SHOP + canonical, None, rules) == SHOP + canonical


@pytest.mark.parametrize(
    ("rules", "url", "canonical"),
    [
        (Identity(www=True), "https://www.shop.example/", "https://shop.example/"),
        (Identity(www=True), "https://www.www.shop.example/", "https://shop.example/"),
        (Identity(www=True), "https://www.example/", "https://www.example/"),
        (Identity(www=True), "https://www2.shop.example/", "https://www2.shop.example/"),
        (Identity(www=True), "https://shop.www.example/", "https://shop.www.example/"),
        (Identity(https=True), "http://shop.example/", "https://shop.example/"),
        (Identity(https=True), "http://shop.example:8080/", "http://shop.example:8080/"),
        (Identity(https=True), "http://shop.example:443/", "http://shop.example:443/"),
    ],
)
def test_a_source_can_fold_its_hosts(rules: Identity, url: str, canonical: str) -> None:
    assert canonical_url(url, None, rules) == canonical
    assert canonical_url(canonical, None, rules) == canonical


# Always

PIECES = [
    "a", "B", "/", "//", ".", "..", "%2e", "%2%65", "%", "%%36", "%25", "%41", "%e9", "%C3%a9", "é", "新", "?", "&",
    "&&", "=", "#", ";", ";jsessionid=1", "utm_id=1", "sid=0123456789abcdef", "b=1", "a=2", "@", ":", "\\", " ", "\t",
    "+", "www.", "[", "|", "'", "\x01", "\u200d", "\U0001f600",
]  # fmt: skip
tails = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
rules_of_sources = st.builds(
    Identity,
    drop=st.sampled_from([(), ("b",), ("a*",)]),
    keep=st.sampled_from([(), ("utm_*",), ("jsessionid",)]),
    www=st.booleans(),
    slash=st.booleans(),
    https=st.booleans(),
    fragments=st.booleans(),
)


@given(st.sampled_from(["http", "https"]), st.sampled_from(["", "/", "?", ":80/", ":443/"]), tails, rules_of_sources)
@example("https", "/", "a/..;jsessionid=1/b", Identity())
@example("https", "/", "%2%65", Identity())
@example("http", ":443/", "", Identity(https=True))
def test_a_canonical_url_is_its_own_canonical_url(scheme: str, start: str, tail: str, rules: Identity) -> None:
    try:
        once = canonical_url(f"{scheme}://www.shop.example{start}{tail}", None, rules)
    except BadUrl:
        return
    assert canonical_url(once, None, rules) == once
    assert once.isascii()


@given(tails, tails)
def test_resolving_first_or_at_once_gives_one_page(path: str, tail: str) -> None:
    base = f"{SHOP}/{path}"
    try:
        found = wire_url(tail, base)
    except BadUrl:
        with pytest.raises(BadUrl):
            canonical_url(tail, base)
        return
    assert canonical_url(found) == canonical_url(tail, base)


@given(st.text(), st.none() | st.text() | st.just(SHOP))
def test_any_text_is_a_url_or_refused(url: str, base: str | None) -> None:
    try:
        found = canonical_url(url, base)
    except BadUrl:
        return
    assert found.startswith(("http://", "https://"))
    assert host_of(found)


def test_every_url_of_the_tables_keeps_its_canonical_form(cases: Path) -> None:
    found = [pair["href"] for pair in rows(cases, "wpt_http_pairs", "pairs")]
    for table in ("w3lib_canonicalize_url", "url_normalize_pairs", "courlan_pairs"):
        found += [row["args"][0] for row in rows(cases, table) if row["args"] and isinstance(row["args"][0], str)]
    found += [row["input"] for row in rows(cases, "crawler_commons_normalizer")]
    canonical = set()
    for url in found:
        try:
            canonical.add(canonical_url(url))
        except BadUrl:
            continue
    assert len(canonical) > 300
    assert {url for url in canonical if canonical_url(url) != url} == set()


def test_hostile_urls_cost_no_more_than_their_length() -> None:
    started = time.monotonic()
    for piece in ("%", "%%36", "%2e/", "../", "/..;jsessionid=", "&", "a&", "utm_&", ";", "www.", "@", ":", "\\", "新"):
        try:
            canonical_url(f"{SHOP}/{piece * (8_000 // len(piece))}", None, Identity(www=True, slash=True))
            canonical_url(f"{SHOP}/?{piece * (8_000 // len(piece))}")
            canonical_url(f"https://{piece * (8_000 // len(piece))}example.com/", None, Identity(www=True))
        except BadUrl:
            continue
    assert time.monotonic() - started < 2


# Parts


@pytest.mark.parametrize(
    ("url", "host", "at"),
    [
        ("https://shop.example/a?b=https://x.example/", "shop.example", "https://shop.example"),
        ("https://shop.example", "shop.example", "https://shop.example"),
        ("http://shop.example:8080?q@x", "shop.example:8080", "http://shop.example:8080"),
        ("https://me@shop.example/@you", "shop.example", "https://shop.example"),
        ("http://[::1]:8080/", "[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_host_and_origin_of_a_canonical_url(url: str, host: str, at: str) -> None:
    assert host_of(url) == host
    assert origin(url) == at


@pytest.mark.parametrize(
    ("found", "sent"),
    [
        ("https://shop.example/A?b=2&a=1&utm_source=x#top", "https://shop.example/A?b=2&a=1&utm_source=x"),
        ("https://shop.example/%7euser?", "https://shop.example/%7euser?"),
        ("https://me:s3cret@shop.example/a", "https://me@shop.example/a"),
        ("https://shop.example/a b", "https://shop.example/a%20b"),
    ],
)
def test_the_request_is_for_the_url_as_found_without_fragment_and_password(found: str, sent: str) -> None:
    assert wire_url(found) == sent


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("shop.example", "shop.example"),
        ("www.shop.example:8080", "shop.example"),
        ("www2.shop.example", "www2.shop.example"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[::1]:8080", "[::1]"),
        ("[2001:db8::80]", "[2001:db8::80]"),
    ],
)
def test_a_site_is_a_host_whatever_its_port_and_www(host: str, site: str) -> None:
    assert site_of(host) == site
    assert site_of(site) == site

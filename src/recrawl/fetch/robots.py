"""robots.txt by RFC 9309, with the matching that Google's parser made customary.

Where this reads more generously than the RFC, and why not otherwise: docs/decisions/robots.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from recrawl.decide.urls import BadUrl, fold_escapes, origin, wire_url

MOST = 500 * 1024
"""Characters of a robots.txt that are read, at least as much as RFC 9309 section 2.5 asks for."""

_LONGEST_LINE = 16_663
"""What Google's parser keeps of a line."""

_BREAK = re.compile(r"\r\n|\r|\n")
_RECORD = re.compile(
    r"\s*(?:(?P<agent>user[ -]?agent)|(?P<allow>allow)"
    r"|(?P<disallow>disallow|dissallow|dissalow|disalow|diasllow|disallaw)"
    r"|(?P<sitemap>site-?maps?)|(?P<delay>crawl[ -]?delay))\s*(?P<mark>[:\s])\s*(?P<value>.*)",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN = re.compile(r"[\w-]+")
_PRODUCT = re.compile(r"(?:^|[\s(;,])([\w-]+)/")
_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//[^/?#]*([^#]*)", re.IGNORECASE)
_VERBATIM = "/%:?#[]@!&'()+,;=~"
"""Neither `*` nor `$`: where they stand for themselves they are escaped (RFC 9309 section 2.2.3)."""


class _Rule(NamedTuple):
    weight: int
    allows: bool
    parts: tuple[str, ...]  # what stands between the stars
    anchored: bool


class _Group(NamedTuple):
    rules: tuple[_Rule, ...]  # the one that decides first, first
    delay: float | None


def robots_allows(text: str, agent: str, url: str) -> bool:
    """Whether `agent`, a product token or a whole User-Agent header, may fetch `url` by this robots.txt.

    The longest matching rule counts, of equals the allowing one (RFC 9309 section 2.2.2).
    """
    rules = _group(text, agent).rules
    if not rules:
        return True
    found = _URL.match(url)
    path = found[1] if found else url.partition("#")[0]
    if not path.startswith("/"):
        path = f"/{path}"
    if path.partition("?")[0] == "/robots.txt":
        return True
    path = _escaped(path)
    return next((rule.allows for rule in rules if _matches(rule, path)), True)


def crawl_delay(text: str, agent: str) -> float | None:
    """The Crawl-delay for an agent, in seconds, of several the longest; a customary extension."""
    return _group(text, agent).delay


def robots_sitemaps(text: str, base: str) -> list[str]:
    """The sitemaps that the robots.txt of the site of `base` names, absolute, each once."""
    beside = f"{origin(base)}/robots.txt"
    found: dict[str, None] = {}
    for record in _records(text):
        if record["sitemap"]:
            try:
                found[wire_url(record["value"], beside)] = None
            except BadUrl:
                continue
    return list(found)


def rules_for_status(status: int, text: str) -> str:
    """The rules that an answer to /robots.txt stands for: 4xx allows all, 5xx nothing (RFC 9309 section 2.3.1)."""
    if 200 <= status < 300:
        return text
    return "" if status < 500 else "User-agent: *\nDisallow: /"


@lru_cache(maxsize=64)
def _group(text: str, agent: str) -> _Group:
    """All that a robots.txt says to one agent: its groups of the same name are one (RFC 9309 section 2.2.1)."""
    records = list(_records(text))
    own = _own_name(agent, {name for record in records if record["agent"] for name in _names(record)})
    rules: dict[_Rule, None] = {}
    delays: list[float] = []
    listed = naming = False
    for record in records:
        if record["agent"]:
            # Of all other records, rules alone end a list of agents (RFC 9309 section 2.2.4).
            listed = own in _names(record) or (naming and listed)
            naming = True
        elif record["delay"]:
            delays += _delay(record["value"]) if listed else ()
        elif not record["sitemap"]:
            naming = False
            if listed and record["value"]:
                rules |= dict.fromkeys(_rules(record["value"], allows=bool(record["allow"])))
    return _Group(tuple(sorted(rules, key=lambda rule: (-rule.weight, not rule.allows))), max(delays, default=None))


def _records(text: str) -> Iterator[dict[str, str]]:
    """The lines that say something, as groups of _RECORD. A line that the limit cuts off says nothing."""
    lines = _BREAK.split(text[:MOST].removeprefix("\ufeff").removeprefix("ï»¿"))
    if len(text) > MOST:
        lines.pop()
    for line in lines:
        found = _RECORD.match(line[:_LONGEST_LINE].partition("#")[0].rstrip())
        if found:
            yield found.groupdict("")


def _names(record: dict[str, str]) -> set[str]:
    """Whom a User-agent line means: `*`, or a product token; without a colon perhaps all of the line."""
    value = record["value"].lower()
    if value == "*" or value[:2] in ("* ", "*\t"):
        return {"*"}
    token = _TOKEN.match(value.replace("*", ""))
    names = {token[0]} if token else set()
    return names if record["mark"] == ":" else names | {value}


def _own_name(agent: str, names: set[str]) -> str:
    """The most telling name that a robots.txt has for an agent, else `*`. The products of a User-Agent header stand in
    order of significance (RFC 9110 section 10.1.5), but for the Mozilla that all browsers call themselves."""
    text = agent.lower().replace("*", "")
    for product in sorted(_PRODUCT.findall(text) or [text], key="mozilla".__eq__):
        fitting = [name for name in names if _means(name, product)]
        if fitting:
            return max(fitting, key=len)
    return "*"


def _means(name: str, product: str) -> bool:
    """Whether a name is an agent's own, or that of its family: `hedwig` for `hedwig-images`, not for `hedwigs`."""
    return product.startswith(name) and (product == name or product[len(name)] in "-_0123456789")


def _delay(value: str) -> list[float]:
    try:
        seconds = float(value)
    except ValueError:
        return []
    return [seconds] if 0 <= seconds < 1e6 else []


def _rules(value: str, *, allows: bool) -> Iterator[_Rule]:
    pattern = value if value.startswith(("/", "*")) else f"/{value}"
    yield _rule(pattern, allows)
    folder, _, page = pattern.rpartition("/")
    if allows and page.startswith("index.htm"):
        yield _rule(f"{folder}/$", allows)
    elif pattern.endswith("$") and not allows:
        yield _rule(f"{pattern[:-1]}%24", allows)


def _rule(pattern: str, allows: bool) -> _Rule:
    anchored = pattern.endswith("$")
    parts = tuple(_escaped(part) for part in (pattern[:-1] if anchored else pattern).split("*"))
    return _Rule(sum(map(len, parts)) + len(parts) - 1 + anchored, allows, parts, anchored)


def _escaped(text: str) -> str:
    """One form of escapes for patterns and paths (RFC 9309 section 2.2.2): needless ones decoded, needed ones made."""
    return quote(fold_escapes(text).encode("utf-8", "surrogatepass"), safe=_VERBATIM)


def _matches(rule: _Rule, path: str) -> bool:
    """Whether a pattern matches from the start of a path. It takes for each star the shortest run that will do, which
    misses nothing, and never goes back."""
    first, *others = rule.parts
    if not path.startswith(first):
        return False
    at = len(first)
    if not others:
        return not rule.anchored or at == len(path)
    last = others.pop()
    for part in others:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if rule.anchored:
        return len(path) - len(last) >= at and path.endswith(last)
    return path.find(last, at) >= 0

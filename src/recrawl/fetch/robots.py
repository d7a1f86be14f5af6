"""robots.txt by RFC 9309, with the matching that Google's parser made customary."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote, urlsplit

MOST = 500 * 1024
"""Bytes of a robots.txt that are read (RFC 9309 section 2.5)."""

_LINE = re.compile(r"\r\n|\r|\n")
_AGENT = re.compile(r"[A-Za-z_-]+")
_SAFE = "/%:?#[]@!$&'()*+,;=~-._"
_NAMES = {
    "user-agent": "user-agent", "useragent": "user-agent", "user agent": "user-agent",
    "allow": "allow",
    "disallow": "disallow", "dissallow": "disallow", "dissalow": "disallow", "disalow": "disallow",
    "diasllow": "disallow", "disallaw": "disallow",
    "sitemap": "sitemap", "site-map": "sitemap",
    "crawl-delay": "crawl-delay", "crawldelay": "crawl-delay",
}  # fmt: skip


@dataclass(slots=True)
class _Group:
    rules: list[tuple[str, bool]] = field(default_factory=list)  # (pattern, allowed)
    delay: float | None = None


@dataclass(slots=True)
class _Rules:
    groups: dict[str, _Group] = field(default_factory=dict)
    sitemaps: list[str] = field(default_factory=list)

    def of(self, agent: str) -> _Group | None:
        """The group of an agent's product token, else that of `*`."""
        match = _AGENT.match(agent)
        return self.groups.get((match[0] if match else agent).lower()) or self.groups.get("*")


@lru_cache(maxsize=512)
def _parse(text: str) -> _Rules:
    rules = _Rules()
    current: list[_Group] = []
    naming = False
    for raw in _LINE.split(text[:MOST].removeprefix("\ufeff").removeprefix("ï»¿")):
        key, value = _split(raw)
        if key == "user-agent":
            if not naming:
                current = []
            naming = True
            current.append(rules.groups.setdefault(_token(value), _Group()))
        elif key == "sitemap":
            rules.sitemaps.append(value)
        elif key in ("allow", "disallow"):
            naming = False
            if value:
                for group in current:
                    group.rules.append((_escaped(value), key == "allow"))
        elif key == "crawl-delay":
            naming = False
            delay = _delay(value)
            for group in current:
                group.delay = delay if group.delay is None else group.delay
    return rules


def _split(raw: str) -> tuple[str | None, str]:
    line = raw.partition("#")[0].strip()
    key, colon, value = line.partition(":")
    if not colon:
        parts = line.split()
        if len(parts) != 2:
            return None, ""
        key, value = parts
    return _NAMES.get(key.strip().lower()), value.strip()


def _token(value: str) -> str:
    """The product token of a User-agent line: what follows its letters does not count (RFC 9309 section 2.2.1)."""
    if value.startswith("*") and (len(value) == 1 or value[1].isspace()):
        return "*"
    match = _AGENT.match(value)
    return match[0].lower() if match else value.lower()


def _delay(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e6 else None


def _escaped(path: str) -> str:
    """One form of escapes for patterns and paths: what is not ASCII is escaped as UTF-8, hex digits are upper case."""
    text = quote(path.encode("utf-8", "surrogateescape"), safe=_SAFE)
    return re.sub(r"%[0-9a-fA-F]{2}", lambda found: found[0].upper(), text)


def _matches(pattern: str, path: str) -> bool:
    """Whether a pattern with `*` and a final `$` matches from the start of a path; linear in the number of stars."""
    anchored = pattern.endswith("$")
    parts = (pattern[:-1] if anchored else pattern).split("*")
    if not path.startswith(parts[0]):
        return False
    at = len(parts[0])
    if len(parts) == 1:
        return not anchored or at == len(path)
    for part in parts[1:-1]:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if anchored:
        return len(path) - len(parts[-1]) >= at and path.endswith(parts[-1])
    return path.find(parts[-1], at) >= 0


def robots_allows(text: str, agent: str, url: str) -> bool:
    """Whether `agent` may fetch `url` by this robots.txt: the longest matching rule counts, of equals the allowing one
    (RFC 9309 section 2.2.2)."""
    group = _parse(text).of(agent)
    if group is None or not group.rules:
        return True
    path = _path(url)
    if path == "/robots.txt":
        return True
    best, allowed = -1, True
    for pattern, allow in group.rules:
        length = len(pattern)
        if (length > best or (length == best and allow)) and _matches(pattern, path):
            best, allowed = length, allow
    return allowed


def _path(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "/"
    path = parts.path if parts.scheme or parts.netloc else url.partition("?")[0].partition("#")[0]
    path = path if path.startswith("/") else f"/{path}"
    return _escaped(path + (f";{parts.params}" if getattr(parts, "params", "") else "") + _search(url))


def _search(url: str) -> str:
    before = url.partition("#")[0]
    return before[before.index("?") :] if "?" in before else ""


def crawl_delay(text: str, agent: str) -> float | None:
    """The Crawl-delay for an agent, in seconds; a customary extension."""
    group = _parse(text).of(agent)
    return group.delay if group else None


def robots_sitemaps(text: str, base: str) -> list[str]:
    """The sitemaps that a robots.txt names, absolute, each once."""
    from recrawl.decide.urls import BadUrl, wire_url

    found: dict[str, None] = {}
    for value in _parse(text).sitemaps:
        try:
            found[wire_url(value, f"{base}/robots.txt")] = None
        except BadUrl:
            continue
    return list(found)


def rules_for_status(status: int, text: str) -> str:
    """The rules that an answer to /robots.txt stands for: 4xx allows all, 5xx nothing (RFC 9309 section 2.3.1)."""
    if 200 <= status < 300:
        return text
    return "" if status < 500 else "User-agent: *\nDisallow: /"

"""Identity of URLs: which of them are one page.

WHATWG URL parsing (can_ada) first, then recrawl's own folding: unreserved escapes decoded, escapes in upper case, the
query sorted, tracking and session parameters dropped. Case of path and query stays: servers tell them apart.
"""

from __future__ import annotations

import re
from functools import lru_cache

import can_ada

from recrawl.declare.policies import Identity
from recrawl.errors import Permanent

MOST = 16_384
"""The longest URL, in characters, that is taken for one."""
_SHOWN = 200

_DROPPED = frozenset(
    ["gclid", "dclid", "gbraid", "wbraid", "msclkid", "fbclid", "yclid", "ysclid", "twclid", "ttclid", "igshid",
     "mc_cid", "mc_eid", "_ga", "_gl", "spm", "scm", "vd_source", "jsessionid", "phpsessid"]
)  # fmt: skip
_DROPPED_STEMS = ("utm_", "aspsessionid")
_SESSION = re.compile(r"[0-9a-fA-F]{16,}")
# Never after a dot segment: without its parameter `/..;jsessionid=1` would be one, and lead elsewhere.
_PATH_SESSION = re.compile(r"(?<!/\.)(?<!/\.\.);jsessionid=[^/;]*", re.IGNORECASE)
_WWW = re.compile(r"(?:www\.)+(?=[^.]+\.)")
_PORT = re.compile(r":[0-9]+\Z")
_PASSWORD = re.compile(r"(//[^:@]*):.*@", re.DOTALL)
_HEX = "0123456789ABCDEFabcdef"
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_FOLDED = {
    pair: chr(int(pair, 16)) if int(pair, 16) in _UNRESERVED else f"%{pair.upper()}"
    for pair in (high + low for high in _HEX for low in _HEX)
}
# Those that folding may change: all with a small letter, and those of ASCII characters. An escape right behind a stray
# `%` is left alone, or decoding it could make a new escape: %2%65.
_ESCAPE = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])%([0-9A-F][a-f]|[a-f][0-9A-Fa-f]|[2-7][0-9A-F])")


class BadUrl(Permanent, ValueError):
    """A text that is no http(s) URL of a page."""


def canonical_url(url: str, base: str | None = None, rules: Identity = Identity()) -> str:
    """The one form of all URLs of a page, absolute; `base` resolves relative ones, `rules` are the source's own.

    Applied twice it changes nothing. A password never stays; a user name does, since it tells pages apart. Raises
    BadUrl (a ValueError) for what is no http or https URL, or is longer than 16,384 characters, escapes included.
    """
    parsed = _parsed(url, base)
    protocol, host, port = parsed.protocol, parsed.hostname, parsed.port
    if rules.https and protocol == "http:" and port in ("", "80"):
        protocol, port = "https:", ""
    if rules.www:
        host = _WWW.sub("", host, count=1) if host.startswith("www.") else host
    path = fold_escapes(parsed.pathname)
    if ";" in path and not _listed(rules.keep, "jsessionid"):
        path = _PATH_SESSION.sub("", path)
    if rules.slash and len(path) > 1:
        path = path.rstrip("/") or "/"
    query = _query(parsed.search, rules)
    fragment = fold_escapes(parsed.hash) if rules.fragments else ""
    user = f"{fold_escapes(parsed.username)}@" if parsed.username else ""
    at = f":{port}" if port else ""
    return _bounded(f"{protocol}//{user}{host}{at}{path}{query}{fragment}")


def _parsed(url: str, base: str | None) -> can_ada.URL:
    _bounded(url)
    try:
        parsed = can_ada.parse(base) + url if base is not None else can_ada.parse(url)
    except (ValueError, TypeError):  # TypeError: a lone surrogate
        beside = f", nor beside {_shown(base)}" if base is not None else ""
        raise BadUrl(f"{_shown(url)} is no URL{beside}") from None
    if parsed.protocol not in ("http:", "https:") or not parsed.hostname:
        raise BadUrl(f"{_shown(url)} is no http or https URL")
    return parsed


def _bounded(url: str) -> str:
    if len(url) > MOST:
        raise BadUrl(f"{_shown(url)} is too long: {len(url):,} characters", action=f"The limit is {MOST:,}.")
    return url


def _shown(url: str) -> str:
    """A URL for an error message: its beginning, and nothing that can be a password."""
    text = _PASSWORD.sub(r"\1:***@", url)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def fold_escapes(text: str) -> str:
    """Decode escapes of unreserved characters, and write the others in upper case (RFC 3986 section 6.2.2)."""
    return _ESCAPE.sub(lambda found: _FOLDED[found[1]], text) if "%" in text else text


def _query(search: str, rules: Identity) -> str:
    if len(search) < 2:
        return ""
    text = fold_escapes(search[1:])
    kept = [part for part in text.split("&") if part and not _is_dropped(part, rules)]
    if len(kept) > 1:
        kept.sort(key=_name_of)
    return "?" + "&".join(kept) if kept else ""


def _name_of(part: str) -> str:
    return part.partition("=")[0]


def _is_dropped(part: str, rules: Identity) -> bool:
    name, _, value = part.partition("=")
    name = name.lower()
    if rules.keep and _listed(rules.keep, name):
        return False
    if name in _DROPPED or name.startswith(_DROPPED_STEMS) or (rules.drop and _listed(rules.drop, name)):
        return True
    return name == "sid" and _SESSION.fullmatch(value) is not None


def _listed(names: tuple[str, ...], name: str) -> bool:
    exact, stems = _compiled(names)
    return name in exact or name.startswith(stems)


@lru_cache(maxsize=64)
def _compiled(names: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    lower = [name.lower() for name in names]
    return (
        frozenset(name for name in lower if not name.endswith("*")),
        tuple(name[:-1] for name in lower if name.endswith("*")),
    )


def host_of(url: str) -> str:
    """Host, with its port where that is not the scheme's own: what pace and robots rules belong to.

    `url` is of the form that canonical_url and wire_url give.
    """
    rest = url.partition("://")[2]
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    return rest.rpartition("@")[2].lower()


def origin(url: str) -> str:
    """Scheme, host and port of a URL of the form that canonical_url and wire_url give."""
    return f"{url.partition('://')[0].lower()}://{host_of(url)}"


@lru_cache(maxsize=1024)
def site_of(host: str) -> str:
    """A host without port and leading `www.`: one site in a user's eyes. An IPv6 address keeps its brackets."""
    return _PORT.sub("", host).removeprefix("www.")


def wire_url(url: str, base: str | None = None) -> str:
    """The absolute form of a URL as browsers send it: nothing folded but what WHATWG parsing does.

    Neither a fragment nor a password stays: what is stored or shown holds no secret. Raises BadUrl.
    """
    parsed = _parsed(url, base)
    if parsed.password:
        parsed.password = ""
    href: str = parsed.href
    return _bounded(href.partition("#")[0])

"""What a reader can do about a trouble, by its kind."""

from __future__ import annotations

_BY_KIND = {
    "unknown_host": "Check the address for a typo, and this machine's name resolution.",
    "refused": "Nothing answers there: check address and port, or try again later.",
    "timeout": "The site did not answer in time: run the same command again later.",
    "tls": "The site's certificate is not accepted: check the address and this machine's clock.",
    "truncated": "The answer broke off: run the same command again.",
    "too_large": "The answer is beyond the bounds: narrow the source with match= or skip=.",
    "robots_unreachable": "Run it again later: without its robots.txt a host is left alone.",
    "no_document": "Look at the address in a browser: it is no sitemap and no feed.",
    "incomplete": "What it did list was taken in. Tell the site's owner, or run again later.",
    "emptied": "Nothing is deleted for it. Look at the address in a browser if it stays empty.",
    "unvouched": "Nothing is deleted for it: it is tried again by itself.",
    "nothing_found": "Name a sitemap, a feed or a list of URLs: `recrawl init` writes an example.",
    "paused": "Let it go on with `recrawl resume SOURCE`.",
    "throttled": "Run the same command again then: it goes on where it stopped.",
    "forbidden_address": "It is a private address: name its host in the declaration if you mean it.",
    "bad_redirect": "Look at the address in a browser, and declare the right one.",
    "too_many_redirects": "Look at the address in a browser, and declare the right one.",
    "quarantined": "See it: `recrawl show URL --body`. It is looked at again by itself.",
    "no_json": "See it: `recrawl dead show ID`. Mend what writes it, and push it again.",
    "no_record": "See it: `recrawl dead show ID`. Mend what writes it, and push it again.",
    "expired": "Let `recrawl run` or `recrawl serve` live, which take it up; then `recrawl dead replay ID`.",
    "killed_workers": "Each process that took it up was ended: look for its memory, then `recrawl dead replay ID`.",
    "line_too_long": "Push it in parts, or leave out what is not a field.",
    "http_403": "The site refuses us: ask its owner, or lower the pace.",
    "http_404": "Correct the address: https://SITE/robots.txt often names the sitemaps.",
    "http_410": "Correct the address: https://SITE/robots.txt often names the sitemaps.",
}
_BY_STAGE = {
    "discover": "Run the same command again; if it stays, open the address in a browser.",
    "fetch": "It is tried again by itself; if it stays, open the page in a browser.",
    "judge": "See it: `recrawl show URL --body`. It is looked at again by itself.",
    "extract": "Compare the page with your selectors; stored pages are then read again.",
    "clean": "Correct what reads the field, or make it `| None` (not the key); `dead replay` what was pushed; sync.",
}


def for_kind(kind: str) -> str:
    """The next step after a trouble of this kind."""
    return _BY_KIND.get(kind, _BY_STAGE["discover"])


def for_signature(signature: str) -> str:
    """The next step after dead letters of this signature, `stage:kind`."""
    stage, _, kind = signature.partition(":")
    return _BY_KIND.get(kind) or _BY_STAGE.get(stage, _BY_STAGE["fetch"])

"""Which page a URL is."""

from __future__ import annotations

from recrawl.decide.urls import canonical_url, host_of, wire_url
from recrawl.declare import Source
from recrawl.model.sighting import Sighting


def identify(source: Source, found: str, hint: str | None) -> Sighting:
    """The sighting that a URL as found makes. Raises ValueError for what is no http(s) URL."""
    url = canonical_url(found, None, source.identity)
    wire = url if found == url else wire_url(found)
    return Sighting(source.page_id_of_url(url) or url, url, wire, host_of(wire), hint)

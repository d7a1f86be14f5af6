"""recrawl's public functions in the form in which the shared cases score them."""

from __future__ import annotations

from recrawl.decide.urls import canonical_url
from recrawl.fetch.robots import robots_allows
from tests.cases_adapter_feeds import feed, rfc_date, sitemap
from tests.cases_adapter_values import count, price, stock, when

__all__ = ["canon", "count", "feed", "price", "rfc_date", "robots", "sitemap", "stock", "when"]


def canon(url: str, base: str | None = None) -> str:
    return canonical_url(url, base)


def robots(text: str, agent: str, url: str) -> bool:
    return robots_allows(text, agent, url)

"""The shared cases, scored by their own program over recrawl's public functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checks import failures

# A currency sign without a digit, wanted as an amount of 1: no amount can be right.
NO_AMOUNT = "price: price-parser known failures"
# What contradicts the RFC and Google's table; test_robots.py names the rows, docs/decisions/robots.md says why.
CONTRADICTED = "robots: protego"

CHECKS = {
    "url": 4,
    "sitemap": 2,
    "feed": 5,
    "robots": 2,
    "price": 5,
    "count": 1,
    "stock": 1,
    "time": 4,
    "rfc_date": 1,
}


@pytest.mark.parametrize("kind", CHECKS)
def test_every_case_of_this_kind_is_right(cases: Path, kind: str) -> None:
    found = failures(cases, kind)
    assert len(found) == CHECKS[kind], f"not all checks of {kind} ran"
    assert {name: wrong for name, wrong in found.items() if wrong and name not in (NO_AMOUNT, CONTRADICTED)} == {}

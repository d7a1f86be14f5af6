"""What run_checks.py scores: the value parsers, in the form that its rows are written in."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from recrawl.clean.count import parse_count
from recrawl.clean.price import parse_price
from recrawl.clean.stock import parse_stock
from recrawl.model.values import Stock


def price(text: str | None, currency_hint: str | None = None) -> tuple[Decimal | None, str | None]:
    found = parse_price(text, currency_hint)
    return (found.amount, found.currency) if found else (None, None)


def when(text: str, now_iso: str, tz: str) -> str | None:
    from recrawl.clean.moment import parse_moment

    moment = parse_moment(text, datetime.fromisoformat(now_iso), tz)
    return moment.isoformat() if moment else None


def count(text: str) -> int | Decimal | None:
    return parse_count(text)


def stock(text: str) -> str | None:
    # The rows know no "low": what can be bought is "in".
    state = parse_stock(text)
    return {Stock.UNKNOWN: None, Stock.LOW: "in"}.get(state, state.value)

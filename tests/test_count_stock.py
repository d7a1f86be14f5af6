"""Counts and stock words."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.clean.count import parse_count
from recrawl.clean.stock import parse_stock
from recrawl.model.values import Stock
from tests.checks import failures


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "赞",
        "暂无评论",
        "几百",
        "100-200人",
        "4.8 (1234)",
        "2024-01-02",
        "12:30",
        "v1.2.3",
        "H2O",
        "1.234",
        "一般",
        "9" * 300,
    ],
)
def test_a_text_without_one_clear_number_is_unknown_and_never_zero(text: str) -> None:
    assert parse_count(text) is None


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0", 0),
        ("1.2万+", 12_000),
        ("10W+", 100_000),
        ("10多万", 100_000),
        ("3 亿", 300_000_000),
        ("1亿2000万", 120_000_000),
        ("十万+", 100_000),
        ("三百", 300),
        ("1.5k views", 1_500),
        ("2.3M", 2_300_000),
        ("5 million", 5_000_000),
        ("2 lakh", 200_000),
        ("1,234 条评论", 1_234),
        ("1.234.567", 1_234_567),
        ("12,34,567", 1_234_567),
        ("（128）", 128),
        ("-5", -5),
        ("5 kg", 5),
        ("4.8/5", Decimal("4.8")),
        ("98%", 98),
        ("12 / 12", 12),
    ],
)
def test_a_count_is_the_number_that_the_text_states(text: str, want: int | Decimal) -> None:
    assert parse_count(text) == want


@given(st.text(st.characters(), max_size=60) | st.from_regex(r"[\d.,万亿kM+ 十百-]{0,25}"))
def test_no_text_raises(text: str) -> None:
    assert isinstance(parse_count(text), int | Decimal | None)
    assert isinstance(parse_stock(text), Stock)


@given(st.integers(0, 10**12))
def test_a_written_count_reads_back(number: int) -> None:
    assert parse_count(str(number)) == parse_count(f"{number:,}") == number


@pytest.mark.parametrize(
    ("state", "texts"),
    [
        (Stock.IN, "有货|现货|可购买|库存充足|库存：120|In stock|InStock|https://schema.org/InStock"),
        (
            Stock.IN,
            "5 in stock|Back in stock|Available",
        ),
        (Stock.OUT, "缺货|没有现货|暫無現貨|無庫存|没货|现货售罄|库存: 0|补货中|到货通知|Sold out|Not in stock"),
        (
            Stock.OUT,
            "Not currently available|0 left|OutOfStock",
        ),
        (Stock.OUT, "Back in stock soon|Notify me when back in stock|unavailable|no longer available"),
        (
            Stock.LOW,
            "仅剩3件|Only 2 left|库存紧张|Low stock|LimitedAvailability|即将售罄|3 left in stock|Almost sold out",
        ),
        (Stock.PREORDER, "预售|预订|Pre-order now|PreOrder|Backorder"),
        (Stock.UNKNOWN, "|加入购物车|Add to cart|数量|¥99|12|Ships in 3 days|" + "有货" * 200),
    ],
)
def test_stock_words_tell_their_state_as_whole_phrases(state: Stock, texts: str) -> None:
    assert {text: parse_stock(text) for text in texts.split("|")} == dict.fromkeys(texts.split("|"), state)


def test_the_shared_rows_agree(cases: Path) -> None:
    found = failures(cases, "count") | failures(cases, "stock")
    assert all(wrong == 0 for wrong in found.values()), found

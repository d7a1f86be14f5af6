"""Which new raw field looks like the one that started to fail."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.clean.drift import candidates, name_likeness, value_likeness
from recrawl.clean.form import form
from recrawl.clean.values import CleanContext
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec, Selector

CONTEXT = CleanContext(datetime(2026, 11, 30, tzinfo=UTC), "Asia/Shanghai", "CNY", "https://shop.example/")
OFFER = RecordSpec(
    "Offer",
    "offers",
    ("sku",),
    (
        FieldSpec("sku", Kind.STR),
        FieldSpec("title", Kind.STR),
        FieldSpec("price", Kind.PRICE, selector=Selector("names", ("price", "product_price"))),
        FieldSpec("seen", Kind.MOMENT, optional=True),
    ),
)


def good(**more: Any) -> list[dict[str, Any]]:
    return [{"sku": f"s{n}", "title": f"Lamp {n}", "price": f"¥{90 + n}.00", "stock": 7, **more} for n in range(20)]


def renamed(name: str, value: object = None, **more: Any) -> list[dict[str, Any]]:
    raws: list[dict[str, Any]] = []
    for n in range(20):
        found = f"¥{95 + n}.50" if value is None else value
        raws.append({"sku": f"s{n}", "title": f"Lamp {n}", "stock": 5, name: found, **more})
    return raws


def test_a_renamed_field_is_found_by_its_name_and_values() -> None:
    found = candidates(OFFER, "price", renamed("salePrice", weight="12 kg"), good(), CONTEXT)

    assert found[0].raw == "salePrice"
    assert found[0].parses == 1
    assert found[0].is_new


def test_a_nested_field_is_named_by_its_path() -> None:
    raws = [{"sku": raw["sku"], "title": "x", "offer": {"salePrice": raw["v"]}} for raw in renamed("v")]

    assert candidates(OFFER, "price", raws, good(), CONTEXT)[0].raw == "offer.salePrice"


def test_a_field_that_good_records_had_all_along_is_no_candidate() -> None:
    raws = renamed("salePrice", list_price="¥99.00")

    found = candidates(OFFER, "price", raws, good(list_price="¥99.00"), CONTEXT)

    assert [each.raw for each in found] == ["salePrice"]


def test_a_field_that_the_record_declares_for_another_is_no_candidate() -> None:
    raws = [{"sku": "1", "seen": "2026-11-30", "title": "¥5.00"}]

    assert candidates(OFFER, "price", raws, [], CONTEXT) == []


def test_values_that_cannot_be_read_make_no_candidate() -> None:
    assert candidates(OFFER, "price", renamed("salePrice", "价格面议"), good(), CONTEXT) == []


def test_a_field_that_only_some_of_the_failing_records_have_is_no_candidate() -> None:
    raws = renamed("salePrice") + [{"sku": "z", "title": "t"}] * 5

    assert candidates(OFFER, "price", raws, good(), CONTEXT) == []


def test_of_two_new_fields_the_one_with_the_likelier_values_comes_first() -> None:
    raws = renamed("amountNow", deposit="1234567.00")

    found = candidates(OFFER, "price", raws, good(), CONTEXT)

    assert [each.raw for each in found] == ["amountNow", "deposit"]


def test_without_good_records_the_name_alone_must_do() -> None:
    found = candidates(OFFER, "price", renamed("salePrice", ratio="0.5"), [], CONTEXT)

    assert found[0].raw == "salePrice"
    assert not found[0].is_new


@pytest.mark.parametrize(
    ("one", "other", "more"),
    [
        ("salePrice", "price", ("title", "price")),
        ("sale_price", "price", ("amount", "price")),
        ("商品价格", "价格", ("库存", "价格")),
        ("updatedAt", "updated_at", ("created_at", "updated_at")),
    ],
)
def test_names_that_share_words_are_more_alike(one: str, other: str, more: tuple[str, str]) -> None:
    assert name_likeness(one, other) > name_likeness(*more)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("¥1,299.00", "¥9,9.9"),
        ("价格面议", "字"),
        ("No. 12", "a. 9"),
        (12.5, "9"),
        (None, "none"),
        ({}, "dict"),
        ("w " * 40, "text"),
    ],
)
def test_the_form_of_a_value_leaves_out_what_it_says(value: object, shape: str) -> None:
    assert form(value) == shape


@given(st.lists(st.none() | st.booleans() | st.integers() | st.floats() | st.text()), st.lists(st.text()))
def test_values_of_any_kind_are_compared_without_a_fault(values: list[object], known: list[object]) -> None:
    assert 0 <= value_likeness(values, known) <= 1


@given(st.text(), st.text())
def test_names_are_alike_by_a_share(one: str, other: str) -> None:
    assert 0 <= name_likeness(one, other) <= 1

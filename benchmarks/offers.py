"""The records of the cleaning benchmark: what a spider pushes, three in ten of them pushed before."""

from __future__ import annotations

import orjson

from recrawl import Price, Record, Source


class Product(Record, table="products", key="sku", history=True):
    sku: str
    title: str
    price: Price | None
    stock: int
    category: str
    rating: float


SOURCE = Source("products", read=Product)


def lines(count: int) -> list[bytes]:
    """`count` records, in an order in which the repeated ones come long after the first."""
    fresh = count * 7 // 10
    return [_line(number % fresh) for number in range(count)]


def _line(number: int) -> bytes:
    return orjson.dumps(
        {
            "sku": f"sku-{number}",
            "title": f"A product with number {number} and a title of usual length",
            "price": f"£{number % 400}.50",
            "stock": number % 50,
            "category": "books",
            "rating": number % 5 + 0.5,
        }
    )

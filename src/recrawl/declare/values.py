"""Value types that fields can have beside the plain Python ones.

Each alias is what a type checker sees (`Count` is an int), marked with how its text is to be read.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from recrawl.declare.specs import Kind
from recrawl.model.values import Moment, Precision, Price, Stock

__all__ = ["Count", "Moment", "Precision", "Price", "Stock", "Text", "Url", "Volatile"]

T = TypeVar("T")


class Mark:
    """What an annotation says beyond its type."""


VOLATILE = Mark()

Count = Annotated[int, Kind.COUNT]
"""A number of things as people write it: `1.2万+`, `3k`."""

Url = Annotated[str, Kind.URL]
"""A link, made absolute and canonical."""

Text = Annotated[str, Kind.TEXT]
"""Text with markup stripped and white space and width normalised."""

Volatile = Annotated[T, VOLATILE]
"""A value that is stored, and whose change alone makes no version."""

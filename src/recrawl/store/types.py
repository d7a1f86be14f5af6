"""Column types that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import JSON, BigInteger, BindParameter, DateTime, Integer, Text, bindparam
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType


@lru_cache(maxsize=4096)
def instant_text(value: datetime) -> str:
    """The one text form of an instant: UTC, microseconds, of fixed width, so that text order is time order."""
    at = value if value.tzinfo is UTC else value.astimezone(UTC)
    return f"{at.isoformat(timespec='microseconds')[:26]}Z"


class Instant(TypeDecorator[datetime]):
    """An aware instant: timestamptz on PostgreSQL, fixed-width ISO 8601 text in UTC on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return instant_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if isinstance(value, datetime):
            return value.astimezone(UTC)
        return datetime.fromisoformat(value)


class _Xid8(UserDefinedType[int]):
    """PostgreSQL's 64-bit transaction id. The change feed is ordered by it: sequence numbers commit out of order."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"


Id = BigInteger().with_variant(Integer(), "sqlite")  # SQLite makes only INTEGER keys self-numbering
Xid = BigInteger().with_variant(_Xid8(), "postgresql")
Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def instant(name: str, value: datetime | None) -> BindParameter[datetime]:
    """A parameter of a text statement that is an instant."""
    return bindparam(name, value, type_=Instant())

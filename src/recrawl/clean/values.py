"""One raw value into what its column stores, for each kind of field.

Lenient about form, strict about substance: `"1,299"` is an `int`, `"12 pieces"` is none; a price or a time that its
text leaves open is no value, a required one then an error. Nothing is cut or guessed. NUL and lone surrogates, which no
database keeps, are shown as U+FFFD, so that a page which holds them can be stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial

from pydantic_core import PydanticCustomError, core_schema
from pydantic_core.core_schema import CoreSchema, ValidationInfo

from recrawl.clean.count import parse_count
from recrawl.clean.markup import text_of
from recrawl.clean.moment import parse_moment, zone_of
from recrawl.clean.plain import plain, storable
from recrawl.clean.price import parse_price
from recrawl.clean.stock import parse_stock
from recrawl.decide.urls import canonical_url
from recrawl.declare.specs import FieldSpec, Kind
from recrawl.model.record import Json
from recrawl.model.values import Moment, Precision, Price, Stock

LONGEST_TEXT = 1_000_000
MOST_ITEMS = 10_000
_DIGITS = 38  # before and after the point, the most that databases share
_SHORT_URL = 500  # characters; longer ones are not worth remembering
_LEAST, _MOST = -(2**63), 2**63 - 1

_GROUPED = re.compile(r"([-+]?)(\d{1,3}(?:([, '])\d{3})(?:\3\d{3})*)(\.\d+)?")
_COMMA = re.compile(r"[-+]?\d+,\d{1,2}")
_TRUTH = {"是": True, "有": True, "否": False, "无": False, "無": False}


@dataclass(frozen=True, slots=True)
class CleanContext:
    """What values are read against: `now` is the time of the fetch, on replay too; `zone`, `currency` and `base_url`
    are the source's time zone, currency (ISO 4217, if it has one) and the address that relative links start from."""

    now: datetime
    zone: str
    currency: str | None
    base_url: str


_Info = ValidationInfo[CleanContext]


def wrong(kind: str, message: str) -> PydanticCustomError:
    # Pydantic fills in braces; the message may hold a user's text.
    return PydanticCustomError(kind, "{message}", {"message": message})


def _context(info: _Info) -> CleanContext:
    assert info.context is not None
    return info.context


def schema(spec: FieldSpec) -> CoreSchema:
    """How pydantic validates a field; a Price answers (amount, currency), a Moment (instant, precision, text)."""
    if not spec.many:
        return _one(spec, must=not spec.optional)
    return core_schema.no_info_before_validator_function(
        lambda value: list(value) if isinstance(value, (list, tuple)) else [value],
        core_schema.list_schema(_item(spec), max_length=MOST_ITEMS),
    )


def _item(spec: FieldSpec) -> CoreSchema:
    """An item of a list, which stands in a JSON column."""
    one = _one(spec, must=True)
    names = {Kind.PRICE: ("amount", "currency"), Kind.MOMENT: ("at", "precision", "text")}.get(spec.kind)
    if names is None:
        return one
    return core_schema.no_info_after_validator_function(lambda parts: dict(zip(names, parts, strict=True)), one)


def _one(spec: FieldSpec, *, must: bool) -> CoreSchema:
    before = core_schema.no_info_before_validator_function
    if spec.kind is Kind.INT:
        return before(_whole, core_schema.int_schema(ge=_LEAST, le=_MOST))
    if spec.kind is Kind.FLOAT:
        return before(_number, core_schema.float_schema(allow_inf_nan=False))
    if spec.kind is Kind.BOOL:
        return before(_truth, core_schema.bool_schema())
    if spec.kind in (Kind.PRICE, Kind.MOMENT, Kind.COUNT):
        read = {Kind.PRICE: _price, Kind.MOMENT: _moment, Kind.COUNT: _count}[spec.kind]
        return core_schema.with_info_plain_validator_function(partial(read, must))
    if spec.kind is Kind.URL:
        return core_schema.with_info_plain_validator_function(_url)
    read_alone: Callable[[object], object] = {
        Kind.STR: _text,
        Kind.TEXT: _prose,
        Kind.DECIMAL: _decimal,
        Kind.STOCK: _stock,
    }[spec.kind]
    return core_schema.no_info_plain_validator_function(read_alone)


def _text(value: object) -> str:
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise wrong("too_long", f"{len(value):,} characters, more than {LONGEST_TEXT:,}")
        return storable(value).strip()
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return _numeral(value)
    raise wrong("string_type", f"a text is wanted, this is {type(value).__name__}")


def _numeral(value: float | Decimal) -> str:
    if isinstance(value, int) and value.bit_length() > 256:
        raise wrong("too_long", f"an integer of {value.bit_length():,} bits")
    return str(value)


def _prose(value: object) -> str:
    try:
        return text_of(_text(value))
    except ValueError as error:
        raise wrong("markup", str(error)) from error


def _url(value: object, info: _Info) -> str:
    if not isinstance(value, str):
        raise wrong("url", f"a URL is wanted, this is {type(value).__name__}")
    try:
        if value.startswith(("http://", "https://")) and len(value) <= _SHORT_URL:
            return _canonical(value)
        return canonical_url(_text(value), _context(info).base_url)
    except ValueError as error:
        raise wrong("url", f"not a URL: {error}") from error


@lru_cache(maxsize=8_192)
def _canonical(url: str) -> str:
    """Of an absolute URL, whose base does not matter: the pages of a site have most of their links in common."""
    return canonical_url(_text(url))


def _whole(value: object) -> object:
    if isinstance(value, bool):
        raise wrong("int_type", "a number is wanted, this is a truth value")
    if not isinstance(value, str):
        return value
    folded = plain(value).replace("−", "-")
    return _ungrouped(folded) or folded


def _number(value: object) -> object:
    """A number out of text: 1,299.5, 1 299 and 12,50 (a comma with one or two digits is a decimal one), 4.9分, 98%."""
    if isinstance(value, bool):
        raise wrong("float_type", "a number is wanted, this is a truth value")
    if not isinstance(value, str):
        return value
    folded = plain(value).replace("−", "-")
    ungrouped = _ungrouped(folded)
    if ungrouped is not None:
        return ungrouped
    if _COMMA.fullmatch(folded):
        return folded.replace(",", ".")
    try:
        float(folded)
    except ValueError:
        counted = parse_count(folded)
        return folded if counted is None else str(counted)
    return folded


def _ungrouped(text: str) -> str | None:
    match = _GROUPED.fullmatch(text)
    return f"{match[1]}{re.sub(r'[^0-9]', '', match[2])}{match[4] or ''}" if match else None


def _truth(value: object) -> object:
    if isinstance(value, str):
        folded = plain(value).lower()
        return _TRUTH.get(folded, folded)
    return value


def _decimal(value: object) -> str:
    number = _number(value)
    if isinstance(number, float):
        number = repr(number)
    if not isinstance(number, (str, int, Decimal)):
        raise wrong("decimal_type", f"a number is wanted, this is {type(value).__name__}")
    try:
        parsed = Decimal(number)
    except InvalidOperation as error:
        raise wrong("decimal_parsing", "not a number") from error
    return decimal_text(parsed)


def decimal_text(number: Decimal) -> str:
    """The shortest plain writing: 9.90 and 9.9 are one price, so they are one text."""
    if not number.is_finite():
        raise wrong("finite_number", "not a finite number")
    _, digits, exponent = number.as_tuple()
    if isinstance(exponent, int) and (exponent < -_DIGITS or len(digits) + exponent > _DIGITS):
        raise wrong("out_of_range", f"more than {_DIGITS} digits before or after the point")
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _price(must: bool, value: object, info: _Info) -> tuple[str | None, str | None]:
    context = _context(info)
    price: Price | None = None
    if isinstance(value, Price):
        price = value
    elif isinstance(value, str):
        price = parse_price(value, context.currency)
    elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        price = Price(Decimal(repr(value) if isinstance(value, float) else value), context.currency)
    elif not isinstance(value, bool):
        raise wrong("price", f"a price is wanted, this is {type(value).__name__}")
    if price is None:
        if must:
            raise wrong("price", "no price in this text")
        return None, None
    return decimal_text(price.amount), price.currency


_Instant = tuple[str | None, str | None, str | None]


def _moment(must: bool, value: object, info: _Info) -> _Instant:
    context = _context(info)
    moment = _as_moment(value, context)
    text = _text(value) if isinstance(value, str) else storable(moment.text) if moment else None
    if moment is None:
        if must:
            raise wrong("moment", "no time in this text, or an ambiguous one")
        return None, None, text
    try:
        at = moment.first.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        raise wrong("moment", "a time outside the years 1 to 9999") from error
    return instant_text(at), moment.precision.value, text


def instant_text(at: datetime) -> str:
    """An instant as it is stored: UTC, microseconds, Z."""
    return f"{at.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _as_moment(value: object, context: CleanContext) -> Moment | None:
    if isinstance(value, str):
        return parse_moment(value, context.now, context.zone)
    if isinstance(value, Moment):
        return value
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=zone_of(context.zone))
        return Moment(at, Precision.SECOND, value.isoformat())
    if isinstance(value, date):
        return Moment(datetime.combine(value, time(), zone_of(context.zone)), Precision.DAY, value.isoformat())
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return parse_moment(_numeral(value), context.now, context.zone)
    raise wrong("moment", f"a time is wanted, this is {type(value).__name__}")


def _count(must: bool, value: object, info: _Info) -> int | None:
    if isinstance(value, str):
        number: object = parse_count(value)
    else:
        number = int(value) if isinstance(value, float) and value.is_integer() else value
    if number is None and not must:
        return None
    if not isinstance(number, int) or isinstance(number, bool):
        raise wrong("count", "no whole number in this text, or several")
    if not _LEAST <= number <= _MOST:
        raise wrong("out_of_range", "an integer beyond 64 bits")
    return number


def _stock(value: object) -> str:
    if isinstance(value, Stock):
        return value.value
    if isinstance(value, str):
        return parse_stock(value).value
    if isinstance(value, (bool, int)):  # a flag, or how many there are
        return (Stock.IN if value > 0 else Stock.OUT).value
    raise wrong("stock", f"a word about availability is wanted, this is {type(value).__name__}")


def blank_is_missing(spec: FieldSpec) -> bool:
    """An empty text is a value for texts only; elsewhere nothing was there."""
    return spec.kind not in (Kind.STR, Kind.TEXT)


def as_columns(spec: FieldSpec, value: object) -> tuple[Json, ...]:
    """A validated value as its columns hold it."""
    if not spec.many and spec.kind in (Kind.PRICE, Kind.MOMENT):
        return value  # type: ignore[return-value]
    return (value,)  # type: ignore[return-value]

"""Counts as sites write them: `1.2万+`, `3.4k`, `1,234 条评论`."""

from __future__ import annotations

import re
from decimal import Decimal

from recrawl.clean.numerals import HANZI, MAGNITUDE, fold_compounds, hanzi, magnitude
from recrawl.clean.plain import plain

_LONGEST = 200
_WORDS = {
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "k": 3,
    "m": 6,
    "mn": 6,
    "b": 9,
    "bn": 9,
    "w": 4,
    "lakh": 5,
    "crore": 7,
}
_GROUPED = r"\d{1,3}(?:,\d{2,3})*,\d{3}|\d{1,3}(?:[ '’]\d{3})+|\d{1,3}(?:\.\d{3}){2,}|\d+"
# A letter glued to the front makes it part of a name (H2O, iPhone15), not a count.
_TOKEN = re.compile(
    rf"(?<![A-Za-z\d.,])(?P<sign>(?<![^\s:(])[-−+])?(?P<whole>{_GROUPED})(?P<part>[.,]\d+)?"
    rf"\s?(?:多|余|餘)?(?:(?P<cn>{MAGNITUDE})|(?P<en>thousand|million|billion|lakh|crore|bn|mn|[kKMB](?![A-Za-z])|(?<=\d)[mbwW])"
    r"(?![A-Za-z]))?",
    re.IGNORECASE,
)
_DENOMINATOR = re.compile(r"(?<=\d)\s*(?:/|out of)\s*\d+(?!\d)(?!\s*/)")
_SPELT = re.compile(rf"(?<![几數数]){HANZI}+")


def parse_count(text: str | None) -> int | Decimal | None:
    """The one number that a text states, or None where it states none, several, or an unclear one.

    A lower bound (`999+`, `10万+`) is that bound; `4.9/5` and `98%` are 4.9 and 98. The answer is an `int`, but for
    ratings and the like, which really have a fraction. A label without a number is unknown, never 0.
    """
    if not text or len(text) > _LONGEST:
        return None
    folded = fold_compounds(_DENOMINATOR.sub("", plain(text)))
    matches = list(_TOKEN.finditer(folded))
    if not matches:
        return _spelt(folded)
    values = {_value(match) for match in matches}
    value = values.pop()
    return value if not values else None


def _value(match: re.Match[str]) -> int | Decimal | None:
    whole, part = match["whole"], match["part"] or ""
    scaled = match["cn"] or match["en"]
    if part and len(part) == 4 and part[0] == "." and len(whole) < 4 and whole != "0" and not scaled:
        return None  # 1.234 may be a group or a fraction
    number = Decimal(re.sub(r"\D", "", whole) + part.replace(",", "."))
    if match["cn"]:
        number *= magnitude(match["cn"])
    elif match["en"]:
        number = number.scaleb(_WORDS[match["en"].lower()])
    if match["sign"] and match["sign"] != "+":
        number = -number
    return int(number) if number == number.to_integral_value() else number


def _spelt(text: str) -> int | None:
    numbers = {hanzi(match[0]) for match in _SPELT.finditer(text)}
    # One numeral alone is a common word (一般, 万能); a whole text of numerals, or a lower bound, is a number.
    if len(numbers) == 1 and re.fullmatch(rf"\D{{0,4}}?{HANZI}+\s?[+多余条個个次人件篇]?\D{{0,4}}", text):
        word = _SPELT.search(text)
        if word and (len(word[0]) > 1 or word[0] == text.rstrip("+ ")):
            return numbers.pop()
    return None

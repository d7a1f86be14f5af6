"""Prices as shops write them: the amount that is asked now, and its currency."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from decimal import Decimal

from recrawl.clean.currency import meanings_in, settle, sign_after, sign_before
from recrawl.clean.numerals import MAGNITUDE, fold_compounds, magnitude
from recrawl.clean.plain import plain
from recrawl.model.values import Price

_LONGEST = 300
_MINUS = "-−"
_DASHES = (",-", ",–", ",—")

_SIMPLE = re.compile(
    r"(?:(?P<sign>[$€£¥]|US\$)\s?)?(?P<number>\d+(?:\.\d{1,2})?|\d{1,3}(?:,\d{3})+(?:\.\d{1,2})?)(?P<unit>元)?"
)

_FREE = re.compile(
    r"(?:限时|限時)?(?:免费|免費)(?:下载|阅读|观看|领取|获取|试用)?[!。]?"
    r"|(?:for )?free(?: of charge)?[!.]*|gratis|kostenlos|gratuit",
    re.I,
)
_ON_REQUEST = re.compile(
    r"面议|面議|电议|電議|询价|詢價|电询|暂无(?:报价|价格)|暫無報價|价格待定|无报价|уточняйте|по запросу|цену? договорн"
    r"|(?:price )?(?:up)?on request|(?:call|contact us|ask|email) for (?:a )?(?:price|pricing|quote)|auf anfrage"
    r"|preis anfragen"
    r"|sur demande|bajo consulta|a consultar|\bp\.?o\.?a\b",
    re.I,
)
_CALENDAR = re.compile(
    r"\b(?:19|20)\d\d[-/.年]\d{1,2}[-/.月]\d{1,2}日?|\b\d{1,2}[-/.]\d{1,2}[-/.](?:19|20)\d\d\b"
    r"|\b\d{1,2}:\d\d(?::\d\d)?\b"
    r"|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?(?: \d{1,2})?,? (?:19|20)\d\d\b",
    re.I,
)

# Digits with their groups and fraction, and whatever separators and digits are glued behind (price-parser reads them).
_NUMBER = r"[.,]*(?:\d{1,3}(?:[ ,.'’]\d{3}(?!\d))+|\d+)(?:[.,] ?\d{1,2}(?!\d)|[.,]\d{4,})?(?:[.,'’]\d+)*"
_CANDIDATE = re.compile(
    rf"(?P<number>{_NUMBER})(?P<power>[eE][-+]?\d+)?(?P<scale>\s?{MAGNITUDE}(?![件个個条份])|[kK](?![A-Za-z])|M(?![A-Za-z]))?"
)
_SCALES = {"k": Decimal(1000), "K": Decimal(1000), "M": Decimal(1_000_000)}
_CENTS = re.compile(r"(\d{1,2})(?:[¢￠]| cents?\b|(?P<pence>p))")
# 3元5角, 9块9 (but not 10块3件), 5毛: a tenth is a 角 or 毛, a hundredth a 分.
_JIAO = re.compile(
    r"(?:(?P<yuan>\d+)[元块塊])?(?<!\d)(?P<jiao>\d)(?:[角毛](?:(?P<fen>\d)分)?|(?<=[块塊]\d)(?![\d.,折件个個只台盒袋瓶双雙条套份人张張本斤天年月]))"
)

_NOT_MONEY = re.compile(
    r"\s?(?:ft|cm|mm|kg|(?-i:g)|ml|gb|tb|mah|inch|pcs|pieces?"
    r"|件|个|個|只|台|盒|袋|瓶|双|雙|条|套|份|人|张|張|本|期|天|年|岁)(?![a-z])",
    re.I,
)
_ALWAYS_NOT_MONEY = re.compile(r"\s?[%‰折薪]")
_THRESHOLD = re.compile(r"(?:\borders?(?: (?:over|above|of|on))?|\b(?:over|above|spend)|满|滿)\W*$", re.I)
_CONDITION = re.compile(r"free (?:shipping|delivery)|包邮|包郵|免运费|免邮|免運|减|減|返|送", re.I)
_OLD = re.compile(
    r"(?:原价|原價|市场价|市場價|吊牌价|划线价|参考价|门市价|日常价|建议零售价|定价|定價"
    r"|\b(?:was|rrp|msrp|uvp|statt|(?:old|list) price|reg(?:ular)?\.?(?: price)?|original(?: price)?|instead of))\W*$",
    re.I,
)
_ASIDE = re.compile(
    r"(?:[减減省返]|优惠|優惠|立省|立减|红包|定金|订金|押金|运费|運費|邮费|郵費"
    r"|\b(?:save|saving|savings|off|coupon|deposit|shipping|delivery|postage|up to))\W*$",
    re.I,
)
_BETWEEN = re.compile(r"\s*(?:[-–—−~～]|至|到|to|bis|à|a|do|до|и|and|und)\s*", re.I)

# Where a point never groups thousands, 3.350 with such a currency is three and a bit.
_BY_POINT = "CNY GBP TWD HKD MOP JPY KRW USD INR CAD AUD NZD SGD THB MYR EGP SYP LBP ILS"
_POINT_IS_DECIMAL = frozenset(_BY_POINT.split())


@dataclass(slots=True)
class _Candidate:
    text: str
    start: int
    end: int  # with the currency behind
    label: str  # what stands between the number before and this one
    scale: Decimal | None
    codes: tuple[str, ...]
    suffixed: bool
    dash: bool  # `1.899,-`: the fraction is left out, so the point groups
    negative: bool
    amount: Decimal | None = None
    is_money: bool = True


def parse_price(text: str | None, currency: str | None = None) -> Price | None:
    """The price that a text states now, or None where it states none.

    Of several amounts it is the present one ("was $20, now $15"), of a range the lower bound, of a quantity and a price
    the one with a currency; `免费` is 0, `价格面议` is None. `currency` is a hint, an ISO 4217 code of the source or a
    text that holds a currency: it stands where the text names no currency, and tells which one an ambiguous sign ($, ¥,
    kr) means. A bare `3.350`, which can be 3350 or 3.35, is None.
    """
    if not text or len(text) > _LONGEST:
        return None
    folded = plain(text).replace("’", "'")
    hint = meanings_in(currency)
    simple = _SIMPLE.fullmatch(folded)
    if simple:
        said = meanings_in(simple["sign"] or simple["unit"])
        return Price(Decimal(simple["number"].replace(",", "")), settle(said, hint))
    if not any(map(str.isdigit, folded)):
        return Price(Decimal(0), settle((), hint)) if _FREE.fullmatch(folded) else None
    if _ON_REQUEST.search(folded):
        return None
    folded = _JIAO.sub(lambda part: f"{part['yuan'] or 0}.{part['jiao']}{part['fen'] or ''}元", fold_compounds(folded))
    if cents := _CENTS.fullmatch(folded):
        return Price(Decimal(cents[1]) / 100, settle(("GBP",) if cents["pence"] else ("USD",), hint))
    chosen = _choose(_candidates(folded), folded, hint)
    if chosen is None or chosen.amount is None:
        return None
    amount = chosen.amount * chosen.scale if chosen.scale else chosen.amount
    said = chosen.codes or meanings_in(folded)
    return Price(-amount if chosen.negative else amount, settle(said, hint))


def _candidates(text: str) -> list[_Candidate]:
    dates = [match.span() for match in _CALENDAR.finditer(text)]
    found: list[_Candidate] = []
    previous = 0
    for match in _CANDIDATE.finditer(text):
        start, end = match.span()
        minus = start > previous and text[start - 1] in _MINUS
        before = sign_before(text, start - minus, previous)
        first, codes = before or (start, ())
        if before and (further := sign_before(text, first, previous)):  # NZD $100
            first, codes = further[0], min(codes, further[1], key=len)
        after = _sign_behind(text, end)
        if after and (not codes or set(after[1]) < set(codes)):
            codes = after[1]
        last = after[0] if after else end
        if not match["power"] and not any(a < end and start < b for a, b in dates):
            found.append(
                _Candidate(
                    text=match["number"],
                    start=first,
                    end=last,
                    label=text[previous:first],
                    scale=_scale(match["scale"], codes),
                    codes=codes,
                    suffixed=after is not None,
                    dash=text.startswith(_DASHES, end),
                    negative=(minus and before is not None) or _is_negative(text, first),
                )
            )
        previous = last
    return found


def _sign_behind(text: str, end: int) -> tuple[int, tuple[str, ...]] | None:
    after = sign_after(text, end)
    # In "15 ¥7999" the sign belongs to what it is glued to.
    if after and text[end : end + 1] == " " and text[after[0] : after[0] + 1].isdigit():
        return None
    return after


def _scale(written: str | None, codes: tuple[str, ...]) -> Decimal | None:
    if not written or (written == "M" and not codes):
        return None
    return _SCALES.get(written) or magnitude(written.strip())


def _is_negative(text: str, first: int) -> bool:
    """A minus glued to the amount, where neither a range nor a dash of a sentence can be meant."""
    return first > 0 and text[first - 1] in _MINUS and _opens(text[: first - 1])


def _opens(before: str) -> bool:
    before = before.rstrip()
    return not before or before[-1] in "::(（" or before[-1] > "\u2e80"


def _choose(candidates: list[_Candidate], text: str, hint: tuple[str, ...]) -> _Candidate | None:
    if text.count("€") == 1 and re.search(r"\d\s?€\s?\d", text):
        return _euro(text, candidates)
    _join_ranges(candidates, text)
    usable = [each for each in candidates if _is_money(each, text)]
    if _CONDITION.search(text):
        asked = [each for each in usable if not _THRESHOLD.search(each.label)]
        if len(asked) < len(usable):  # 满300减50: neither number is a price
            usable = [each for each in asked if not _ASIDE.search(each.label)]
    for each in usable:
        each.amount = _amount(each, hint)
    plain_ones = [each for each in usable if not _OLD.search(each.label) and not _ASIDE.search(each.label)] or usable
    chosen = next((each for each in plain_ones if each.codes), plain_ones[0] if plain_ones else None)
    if chosen is not None and chosen.amount == 0 and usable[0] is not chosen and _OLD.search(usable[0].label):
        return usable[0]  # "Was $125, now $0.00" is an empty template, not a gift
    return chosen


def _join_ranges(candidates: list[_Candidate], text: str) -> None:
    """The lower bound of a range shares the currency and the magnitude of the upper one; a falling one is no range."""
    for low, high in itertools.pairwise(candidates):
        if not _BETWEEN.fullmatch(high.label):
            continue
        if low.scale is None and high.scale is not None:
            low.scale = high.scale
        if not low.codes and high.suffixed:
            low.codes = high.codes
        if not low.codes and low.scale is None and "-" in high.label.strip() and high.text.startswith("0"):
            low.is_money = high.is_money = False


def _is_money(each: _Candidate, text: str) -> bool:
    if not each.is_money:
        return False
    behind = text[each.end :]
    return not _ALWAYS_NOT_MONEY.match(behind) and (
        bool(each.codes) or each.scale is not None or not _NOT_MONEY.match(behind)
    )


def _amount(each: _Candidate, hint: tuple[str, ...]) -> Decimal | None:
    from price_parser import Price as Parsed

    number = each.text
    if re.fullmatch(r"[.,]\d{1,2}", number):
        return Decimal(f"0.{number[1:]}")
    point = None
    if re.fullmatch(r"\d{1,3}\.\d{3}", number) and each.scale is not None:
        point = "."
    elif re.fullmatch(r"\d{1,2}\.\d{3}", number) and not each.dash:
        if not each.codes and not hint:
            return None
        meant = (
            {code}
            if (code := next((code for code in hint if code in each.codes), None))
            else set(each.codes or hint[:1])
        )
        if meant <= _POINT_IS_DECIMAL:
            point = "."
        elif meant & _POINT_IS_DECIMAL:
            return None
    amount = Parsed.fromstring(number, decimal_separator=point).amount
    return amount if isinstance(amount, Decimal) and amount.is_finite() else None


def _euro(text: str, candidates: list[_Candidate]) -> _Candidate | None:
    """`35€ 99`: the sign stands where the point should; price-parser knows this form."""
    from price_parser import Price as Parsed

    amount = Parsed.fromstring(text).amount
    if not candidates or not isinstance(amount, Decimal):
        return None
    candidates[0].amount, candidates[0].codes, candidates[0].scale = amount, ("EUR",), None
    return candidates[0]

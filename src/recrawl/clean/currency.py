"""Which currency a sign, a word or a code stands for (ISO 4217)."""

from __future__ import annotations

import re

_ISO_4217 = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF
    CLP CNY COP CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL
    HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD
    MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR
    RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH
    UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWL
"""
CODES = frozenset(_ISO_4217.split())
# Codes that are English words as well count in capitals only.
_WORDS_TOO = frozenset({"all", "try", "top", "cup", "mop", "gel", "bob", "lak", "mad", "sos", "cad", "sar", "nad"})
_UNITS_TOO = frozenset({"ft", "l", "r"})

# Signs and words in lower case ("_" is a blank) -> what they can stand for. The first is meant where nothing else
# tells; "?" is no currency: then only the hint can say.
_MEANINGS = {
    "$": "USD CAD AUD NZD SGD HKD TWD MXN CLP ARS COP UYU BBD BSD BZD BND FJD GYD JMD LRD NAD SRD TTD XCD DOP CUP MOP",
    "us$ us_$ usd$ u.s.$ 美元 美金 美刀 dollars dollar": "USD",
    "ca$ can$ cad$ c$ 加元 加币": "CAD",
    "au$ a$ aud$ au_$ 澳元": "AUD",
    "nz$ nzd$": "NZD",
    "hk$ hkd$ 港币 港幣 港元 港纸": "HKD",
    "nt$ nt 新台币 新臺幣 新台幣 台币 台幣": "TWD",
    "s$ sg$ sgd$ 新加坡元 新币": "SGD",
    "r$": "BRL",
    "mx$": "MXN",
    "rd$": "DOP",
    "tt$": "TTD",
    "mop$ 澳门元": "MOP",
    "¥ yen": "CNY JPY",
    "cn¥ rmb 人民币 人民幣 yuan 块 塊 块钱": "CNY",
    "元 圆 圓": "CNY TWD HKD JPY MOP",
    "円 日元 日圓 jp¥ 日币": "JPY",
    "€ euro euros 欧元 歐元": "EUR",
    "£": "GBP EGP SYP LBP",
    "英镑 英鎊 gbp£ stg": "GBP",
    "e£": "EGP",
    "₩ 원 韩元 韓元": "KRW",
    "₽ руб руб. р. р рублей рубля rub. rbl": "RUB",
    "zł zl": "PLN",
    "kč kc": "CZK",
    "kr kr.": "? SEK NOK DKK ISK",
    "ft": "HUF",
    "lei": "RON MDL",
    "лв лв.": "BGN",
    "грн грн. ₴ hrn": "UAH",
    "₸ тг тңг": "KZT",
    "₹ रु": "INR",
    "rs rs. ₨ re": "? INR PKR LKR NPR MUR SCR",
    "rp rp.": "IDR",
    "rm": "MYR",
    "₫ đ vnđ": "VND",
    "฿ บาท": "THB",
    "₱": "PHP",
    "₺ tl": "TRY",
    "₪ nis": "ILS",
    "₦": "NGN",
    "₾ lari": "GEL",
    "₼": "AZN",
    "֏": "AMD",
    "৳": "BDT",
    "₭": "LAK",
    "៛": "KHR",
    "₮": "MNT",
    "₲": "PYG",
    "₡": "CRC",
    "fr. sfr chf.": "CHF",
    "ksh kshs": "KES",
    "tsh": "TZS",
    "ush": "UGX",
    "r": "ZAR",
    "l": "? HNL ALL",
    "s/ s/.": "PEN",
    "تومان ریال": "IRR",
    "dh dhs درهم": "? AED MAD",
    "ريال": "? SAR QAR OMR YER",
    "ر.س": "SAR",
    "د.إ": "AED",
    "جنيه ج.م": "EGP",
    "د.ك": "KWD",
    "dinara дин дин. din": "RSD",
    "ден": "MKD",
}


def _signs() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {code.lower(): (code,) for code in CODES}
    for signs, codes in _MEANINGS.items():
        table |= dict.fromkeys(signs.split(), tuple(codes.split()))
    return {sign.replace("_", " "): codes for sign, codes in table.items()}


_SIGNS = _signs()
_LENGTHS = sorted({len(sign) for sign in _SIGNS}, reverse=True)


def _whole(sign: str) -> str:
    return (
        rf"(?<![^\W\d_]){re.escape(sign)}(?![^\W\d_])" if sign[0].isalpha() and sign[0] < "\u3000" else re.escape(sign)
    )


_ANYWHERE = re.compile(
    "|".join(_whole(sign) for sign in sorted(_SIGNS, key=len, reverse=True) if sign not in _UNITS_TOO), re.IGNORECASE
)


def _meaning(written: str) -> tuple[str, ...] | None:
    low = written.lower()
    if (low in _WORDS_TOO and not written.isupper()) or (low in _UNITS_TOO and written.islower()):
        return None
    return _SIGNS.get(low)


def sign_before(text: str, end: int, floor: int) -> tuple[int, tuple[str, ...]] | None:
    """The sign or code that ends at `end` (white space and a colon between are passed): its start, not before `floor`,
    and its meanings."""
    while end > floor and text[end - 1] in " :":
        end -= 1
    for length in _LENGTHS:
        start = end - length
        if start < floor:
            continue
        written = text[start:end]
        codes = _meaning(written)
        if codes and not (written[0].isalpha() and written[0].isascii() and start and text[start - 1].isalpha()):
            return start, codes
    return None


def sign_after(text: str, start: int) -> tuple[int, tuple[str, ...]] | None:
    """The sign or code that begins at `start` (white space is passed): its end and meanings."""
    while start < len(text) and text[start] == " ":
        start += 1
    for length in _LENGTHS:
        written = text[start : start + length]
        codes = _meaning(written) if len(written) == length else None
        if codes:
            end = start + length
            glued = written[-1].isalpha() and end < len(text) and text[end].isalpha() and not _is_cjk(written[-1])
            if not glued:
                return end, codes
    return None


def _is_cjk(char: str) -> bool:
    return "\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af"


def meanings_in(text: str | None) -> tuple[str, ...]:
    """What a text (a code, a sign, or a label that holds one) says about the currency; empty where it says nothing."""
    if not text:
        return ()
    if exact := _meaning(text):
        return exact
    return next((codes for match in _ANYWHERE.finditer(text[:200]) if (codes := _meaning(match[0]))), ())


def settle(said: tuple[str, ...], hint: tuple[str, ...]) -> str | None:
    """One code out of what the text says and what the source says: the text decides, the hint tells what it means."""
    if not said:
        said = hint[:1]
    agreed = next((code for code in hint if code in said), None)
    code = agreed or (said[0] if said else None)
    return code if code != "?" else None

"""Availability as shops word it."""

from __future__ import annotations

import re
from functools import lru_cache

from recrawl.clean.plain import plain
from recrawl.model.values import Stock

_LONGEST = 200

# schema.org ItemAvailability, with or without its address.
_SCHEMA = {
    "instock": Stock.IN,
    "instoreonly": Stock.IN,
    "onlineonly": Stock.IN,
    "limitedavailability": Stock.LOW,
    "outofstock": Stock.OUT,
    "soldout": Stock.OUT,
    "discontinued": Stock.OUT,
    "reserved": Stock.OUT,
    "preorder": Stock.PREORDER,
    "presale": Stock.PREORDER,
    "backorder": Stock.PREORDER,
    "madetoorder": Stock.PREORDER,
}

# In this order: a denial holds the words of what it denies ("not in stock", 没有现货), and of two states in one text
# the one that keeps the buyer from buying is the present one (现货售罄).
_PHRASES = (
    (
        Stock.OUT,
        r"缺货|缺貨|(?:[无無]|[没沒]有?)(?:(?:现|現)?[货貨]|库存|庫存)|非现货|非現貨|断货|斷貨|售罄|售完|卖完|賣完"
        r"|卖光|賣光|抢光|搶光|抢完|已下架|下架了|^(?:商品|产品)?下架|停产|停產|停售"
        r"|补货|補貨|到货通知|到貨通知|到货提醒|暂不销售|不可购买"
        r"|无法购买|已售空|库存不足"
        r"|(?:库存|庫存|剩余|剩餘|仅剩|還剩|还剩)(?:量|数|數)?\s*[::]?\s*0(?!\d|\.)"
        r"|(?:not|isn'?t|no longer|never|aren'?t)(?: \w+)? (?:in stock|available|for sale)|un ?available"
        r"|out[ -]?of[ -]?stock"
        r"|sold[ -]?out|(?:^|\b)(?:no|zero|0) (?:in )?(?:stock|left)"
        r"|(?<!\d)0 (?:items? |units? )?(?:left|in stock|remaining|available)"
        r"|discontinued|notify me|(?:back )?in stock soon|email (?:me )?when",
    ),
    (Stock.PREORDER, r"预售|預售|预订|預訂|预定|預定|预购|預購|预约购|pre-? ?orders?\b|pre-?sale|back-? ?order"),
    (
        Stock.LOW,
        r"(?:仅剩|僅剩|只剩|最后|最後|剩余|剩餘|还剩|還剩)\s*\d{1,2}(?!\d)\s*[件个個台双雙套份本张張]?"
        r"|库存紧张|庫存緊張|低库存|少量(?:现货|库存)?"
        r"|即将售罄|即將售罄|low (?:in )?stock|limited (?:stock|availability|quantity)|almost (?:gone|sold)|few left"
        r"|only (?:a few|\d{1,2}(?!\d))(?: \w+)? (?:left|remaining|in stock|available)"
        r"|(?:^|\b)\d left\b|last (?:one|few|item)",
    ),
    (
        Stock.IN,
        r"有货|有貨|现货|現貨|有库存|有庫存|库存充足|庫存充足|库存正常|可购买|可購買|可下单|在售"
        r"|(?:库存|庫存)(?:量)?\s*[::]?\s*[1-9]\d*"
        r"|\bin[ -]?stock\b|\binstock\b"
        r"|^(?:now |currently )?available(?: now| online| in[ -]store| to buy)?[.!]*$|ready to ship",
    ),
)
_STATES = tuple((state, re.compile(pattern)) for state, pattern in _PHRASES)
_NEARLY = re.compile(r"即将售罄|即將售罄|almost sold[ -]?out|nearly sold[ -]?out|selling out")


def parse_stock(text: str | None) -> Stock:
    """What a text says about availability; `Stock.UNKNOWN` where it does not tell.

    Unknown is not "out": a button, a label or an empty text says nothing. "Only 2 left" is `Stock.LOW`, which can be
    bought like `Stock.IN`.
    """
    return _read(text) if text and len(text) <= _LONGEST else Stock.UNKNOWN


# A shop has few such words, so nearly every answer is at hand.
@lru_cache(maxsize=1_024)
def _read(text: str) -> Stock:
    folded = plain(text).lower().replace("’", "'")
    known = _SCHEMA.get(folded.rpartition("/")[2].replace(" ", ""))
    if known is not None:
        return known
    if _NEARLY.search(folded):
        return Stock.LOW
    return next((state for state, pattern in _STATES if pattern.search(folded)), Stock.UNKNOWN)

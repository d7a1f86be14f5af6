"""From an API's answer to its items and the way on. No request is made here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from zoneinfo import ZoneInfo

import orjson

from recrawl.decide.cursor import Form, Id, Reach, Time
from recrawl.decide.paging import Place, Told
from recrawl.declare.api import IN_BODY, Api
from recrawl.declare.paging import AfterId, NextLink, NextToken
from recrawl.discover.dates import instant
from recrawl.errors import RecrawlError
from recrawl.extract.charset import decode
from recrawl.extract.content import Content, content_of
from recrawl.extract.jsontext import read_json
from recrawl.extract.select import search_jmes
from recrawl.model.fetched import Answer, Request

_MILLISECONDS_FROM = 100_000_000_000  # as seconds, the year 5138
_MOST_MILLISECONDS = 100_000_000_000_000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FRACTION = re.compile(r":\d{2}[.,]\d")
_LINK = re.compile(r"<([^>]*)>((?:\s*;\s*[\w*!#$&+.^`|~-]+(?:\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s\",;]*))?)*)")
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s\",;]+))", re.IGNORECASE)
_SHOWN = 200
_LONGEST = 8_192  # characters of an id, a token, a link


class Unusable(Exception):
    """An answer that is no answer to the question. `kind` is a short stable word, `reason` a clause about the URL."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an answer. `reach` is what it adds to the cursor, None where that is missing or cannot be read;
    `given` is what stands there instead."""

    value: Any
    id: str | None
    link: str | None
    hint: str | None
    reach: Reach | None
    given: Any = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What an answer holds. `digest` stands for its items; `no_total` says that the declared total was no number."""

    items: tuple[Item, ...]
    told: Told
    digest: str
    no_total: bool = False


def request_for(api: Api, values: Mapping[str, Any], link: str | None, revealed: Mapping[str, Any]) -> Request:
    """The request for one answer: the declared parameters, with `values` over them, or the next link as it came.

    `revealed` has `params`, `json` and `headers` with the secrets in their places.
    """
    headers = {"Accept": "application/json", **revealed["headers"]}
    inside = {name.removeprefix(IN_BODY): value for name, value in values.items() if name.startswith(IN_BODY)}
    beside = {name: value for name, value in values.items() if not name.startswith(IN_BODY)}
    url = link or _with_query(api.url, {**revealed["params"], **beside})
    if api.method == "GET":
        return Request(url, headers=tuple(headers.items()))
    body = deepcopy(dict(revealed["json"]))
    for path, value in inside.items():
        _put(body, path.split("."), value)
    headers.setdefault("Content-Type", "application/json")
    return Request(url, headers=tuple(headers.items()), method=api.method, body=orjson.dumps(body))


def _with_query(url: str, values: Mapping[str, Any]) -> str:
    if not values:
        return url
    parts = urlsplit(url)
    own = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in values]
    given = [
        (name, _text(part))
        for name, value in values.items()
        for part in (value if isinstance(value, (list, tuple)) else [value])
    ]
    return urlunsplit(parts._replace(query=urlencode(own + given), fragment=""))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _put(body: dict[str, Any], path: list[str], value: Any) -> None:
    *way, last = path
    for name in way:
        inner = body.get(name)
        if not isinstance(inner, dict):
            inner = body[name] = {}
        body = inner
    body[last] = value


def read_answer(answer: Answer, api: Api, place: Place, zone: str) -> Answered:
    """The items of an answer, and what it says of the next one. Raises Unusable."""
    if answer.status == 204:
        return Answered((), Told(0), "")
    data = _data(answer)
    _refuse_errors(data)
    items = tuple(_item(value, api, zone) for value in _items(data, api))
    total, last = _told_number(api, data, "total"), _told_number(api, data, "last")
    beyond, behind = _ids(items, place) if isinstance(api.pages, AfterId) else (None, False)
    told = Told(len(items), total, last, _next(api, data, answer), beyond, behind)
    no_total = bool(getattr(api.pages, "total", None)) and total is None
    return Answered(items, told, _digest(items), no_total)


def dumped(value: Any) -> bytes:
    """The one form of an item: keys sorted, so that their order is no change; numbers keep all their digits."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def order_of(value: Any, api: Api, zone: str) -> tuple[str | None, datetime | None]:
    """The version and the time that an item tells of itself."""
    version = search_jmes(api.version, value) if api.version else None
    found = _time(search_jmes(api.updated, value), zone) if api.updated else None
    return (None if version is None else str(version)), found.at if found else None


def _data(answer: Answer) -> Any:
    kind = content_of(answer.body, answer.content_type)
    if kind in (Content.HTML, Content.XML, Content.BINARY) and answer.body.lstrip()[:1] not in (b"{", b"["):
        raise Unusable("no_json", f"answers {kind}, no JSON")
    try:
        text = decode(answer.body, answer.content_type)
        try:
            return read_json(text)
        except ValueError:
            if "\\ud" not in text.lower():
                raise
            # One half of a pair of surrogates in one text is no reason to lose all items.
            return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError, RecrawlError) as error:
        raise Unusable("no_json", f"answers what is no JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _refuse_errors(data: Any) -> None:
    """Many an API tells of errors under the status 200."""
    if isinstance(data, dict):
        for name in ("errors", "error"):
            if data.get(name):
                raise Unusable("error", f"answers 200 with {name!r}: {_shown(data[name])}")


def _items(data: Any, api: Api) -> list[Any]:
    found = search_jmes(api.items, data)
    if isinstance(found, list):
        return found
    if found is None and _told_number(api, data, "total") == 0:
        return []
    what = "nothing" if found is None else f"{_shown(found)}, which is no list,"
    raise Unusable("no_items", f"has {what} at {api.items!r}: {_shown(data)}")


def _item(value: Any, api: Api, zone: str) -> Item:
    link = search_jmes(api.link, value) if api.link else None
    given = None
    reach: Reach | None = None
    if api.since is not None:
        given = search_jmes(api.updated or api.id or "", value)
        reach = _time(given, zone) if api.updated else _counted(given)
    number = search_jmes(api.id, value) if api.id else None
    return Item(
        value=value,
        id=_id_text(number),
        link=link if isinstance(link, str) and link.strip() else None,
        hint=_hint(value, api, zone) if api.link else None,
        reach=reach,
        given=given,
    )


def _id_text(value: Any) -> str | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    text = str(value).strip()
    return text if text and _storable(text) else None


def _storable(text: str) -> bool:
    """Whether databases can hold a text: no NUL, no half of a surrogate pair, no more than an address may have."""
    return "\0" not in text and len(text) <= _LONGEST and not any("\ud800" <= char <= "\udfff" for char in text)


def _counted(value: Any) -> Id | None:
    text = _id_text(value)
    if text is None:
        return None
    return Id(int(value)) if isinstance(value, (int, float)) else Id(text)


def _hint(value: Any, api: Api, zone: str) -> str | None:
    """What an item says of its state: its version, else its time, as other finders write it too."""
    for expression in (api.version, api.updated):
        found = search_jmes(expression, value) if expression else None
        if found is None or isinstance(found, (dict, list, bool)):
            continue
        text = str(found)
        if not _storable(text):
            continue
        whole = None if expression is api.version or _FRACTION.search(text) else instant(text, ZoneInfo(zone))
        return whole or text
    return None


def _time(value: Any, zone: str) -> Time | None:
    """The time that a value names: Unix seconds or milliseconds, or a text."""
    if isinstance(value, str) and not value.strip().isdigit():
        text = value.strip()
        found = instant(text, ZoneInfo(zone))
        form = Form.DATE if _DATE.fullmatch(text) else Form.ISO
        return Time(datetime.fromisoformat(found), form) if found else None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    number = float(value) if len(str(value)) < 30 else float("inf")
    if not 0 <= number < _MOST_MILLISECONDS:
        return None
    if number < _MILLISECONDS_FROM:
        return Time(datetime.fromtimestamp(int(number), UTC), Form.SECONDS)
    return Time(datetime.fromtimestamp(int(number / 1000), UTC), Form.MILLISECONDS)


def _ids(items: tuple[Item, ...], place: Place) -> tuple[int | str | None, bool]:
    """The greatest id beyond a place, and whether some id stands before it."""
    here = Id(place.at).key if place.at is not None else None
    found = [(Id(item.id).key, item.id) for item in items if item.id is not None]
    beyond = [one for one in found if here is None or one[0] > here]
    behind = any(here is not None and key < here for key, _ in found)
    greatest = max(beyond)[1] if beyond else None
    return (int(greatest) if greatest is not None and greatest.isascii() and greatest.isdigit() else greatest), behind


def _next(api: Api, data: Any, answer: Answer) -> int | str | None:
    match api.pages:
        case NextToken(token=expression) | NextLink(next=str() as expression):
            found = search_jmes(expression, data)
            if found is None or found is False or found == "":
                return None
            if isinstance(found, bool) or not isinstance(found, (str, int)) or not _storable(str(found)):
                raise Unusable("no_token", f"has {_shown(found)} at {expression!r}, which leads nowhere")
            return found
        case NextLink():
            return next_link(answer)
    return None


def next_link(answer: Answer) -> str | None:
    """The target of the link with the relation `next` in an answer's Link headers (RFC 8288), as it stands there."""
    for name, value in answer.headers:
        if name.lower() == "link":
            for target, attributes in _LINK.findall(value):
                relation = _REL.search(attributes)
                if relation and "next" in (relation[1] or relation[2] or "").lower().split():
                    return str(target).strip() or None
    return None


def mark_of(item: Item) -> bytes:
    """What tells an item from the others of its list."""
    return (item.id or item.link or "").encode("utf-8", "replace") or dumped(item.value)


def _digest(items: tuple[Item, ...]) -> str:
    return blake2b(b"\0".join(map(mark_of, items)), digest_size=16).hexdigest() if items else ""


def _told_number(api: Api, data: Any, name: str) -> int | None:
    """The number at one of the paging's own expressions, where it has such a one."""
    expression = getattr(api.pages, name, None)
    return _number(search_jmes(expression, data)) if expression else None


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def _shown(value: Any) -> str:
    text = dumped(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

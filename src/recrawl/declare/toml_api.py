"""What of an API's declaration TOML writes in its own way: secrets, log-ins, paging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

from recrawl.declare.api import Since
from recrawl.declare.checks import no_others, suggestion
from recrawl.declare.paging import AfterId, NextLink, NextToken, Offset, PageNumber, Paging
from recrawl.declare.secrets import Basic, Bearer, env
from recrawl.errors import Misuse

_PAGING: dict[str, type[Paging]] = {
    "offset": Offset,
    "page_number": PageNumber,
    "next_token": NextToken,
    "next_link": NextLink,
    "after_id": AfterId,
}


def with_secrets(value: Any, place: str) -> Any:
    """The value with `{ env = "NAME" }` as the secret of that name, wherever it stands."""
    if isinstance(value, dict):
        if set(value) == {"env"}:
            return env(value["env"])
        return {key: with_secrets(item, f"{place}.{key}") for key, item in value.items()}
    return [with_secrets(item, place) for item in value] if isinstance(value, list) else value


def read_auth(value: Any, place: str) -> Bearer | Basic:
    """`{ bearer = { env = "TOKEN" } }` or `{ basic = { user = "me", password = { env = "PASSWORD" } } }`."""
    given = with_secrets(value, place)
    if isinstance(given, dict) and set(given) == {"bearer"}:
        return Bearer(given["bearer"])
    if isinstance(given, dict) and set(given) == {"basic"} and isinstance(given["basic"], dict):
        no_others(given["basic"], ("user", "password"), f"{place}.basic")
        return Basic(given["basic"].get("user"), given["basic"].get("password"))  # type: ignore[arg-type]
    action = 'Write { bearer = { env = "TOKEN" } } or { basic = { user = "me", password = { env = "PASSWORD" } } }.'
    raise Misuse("this is no way to log in", place=place, action=action)


def read_api(options: dict[str, Any], place: str) -> dict[str, Any]:
    """The options of an API as Python's names have them."""
    found = dict(options)
    for name in ("params", "json", "headers"):
        if name in found:
            found[name] = with_secrets(found[name], f"{place}.{name}")
    if "since" in found:
        found["since"] = _since(found["since"], f"{place}.since")
    if "pages" in found:
        found["pages"] = _pages(found["pages"], f"{place}.pages")
    return found


def _since(value: Any, place: str) -> Since:
    """`"updated_since"`, or `{ param = "updated_since", overlap = "10m" }`."""
    table = {"param": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or "param" not in table:
        action = 'Write { param = "updated_since", overlap = "10m" }.'
        raise Misuse("since names no parameter", place=place, action=action)
    no_others(table, (item.name for item in fields(Since)), place)
    return Since(**table)


def _pages(value: Any, place: str) -> Paging:
    """`"offset"`, or `{ offset = "skip", size = 50 }`: the kind, its first value, and the others by name."""
    table = {value: None} if isinstance(value, str) else value
    kinds = [key for key in table if key in _PAGING] if isinstance(table, dict) else []
    if len(kinds) != 1:
        raise Misuse(f"{value!r} is no way of paging", place=place, action=suggestion(str(value), _PAGING))
    cls, first = _PAGING[kinds[0]], table[kinds[0]]
    named = [item for item in fields(cls) if not item.kw_only]
    others = {key: item for key, item in table.items() if key != kinds[0]}
    no_others(others, (item.name for item in fields(cls) if item is not named[0]), place)
    if first is None and named[0].default is MISSING:
        action = f'Write {{ {kinds[0]} = "..." }}: {named[0].name} is needed.'
        raise Misuse(f"{kinds[0]} lacks its {named[0].name}", place=place, action=action)
    if first is not None:
        others[named[0].name] = first
    make: Callable[..., Paging] = cls
    return make(**others)

"""Replaying dead letters, with raw fields under other names where a source has renamed them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from recrawl.decide.envelope import ENVELOPE, read_line
from recrawl.errors import Misuse
from recrawl.store import replay as verb
from recrawl.store.database import Store
from recrawl.store.dead import Selection


def replay(store: Store, selection: Selection, *, renamed: Mapping[str, str], now: datetime) -> verb.Replayed:
    """Begin the letters of a selection anew. `renamed` maps raw names to those that the record knows, for pushed
    records: a dotted name is looked up in what it is nested in."""
    return verb.replay(store, selection, now=now, change=partial(rename, renamed=renamed))


def pairs(given: Sequence[str]) -> dict[str, str]:
    """`salePrice=price` as a mapping. Raises Misuse for anything else."""
    found = {}
    for one in given:
        old, sign, new = one.partition("=")
        if not (sign and old.strip() and new.strip()):
            raise Misuse(f"{one!r} renames nothing", place="--map", action="Write for instance --map salePrice=price.")
        found[old.strip()] = new.strip()
    return found


def rename(raw: bytes, renamed: Mapping[str, str]) -> bytes:
    """A pushed line with its fields under other names; a name that it does not hold changes nothing."""
    if not renamed:
        return raw
    try:
        value = read_line(raw)
    except ValueError:
        return raw
    if not isinstance(value, dict):
        return raw
    data = value["data"] if "data" in value and value.keys() <= ENVELOPE else value
    for part in data if isinstance(data, list) else [data]:
        if isinstance(part, dict):
            for old, new in renamed.items():
                _move(part, old.split("."), new)
    return json.dumps(value, separators=(",", ":")).encode()


def _move(record: dict[str, Any], path: Sequence[str], new: str) -> None:
    holder: Any = record
    for name in path[:-1]:
        holder = holder.get(name) if isinstance(holder, dict) else None
    if isinstance(holder, dict) and path[-1] in holder:
        record[new] = holder.pop(path[-1])

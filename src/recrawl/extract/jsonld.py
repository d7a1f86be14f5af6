"""Reading by a path through JSON-LD (schema.org): a small reader, for values and not for graphs."""

from __future__ import annotations

from typing import Any

_MOST = 10_000  # values at each step of a path; references in circles multiply


def objects_of(documents: list[Any]) -> list[dict[str, Any]]:
    """The objects of all documents in order: lists and `@graph` are opened."""
    found: list[dict[str, Any]] = []
    pending = list(reversed(documents))
    while pending and len(found) < _MOST:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(reversed(item))
        elif isinstance(item, dict):
            found.append(item)
            if isinstance(graph := item.get("@graph"), list):
                pending.extend(reversed(graph))
    return found


def values_at(objects: list[dict[str, Any]], path: str) -> list[Any]:
    """All values at a dotted path, of the first object that has any.

    A first part that begins with a capital names the object's `@type`. Lists are entered, a reference (`@id` alone) is
    followed to its object, and text in place of an object is its value: `author.name` reads `"author": "Ann"` too.
    """
    parts = path.split(".")
    wanted = parts.pop(0) if parts[0][:1].isupper() else None
    known = {item["@id"]: item for item in objects if isinstance(item.get("@id"), str) and len(item) > 1}
    for item in objects:
        if wanted is None or wanted in _types(item):
            values: list[Any] = [item]
            for part in parts:
                values = _opened([_step(value, part) for value in values], known)
            if values:
                return [value.get("@value", value) if isinstance(value, dict) else value for value in values]
    return []


def _types(item: dict[str, Any]) -> list[str]:
    given = item.get("@type")
    names = given if isinstance(given, list) else [given]
    return [name.rpartition("/")[2] for name in names if isinstance(name, str)]


def _step(value: Any, part: str) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    return value if isinstance(value, str) else None


def _opened(values: list[Any], known: dict[str, dict[str, Any]]) -> list[Any]:
    """The values in order, lists replaced by their items and references by what they refer to."""
    found: list[Any] = []
    pending = values[::-1]
    while pending and len(found) < _MOST:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(reversed(value))
        elif isinstance(value, dict) and len(value) == 1 and isinstance(value.get("@id"), str):
            found.append(known.get(value["@id"], value))
        elif value is not None:
            found.append(value)
    return found

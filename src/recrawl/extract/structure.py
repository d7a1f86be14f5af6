"""The shape of a page: what stays when its text changes, and moves when its template does."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from selectolax.lexbor import LexborNode

_DEEPEST = 40  # below, a template shows nothing new


def html_shape(root: LexborNode) -> str:
    """SHA-256 (hex) over the set of tag paths.

    How often a path occurs does not count, nor where: a list that grows keeps its shape.
    """
    tree: dict[str, Any] = {}
    places = {root.mem_id: tree}
    walk = root.traverse()
    next(walk)
    for node in walk:
        above = places[node.parent.mem_id]  # type: ignore[union-attr]  # only the root is without one
        tag = node.tag or ""
        place = above.get(tag)
        if place is None:
            place = above[tag] = {}
        places[node.mem_id] = place
    level = [tree]
    for _ in range(_DEEPEST):
        level = [below for place in level for below in place.values()]
    for place in level:
        place.clear()
    return hashlib.sha256(orjson.dumps([root.tag, tree], option=orjson.OPT_SORT_KEYS)).hexdigest()


def json_shape(document: Any) -> str:
    """SHA-256 (hex) over the set of paths of keys; all items of a list share one."""
    paths: list[str] = []
    level = {"": [document]}
    for _ in range(_DEEPEST):
        paths += level
        below: dict[str, list[Any]] = {}
        for path, values in level.items():
            groups: dict[str, list[Any]] = {}
            for value in values:
                if isinstance(value, dict):
                    for key, inner in value.items():
                        groups.setdefault(key, []).append(inner)
                elif isinstance(value, list) and value:
                    groups.setdefault("*", []).extend(value)
            below |= {f"{path}/{key}": group for key, group in groups.items()}
        level = below
    return hashlib.sha256("\n".join(sorted(paths)).encode("utf-8", "surrogatepass")).hexdigest()

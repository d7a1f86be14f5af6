"""The shape of a page: what stays when its text changes, and moves when its template does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from selectolax.lexbor import LexborNode

from recrawl.extract.text import Outline

_DEEPEST = 40  # below, a template shows nothing new


def html_shape(root: LexborNode, outlines: Mapping[int, Outline]) -> str:
    """SHA-256 (hex) over the set of tag paths. `outlines` holds what is known of elements, by their `mem_id`.

    How often a path occurs does not count, nor where: a list that grows keeps its shape.
    """
    tree: Outline = {}
    around = [(tree, root.iter())]
    while around:
        place, walk = around.pop()
        for node in walk:
            tag = node.tag or ""
            known = outlines.get(node.mem_id)
            below = place.get(tag)
            if below is None:
                below = place[tag] = known or {}
            if known is None or below is not known:
                around += ((place, walk), (below, node.iter()))
                break
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

"""The shape of a page: what stays when its text changes, and moves when its template does."""

from __future__ import annotations

import hashlib
from typing import Any

from selectolax.lexbor import LexborNode

_DEEPEST = 40  # below, a template shows nothing new


def html_shape(root: LexborNode) -> str:
    """SHA-256 (hex) over the set of tag paths.

    How often a path occurs does not count, nor where: a list that grows keeps its shape.
    """
    paths: list[str] = []
    level = {root.tag or "": [root]}
    for _ in range(_DEEPEST):
        paths += level
        below: dict[str, list[LexborNode]] = {}
        for path, nodes in level.items():
            groups: dict[str | None, list[LexborNode]] = {}
            for node in nodes:
                for child in node.iter():
                    groups.setdefault(child.tag, []).append(child)
            below |= {f"{path}/{tag}": group for tag, group in groups.items()}
        level = below
    return _hash(paths)


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
    return _hash(paths)


def _hash(paths: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(paths)).encode("utf-8", "surrogatepass")).hexdigest()

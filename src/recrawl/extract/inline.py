"""JSON that the scripts of a page assign to a name: `window.__INITIAL_STATE__ = {...}`.

Literals are read, no script is run: what only a JavaScript engine could make sense of is not found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_MOST: Final = 50
"""Assignments of one script that are tried."""
_ASSIGNED = re.compile(
    r"(?:\b(?:window|self|globalThis)\s*+(?:\.\s*+[\w$]++|\[\s*+[\"'][^\"']++[\"']\s*+\])|\b(?:var|let|const)\s++[\w$]++)"
    r"\s*+=\s*+(?:JSON\.parse\s*+\(\s*+(?P<quoted>[\"'])|(?=[{\[]))"
)
_STRING = {
    '"': re.compile(r"((?:[^\"\\\n]|\\.)*+)\"", re.DOTALL),
    "'": re.compile(r"((?:[^'\\\n]|\\.)*+)'", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_PLAIN: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
# Strings are matched too, so that the word inside of one stays.
_UNDEFINED = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|\bundefined\b", re.DOTALL)
_DECODER = json.JSONDecoder(strict=False)


def inline_values(script: str) -> Iterator[Any]:
    """The objects and arrays that a script assigns as JSON literals, or as `JSON.parse("...")`, in its order."""
    at = 0
    for _ in range(_MOST):
        found = _ASSIGNED.search(script, at)
        if found is None:
            return
        at = found.end()
        if found["quoted"]:
            text = _STRING[found["quoted"]].match(script, at)
            value, at = (_parsed(_unescaped(text[1])), text.end()) if text else (None, at)
        else:
            value, at, script = _literal(script, at)
        if isinstance(value, (dict, list)):
            yield value


def _literal(script: str, at: int) -> tuple[Any, int, str]:
    """The value that begins at `at`, where it ends, and the script, in which `undefined` is null where that was met."""
    for _ in range(2):
        try:
            return *_DECODER.raw_decode(script, at), script
        except json.JSONDecodeError as error:
            if not script.startswith("undefined", error.pos):
                break
            # All of them at once, and of the same length: a script is mended once.
            script = script[:at] + _UNDEFINED.sub(_null, script[at:])
        except RecursionError:
            break
    return None, at, script


def _null(word: re.Match[str]) -> str:
    return "null     " if word[0] == "undefined" else word[0]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _unescaped(text: str) -> str:
    """What a JavaScript string holds (ECMA-262, string literals)."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(lambda at: chr(int(at[1] or at[2], 16)) if at[3] is None else _PLAIN.get(at[3], at[3]), text)
    # Characters beyond 16 bits are written as two.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

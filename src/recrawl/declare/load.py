"""Declarations from a file: Python, or TOML."""

from __future__ import annotations

import hashlib
import inspect
import linecache
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

import recrawl.declare as names
from recrawl.declare.checks import at, suggestion
from recrawl.declare.source import Source
from recrawl.errors import Misuse

_KEYWORD = re.compile(r"(\w+)(?:\.__init(?:_subclass)?__)?\(\) got an unexpected keyword argument '(\w+)'")


def load(path: Path) -> list[Source]:
    """The sources that a file declares, in order: module-level ones of a `.py`, each `[source.x]` of a `.toml`.

    Raises Misuse for whatever is wrong with the file, with its place and what is allowed there.
    """
    readers = {".py": _load_python, ".toml": _load_toml}
    if path.suffix not in readers:
        raise Misuse(f"{path.name!r} is no declaration", place=str(path), action="Name a .py or a .toml file.")
    try:
        data = path.read_bytes()
    except OSError as error:
        action = "Check the path; `recrawl init` writes a first declaration."
        raise Misuse(f"the file cannot be read: {error.strerror}", place=str(path), action=action) from None
    sources = readers[path.suffix](path, data)
    if not sources:
        action = 'Declare one: Source("books", find=...) in Python, [source.books] in TOML.'
        raise Misuse("the file declares no source", place=str(path), action=action)
    return sources


def _load_toml(path: Path, data: bytes) -> list[Source]:
    from recrawl.declare.toml import read_toml

    with at(str(path)):
        return read_toml(data)


def _load_python(path: Path, data: bytes) -> list[Source]:
    path = path.resolve()
    module = _run(path, data)
    found: dict[str, Source] = {}
    for value in vars(module).values():
        if isinstance(value, Source) and found.setdefault(value.name, value) is not value:
            action = "Give each a name of its own."
            raise Misuse(f"two sources have the name {value.name!r}", place=str(path), action=action)
    return list(found.values())


def _run(path: Path, data: bytes) -> ModuleType:
    # Under a name of its own, so that `if __name__ == "__main__"` stays silent and two files of one name stay apart.
    name = f"recrawl_declared_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    if str(path.parent) not in sys.path:
        # Last, so that a file of the user's cannot take the place of a library that is imported later.
        sys.path.append(str(path.parent))
    linecache.checkcache(str(path))
    sys.modules[name] = module
    try:
        exec(compile(data, str(path), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _told(error, path) from None
    return module


def _told(error: BaseException, path: Path) -> Misuse:
    """The user's own error, with his file and line and nothing of recrawl's."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        action = "Correct the Python of that line."
        return Misuse(f"{type(error).__name__}: {error.msg}", place=f"{path}, line {error.lineno}", action=action)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    place = f"{path}, line {lines[-1]}" if lines else str(path)
    if isinstance(error, Misuse):
        return Misuse(error.problem, place=f"{place}: {error.place}" if error.place else place, action=error.action)
    message = str(error)
    if (found := _KEYWORD.search(message)) and (allowed := _keywords_of(found[1])):
        problem = f"{found[2]!r} is not known to {found[1]}"
        return Misuse(problem, place=place, action=suggestion(found[2], allowed))
    return Misuse(f"{type(error).__name__}: {message}", place=place, action="The file itself raised this: correct it.")


def _keywords_of(name: str) -> list[str]:
    """The keywords of one of recrawl's own names; of `Record`, those of the class statement."""
    declared = names.Record.__init_subclass__ if name == "Record" else getattr(names, name, None)
    if not callable(declared):
        return []
    return [key for key, item in inspect.signature(declared).parameters.items() if item.kind is item.KEYWORD_ONLY]

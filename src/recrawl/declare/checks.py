"""Checks that declarations share: is this value of the type that the field is declared with?"""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import can_ada

from recrawl.declare.policies import seconds
from recrawl.errors import Misuse

D = TypeVar("D")


@contextmanager
def at(place: str) -> Iterator[None]:
    """Errors that a user made inside are told with `place` in front of their own."""
    try:
        yield
    except Misuse as error:
        where = f"{place}: {error.place}" if error.place else place
        raise Misuse(error.problem, place=where, action=error.action) from None


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """What to write in place of `word`: the nearest allowed one, and the list."""
    choices = list(allowed)
    near = difflib.get_close_matches(word, choices, 1) or difflib.get_close_matches(word.lower(), choices, 1)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    return f"{guess}Allowed: {', '.join(choices)}."


def no_others(given: Iterable[str], allowed: Iterable[str], place: str) -> None:
    """Refuse names that are not among the allowed ones."""
    allowed = list(allowed)
    for name in given:
        if name not in allowed:
            raise Misuse(f"{name!r} is not known here", place=place, action=suggestion(name, allowed))


def hints_of(cls: Any) -> dict[str, Any]:
    """The types of a dataclass's own fields, in order."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def is_span(hint: Any) -> bool:
    return timedelta in get_args(hint)


def conform(value: Any, hint: Any, place: str) -> Any:
    """The value, with lists as tuples and a single text as a tuple of one where several are meant.

    Raises Misuse where the value is not of the type that `hint` names.
    """
    arms = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    for arm in arms:
        fitting, found = _fit(value, arm)
        if fitting:
            if is_span(hint) and value is not None:
                seconds(value, place=place)
            return found
    raise _unfit(value, arms, place)


def _unfit(value: Any, arms: Sequence[Any], place: str) -> Misuse:
    choices = [choice for arm in arms if get_origin(arm) is Literal for choice in get_args(arm)]
    if choices and isinstance(value, str):
        return Misuse(f"{value!r} is not allowed", place=place, action=suggestion(value, choices))
    action = f"Allowed: {', '.join(_named(arm) for arm in arms)}."
    return Misuse(f"{value!r} is of the wrong type", place=place, action=action)


def _fit(value: Any, hint: Any) -> tuple[bool, Any]:
    origin = get_origin(hint) or hint
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint), value
    if origin in (Sequence, tuple):
        items = (value,) if isinstance(value, str) else value
        return isinstance(items, (list, tuple)) and all(isinstance(item, str) for item in items), tuple(items or ())
    if origin is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool), value
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool), value
    return isinstance(value, origin), value


def _named(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(repr(choice) for choice in get_args(hint))
    if get_origin(hint) in (Sequence, tuple):
        return "a list of texts"
    plain = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", type(None): "none"}
    return plain.get(hint) or str(getattr(get_origin(hint) or hint, "__name__", hint))


def checked(value: D, place: str) -> D:
    """A dataclass instance whose every field conforms to its type."""
    kinds = hints_of(type(value))
    found = {name: conform(getattr(value, name), hint, f"{place}.{name}") for name, hint in kinds.items()}
    return replace(value, **found)  # type: ignore[type-var]


def at_least(number: float, least: float, place: str) -> None:
    if not number >= least:
        raise Misuse(f"{number} is too small", place=place, action=f"Write {least:g} or more.")


def share(number: float, place: str) -> None:
    if not 0 <= number <= 1:
        raise Misuse(f"{number} is no share of a whole", place=place, action="Write a number from 0 to 1.")


def pattern(expression: str | re.Pattern[str], place: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except re.error as error:
        raise Misuse(
            f"{expression!r} is no regular expression: {error}",
            place=place,
            action=r"Write a Python regular expression, for instance '/book/\d+'.",
        ) from None
    except TypeError:
        raise Misuse("a regular expression over bytes", place=place, action="Write one over text.") from None


def web_host(url: str, place: str) -> str:
    """The host of an http(s) URL, lower case and in ASCII. The URL itself may not hold a password."""
    try:
        parsed = can_ada.parse(url)
    except ValueError:
        parsed = None
    if parsed is None or parsed.protocol not in ("http:", "https:") or not parsed.hostname:
        raise Misuse(f"{url!r} is no web address", place=place, action="Write it in full: https://site.example/...")
    if parsed.username or parsed.password:
        # The address is not repeated: messages end in logs.
        raise Misuse(
            f"the address of {parsed.hostname} holds a user name or password",
            place=place,
            action="Secrets never stand in a URL: leave it out.",
        )
    return str(parsed.hostname)

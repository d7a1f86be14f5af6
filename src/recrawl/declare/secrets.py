"""Secrets: a declaration holds the names of environment variables, never what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from recrawl.errors import Misuse

_ACTION = 'Name the environment variable that holds it: env("API_TOKEN"), in TOML { env = "API_TOKEN" }.'
_TELLTALE = frozenset(["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "apikey"])


@dataclass(frozen=True)
class Secret:
    """The name of an environment variable that holds a secret; the secret itself is nowhere in a declaration."""

    name: str


def env(name: str) -> Secret:
    """A secret that is read from the environment when it is needed."""
    given: object = name
    if not isinstance(given, str) or not given or "=" in given or "\0" in given:
        # What was written here may be the secret itself.
        raise Misuse("this is no name of an environment variable", place="env", action=_ACTION)
    return Secret(name)


@dataclass(frozen=True)
class Bearer:
    """`Authorization: Bearer TOKEN` (RFC 6750), to the origins that the source's finders name and to no other."""

    token: Secret

    def __post_init__(self) -> None:
        _is_secret(self.token, "Bearer.token")


@dataclass(frozen=True)
class Basic:
    """`Authorization: Basic ...` (RFC 7617), to the origins that the source's finders name and to no other."""

    user: str | Secret
    password: Secret

    def __post_init__(self) -> None:
        _is_secret(self.password, "Basic.password")
        if not isinstance(self.user, (str, Secret)):
            raise Misuse("the user is neither a text nor a secret", place="Basic.user", action=_ACTION)


def _is_secret(given: object, place: str) -> None:
    if not isinstance(given, Secret):
        # Not repeated: what was written here may be the secret itself, and messages end in logs.
        raise Misuse("a secret stands in the declaration itself", place=place, action=_ACTION)


def check_auth(given: object, place: str) -> None:
    """Raise Misuse for what is no log-in, without repeating it."""
    if given is not None and not isinstance(given, (Bearer, Basic)):
        raise Misuse("this is no way to log in", place=place, action='Write Bearer(env("TOKEN")) or Basic(...).')


def check_headers(headers: Mapping[str, Any], place: str) -> None:
    """Raise Misuse for what is no header, or is one that holds a secret in plain."""
    for name, value in headers.items():
        where = f"{place}.{name}"
        if not isinstance(value, (str, Secret)):
            raise Misuse(f"the header {name!r} is no text", place=where, action="Write a text, or env(...).")
        if isinstance(value, str) and name.lower() in _TELLTALE:
            raise Misuse("a secret stands in the declaration itself", place=where, action=_ACTION)
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise Misuse(f"{name!r} is no name of a header", place=place, action="Write for instance 'X-Version'.")


def secrets_in(value: Any) -> Iterator[Secret]:
    """All secrets that stand anywhere in a declared value."""
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from secrets_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from secrets_in(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from secrets_in(getattr(value, field.name))

"""The secrets of a source: sent where they are meant to go, and nowhere else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, quote_plus

from recrawl.decide.urls import BadUrl, origin, wire_url
from recrawl.declare import Source
from recrawl.declare.secrets import Basic, Bearer, Secret, secrets_in
from recrawl.errors import Misuse
from recrawl.model.fetched import Request


def secrets_of(source: Source, environment: Mapping[str, str]) -> dict[str, str]:
    """What the environment holds of the secrets that a source names. Raises Misuse where one is missing."""
    found: dict[str, str] = {}
    for secret in secrets_in(source):
        value = environment.get(secret.name, "")
        if not value:
            problem = f"the environment variable {secret.name} is not set"
            action = f"Set it, and run the same command again: export {secret.name}=..."
            raise Misuse(problem, place=f"source.{source.name}", action=action)
        if not value.isprintable():
            problem = f"the environment variable {secret.name} holds a line break or another control character"
            raise Misuse(problem, place=f"source.{source.name}", action="Set it to the secret alone.")
        found[secret.name] = value
    return found


class Keyring:
    """Puts secrets into requests, and takes them out of everything that is stored or shown."""

    def __init__(self, source: Source, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self._auth = self._header(source.auth)
        self._origins = {origin(wire_url(url)) for finder in source.finders for url in finder.addresses}
        self._hidden = {
            form: f"env({name})"
            for name, value in values.items()
            for form in (value, quote(value, ""), quote_plus(value))
        }

    def signed(self, request: Request) -> Request:
        """The request with the source's log-in, where it goes to an origin that the user named for this source."""
        if self._auth is None or any(name.lower() == "authorization" for name, _ in request.headers):
            return request
        return replace(request, headers=(*request.headers, self._auth)) if self.may_know(request.url) else request

    def may_know(self, url: str) -> bool:
        """Whether secrets may be sent to this URL."""
        try:
            return origin(wire_url(url)) in self._origins
        except BadUrl:
            return False

    def reveal(self, value: Any) -> Any:
        """A declared value with the secrets themselves in the place of their names."""
        if isinstance(value, Secret):
            return self._values[value.name]
        if isinstance(value, Mapping):
            return {key: self.reveal(item) for key, item in value.items()}
        return [self.reveal(item) for item in value] if isinstance(value, (list, tuple)) else value

    def conceal(self, text: str) -> str:
        """A text with the names of secrets in the place of the secrets, as they are or as a URL writes them."""
        for form in sorted(self._hidden, key=len, reverse=True):
            text = text.replace(form, self._hidden[form])
        return text

    def conceal_bytes(self, data: bytes) -> bytes:
        for form in sorted(self._hidden, key=len, reverse=True):
            data = data.replace(form.encode(), self._hidden[form].encode())
        return data

    def restored(self, text: str) -> str:
        """A concealed URL as it goes on the wire."""
        for name, value in self._values.items():
            text = text.replace(f"env({name})", quote(value, ""))
        return text

    def _header(self, auth: Bearer | Basic | None) -> tuple[str, str] | None:
        if auth is None:
            return None
        if isinstance(auth, Bearer):
            return ("Authorization", f"Bearer {self._values[auth.token.name]}")
        user, password = self.reveal(auth.user), self.reveal(auth.password)
        return ("Authorization", f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}")

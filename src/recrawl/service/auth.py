"""Who may ask: a bearer token (RFC 6750) with a scope, or anyone on a loopback address that has no tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from recrawl.operate.scopes import Scope
from recrawl.service.desk import TheDesk
from recrawl.service.problems import Problem
from recrawl.store import tokens

_bearer = HTTPBearer(auto_error=False, description="A token of `recrawl token create`.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def requires(scope: Scope) -> Callable[..., Awaitable[None]]:
    """A dependency that lets a request through only with a token of this scope."""

    async def check(desk: TheDesk, credentials: Credentials) -> None:
        if credentials is None:
            if await desk.is_open():
                return
            raise _unknown("a token is needed", "Send `Authorization: Bearer TOKEN`; `recrawl token create` makes one.")
        token = await desk.db(tokens.known, credentials.credentials, desk.now())
        if token is None:
            raise _unknown("the token is not known, or it is no longer valid", "Ask for a new one.", "invalid_token")
        if scope not in token.scopes:
            action = f"Use a token with the scope {scope}; this one has {', '.join(token.scopes)}."
            raise Problem(403, f"the token does not allow to {scope}", action=action)

    return check


def _unknown(detail: str, action: str, error: str = "") -> Problem:
    challenge = f'Bearer error="{error}"' if error else "Bearer"
    return Problem(401, detail, action=action, headers={"WWW-Authenticate": challenge})

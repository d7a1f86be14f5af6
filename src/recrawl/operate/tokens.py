"""Making tokens for the HTTP service. A secret is shown once, and is nowhere in the database."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from recrawl.errors import Misuse
from recrawl.operate.scopes import Scope
from recrawl.store import tokens
from recrawl.store.database import Store

_PREFIX = "recrawl_"


def create(
    store: Store, name: str, scopes: tuple[Scope, ...], *, now: datetime, lasts: float | None
) -> tuple[int, str]:
    """Make a token; its id and its secret. `lasts` is in seconds, None for ever. Raises Misuse without a scope."""
    if not scopes:
        action = f"Say what it is for: --scope {' --scope '.join(Scope)}."
        raise Misuse("a token without a scope allows nothing", place="--scope", action=action)
    secret = _PREFIX + secrets.token_urlsafe(32)
    expires_at = None if lasts is None else now + timedelta(seconds=lasts)
    return tokens.keep(store, secret, name, tuple(dict.fromkeys(scopes)), now, expires_at), secret

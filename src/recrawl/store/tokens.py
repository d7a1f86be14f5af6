"""Tokens of the HTTP service. The database holds their SHA-256 only: it opens nothing to whoever reads it."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from sqlalchemy import ColumnElement, func, insert, or_, select, update

from recrawl.store.database import Store
from recrawl.store.tables import tokens

_token = tokens.c


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token. `scopes` are what it allows."""

    id: int
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


def _hash(secret: str) -> str:
    # 256 random bits need no slow hash.
    return sha256(secret.encode()).hexdigest()


def keep(
    store: Store, secret: str, name: str, scopes: tuple[str, ...], now: datetime, expires_at: datetime | None
) -> int:
    """Keep a new token by its hash; its id."""
    values = {"name": name, "hash": _hash(secret), "scopes": list(scopes), "created_at": now, "expires_at": expires_at}
    return store.write(
        lambda connection: int(connection.execute(insert(tokens).values(values).returning(_token.id)).scalar_one())
    )


def known(store: Store, secret: str, now: datetime) -> Token | None:
    """The token that a secret is, if it is valid now; compared in a time that tells nothing of the stored one."""
    hashed = _hash(secret)
    # The index is searched by a hash, which nobody can steer towards a stored one.
    with store.read() as connection:
        row = connection.execute(select(tokens).where(_token.hash == hashed, *_valid(now))).one_or_none()
    if row is None or not hmac.compare_digest(row.hash, hashed):
        return None
    return Token(row.id, row.name, tuple(row.scopes), row.created_at, row.expires_at, row.revoked_at)


def any_valid(store: Store, now: datetime) -> bool:
    """Whether there is a token that opens anything."""
    with store.read() as connection:
        return bool(connection.execute(select(func.count()).select_from(tokens).where(*_valid(now))).scalar_one())


def every(store: Store) -> list[Token]:
    """All tokens, revoked and expired ones too, in the order in which they were made."""
    columns = (_token.id, _token.name, _token.scopes, _token.created_at, _token.expires_at, _token.revoked_at)
    with store.read() as connection:
        rows = connection.execute(select(*columns).order_by(_token.id)).all()
    return [Token(row.id, row.name, tuple(row.scopes), *row[3:]) for row in rows]


def revoke(store: Store, number: int, now: datetime) -> bool:
    """Make a token useless from now on; False if there is none of that id that was of use."""
    statement = update(tokens).where(_token.id == number, _token.revoked_at.is_(None)).values(revoked_at=now)
    return store.write(lambda connection: bool(connection.execute(statement).rowcount))


def _valid(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return (_token.revoked_at.is_(None), or_(_token.expires_at.is_(None), _token.expires_at > now))

"""`recrawl token`: who may use the HTTP service."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.surface import JsonOption, StoreOption, emit, known_store, out, safe
from recrawl.errors import Misuse
from recrawl.operate.scopes import Scope

if TYPE_CHECKING:
    from recrawl.store.tokens import Token

app = typer.Typer(help="Make, list and revoke tokens of the HTTP service.", no_args_is_help=True)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Who or what will use it.")],
    scope: Annotated[list[Scope], typer.Option("--scope", help="What it allows; give it again for more.")],
    lasts: Annotated[str | None, typer.Option("--lasts", metavar="T", help="Until it expires, such as 90d.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make a token. It is shown once: the database keeps only its hash."""
    from recrawl.declare.policies import seconds
    from recrawl.operate import tokens
    from recrawl.run.wire import store_at
    from recrawl.store import migrate

    span = seconds(lasts, place="--lasts") if lasts is not None else None
    with closing(store_at(store)) as opened:
        migrate.ready(opened)
        number, secret = tokens.create(opened, name, tuple(scope), now=datetime.now(UTC), lasts=span)
    if json:
        emit({"id": number, "token": secret, "name": name, "scopes": scope})
    else:
        out().print(secret, soft_wrap=True)
        out().print(f"Token {number}, for {', '.join(scope)}. Keep it: it is not shown again.")


@app.command("list")
def list_tokens(store: StoreOption = None, json: JsonOption = False) -> None:
    """Show all tokens, without their secrets."""
    from recrawl.store import tokens

    with known_store(store) as opened:
        found = tokens.every(opened)
    if json:
        emit(found)
        return
    if not found:
        out().print("no tokens")
    for token in found:
        out().print(f"{token.id:4}  {safe(token.name):20} {', '.join(token.scopes):20} {_state(token)}")


def _state(token: Token) -> str:
    if token.revoked_at:
        return f"revoked {token.revoked_at:%Y-%m-%d %H:%M} UTC"
    if token.expires_at is None:
        return f"since {token.created_at:%Y-%m-%d}"
    expired = token.expires_at <= datetime.now(UTC)
    return f"{'expired' if expired else 'until'} {token.expires_at:%Y-%m-%d %H:%M} UTC"


@app.command()
def revoke(
    number: Annotated[int, typer.Argument(metavar="ID", help="The token, as `token list` numbers it.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make a token useless from now on."""
    from recrawl.store import tokens

    with known_store(store) as opened:
        done = tokens.revoke(opened, number, datetime.now(UTC))
        place = opened.place
    if not done:
        raise Misuse(f"there is no token {number} in use", place=place, action="See `recrawl token list`.")
    if json:
        emit({"revoked": number})
    else:
        out().print(f"token {number} is revoked")

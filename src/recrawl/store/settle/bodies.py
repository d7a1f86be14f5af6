"""Bodies: each kept once, under the hash of its plain bytes."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from recrawl.model.outcome import Body
from recrawl.store.database import Store
from recrawl.store.tables import bodies


def write(store: Store, connection: Connection, found: Iterable[Body | None]) -> None:
    rows = {body.hash: body for body in found if body is not None}
    if rows:
        connection.execute(
            store.insert(bodies).on_conflict_do_nothing(),
            [
                {"hash": body.hash, "codec": body.codec, "size": body.size, "data": body.data}
                for _, body in sorted(rows.items())
            ],
        )

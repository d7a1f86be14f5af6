"""Bodies: each kept once, under the hash of its plain bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, text

from recrawl.model.outcome import Body
from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
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


def kept(store: Store, hashes: Sequence[str]) -> set[str]:
    """Those of these hashes under which a body is stored."""
    statement = text(f"SELECT b.hash FROM {rowset(store, {'h': 'text'})} CROSS JOIN bodies b WHERE b.hash = r.h")
    with store.read() as connection:
        return {row.hash for row in connection.execute(statement, {"rows": packed({"h": one} for one in hashes)})}

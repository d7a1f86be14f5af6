"""Dead letters: what could not become data, kept with raw bytes and reason; put aside once the page reads well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import zstandard
from sqlalchemy import Connection, insert, select, text, update

from recrawl.model.outcome import Changed, Moved, Unchanged
from recrawl.model.settlement import Settlement, Verdict
from recrawl.model.work import PageState
from recrawl.store.database import Store
from recrawl.store.rowset import packed, rowset
from recrawl.store.tables import dead_letters
from recrawl.store.types import instant

MOST_RAW = 8_000_000
# Pages in these states have no letter: whatever brings one leaves a page in another.
_WITHOUT = (PageState.NEW, PageState.ACTIVE)


def write(
    store: Store,
    connection: Connection,
    kept: Sequence[Settlement],
    verdicts: Mapping[int, Verdict],
    now: datetime,
) -> None:
    """Keep what died, once per page and reason, and resolve the letters of pages that read well again."""
    well = [
        verdicts[s.task.id].page.id
        for s in kept
        if isinstance(s.outcome, Changed | Unchanged | Moved)
        and s.task.page
        and s.task.page.status not in _WITHOUT
        and verdicts[s.task.id].page.status is not s.task.page.status
    ]
    _resolve(store, connection, well, now)
    for settlement in kept:
        verdict = verdicts[settlement.task.id]
        letter = verdict.dead
        if letter is None:
            continue
        waiting = connection.execute(
            select(dead_letters.c.id).where(
                dead_letters.c.page == verdict.page.id,
                dead_letters.c.signature == letter.signature,
                dead_letters.c.resolved_at.is_(None),
            )
        ).scalar_one_or_none()
        values = {
            "task_key": settlement.task.key,
            "reason": letter.reason,
            **packed_raw(letter.raw),
            "fetched_at": settlement.outcome.look.at,
            "final_url": settlement.outcome.look.final_url,
            "content_type": settlement.outcome.look.content_type,
            "errors": list(letter.errors),
            "observed": settlement.task.observed,
            "created_at": now,
        }
        if waiting is not None:
            connection.execute(update(dead_letters).where(dead_letters.c.id == waiting).values(values))
        else:
            connection.execute(
                insert(dead_letters).values(
                    source=verdict.page.source,
                    page=verdict.page.id,
                    stage=letter.stage,
                    signature=letter.signature,
                    **values,
                )
            )


def packed_raw(raw: bytes) -> dict[str, object]:
    """The columns that hold a letter's raw bytes."""
    if not raw:
        return {"raw": None, "raw_codec": None}
    return {"raw": zstandard.ZstdCompressor(level=3).compress(raw[:MOST_RAW]), "raw_codec": "zstd"}


def _resolve(store: Store, connection: Connection, pages: list[int], now: datetime) -> None:
    if pages:
        connection.execute(
            text(
                "UPDATE dead_letters SET resolved_at = :now, resolution = 'superseded' WHERE resolved_at IS NULL "
                f"AND page IN (SELECT page FROM {rowset(store, {'page': 'int'})})"
            ).bindparams(instant("now", now)),
            {"rows": packed({"page": page} for page in sorted(pages))},
        )

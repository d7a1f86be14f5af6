"""Events: what no version row says."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, insert

from recrawl.model.settlement import Verdict
from recrawl.store.tables import events


def write(connection: Connection, verdicts: Iterable[Verdict], now: datetime) -> None:
    rows = [
        {"source": v.page.source, "page": v.page.id, "kind": v.event[0], "data": v.event[1], "at": now}
        for v in sorted(verdicts, key=lambda verdict: verdict.page.id)
        if v.event is not None
    ]
    if rows:
        connection.execute(insert(events), rows)

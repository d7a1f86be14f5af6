"""The same validation, upsert and history in a bare loop: no inbox, no dedup, no leases, no order, no dead letters.

python -m benchmarks.peers.clean_bare DATABASE COUNT
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

import orjson
import pysqlite3.dbapi2 as sqlite

from benchmarks.offers import SOURCE, lines
from recrawl.clean.records import CleanContext, clean_record

COLUMNS = ("sku", "title", "price_amount", "price_currency", "stock", "category", "rating")
TABLES = f"""
PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
CREATE TABLE products ({", ".join(COLUMNS)}, updated_at, PRIMARY KEY (sku));
CREATE TABLE history (id INTEGER PRIMARY KEY, sku, at, data);
"""
UPSERT = f"INSERT INTO products VALUES ({', '.join('?' * 8)}) ON CONFLICT (sku) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in (*COLUMNS[1:], "updated_at")
)


def main(database: str, count: int) -> None:
    connection: Any = sqlite.connect(database)
    connection.executescript(TABLES)
    found = lines(count)
    spec, now = SOURCE.records[0], datetime.now(UTC)
    context = CleanContext(now, "UTC", None, "")
    begun = time.perf_counter()
    for start in range(0, count, 500):
        rows, history = [], []
        for line in found[start : start + 500]:
            row = clean_record(spec, orjson.loads(line), context)
            assert not isinstance(row, list)
            rows.append((*(row.data[name] for name in COLUMNS), now.isoformat()))
            history.append((row.key, now.isoformat(), orjson.dumps(row.data).decode()))
        with connection:
            connection.executemany(UPSERT, rows)
            connection.executemany("INSERT INTO history (sku, at, data) VALUES (?, ?, ?)", history)
    print(json.dumps({"records": count, "seconds": time.perf_counter() - begun}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

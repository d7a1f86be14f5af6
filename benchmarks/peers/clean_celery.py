"""One Celery task per record: validate, SADD, a single insert. Redis as broker and as the set of what was seen.

    python -m benchmarks.peers.clean_celery REDIS DATABASE COUNT

It starts a worker of its own with as many processes as there are cores, and ends it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

import orjson
import pysqlite3.dbapi2 as sqlite
import redis
from celery import Celery

from benchmarks.offers import SOURCE, lines
from benchmarks.peers.clean_bare import COLUMNS, TABLES, UPSERT
from recrawl.clean.fingerprint import content_hash
from recrawl.clean.records import CleanContext, clean_record

_REDIS = os.environ.get("BENCH_REDIS", "")
_DATABASE = os.environ.get("BENCH_DATABASE", "")
app = Celery("clean", broker=_REDIS)
app.conf.task_ignore_result = True
_held: dict[str, Any] = {}


@app.task(name="clean")  # type: ignore[untyped-decorator]
def clean(line: str) -> None:
    if not _held:
        _held["redis"] = redis.Redis.from_url(_REDIS)
        _held["database"] = sqlite.connect(_DATABASE, timeout=60, isolation_level=None)
        _held["database"].execute("PRAGMA synchronous = NORMAL")
    now = datetime.now(UTC)
    row = clean_record(SOURCE.records[0], orjson.loads(line), CleanContext(now, "UTC", None, ""))
    assert not isinstance(row, list)
    if _held["redis"].sadd("seen", content_hash([row])):
        _held["database"].execute(UPSERT, (*(row.data[name] for name in COLUMNS), now.isoformat()))
    _held["redis"].incr("done")


def main(address: str, database: str, count: int) -> None:
    shared = {**os.environ, "BENCH_REDIS": address, "BENCH_DATABASE": database}
    if (address, database) != (_REDIS, _DATABASE):
        # Settings stand in the environment, where the worker's processes find them too.
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.peers.clean_celery", *sys.argv[1:]], shared)
    sqlite.connect(database).executescript(TABLES)
    client = redis.Redis.from_url(address)
    client.flushdb()
    command = [sys.executable, "-m", "celery", "-A", "benchmarks.peers.clean_celery", "worker", "--loglevel=ERROR"]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        found = [line.decode() for line in lines(count)]
        clean.delay(found[0])
        _wait(client, 1)  # until the worker is up
        begun = time.perf_counter()
        for line in found[1:]:
            clean.delay(line)
        _wait(client, count)
        print(json.dumps({"records": count - 1, "seconds": time.perf_counter() - begun}))
    finally:
        worker.terminate()
        worker.wait()


def _wait(client: Any, count: int) -> None:
    while int(client.get("done") or 0) < count:
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

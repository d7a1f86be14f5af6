"""A bare FastAPI endpoint that keeps what it is sent: one row a record, one durable transaction a request.

python -m benchmarks.peers.ingest_bare DATABASE
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from typing import Any

import orjson
import pysqlite3.dbapi2 as sqlite
import uvicorn
from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool


def main(database: str) -> None:
    connection: Any = sqlite.connect(database, check_same_thread=False)
    connection.executescript(
        "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE inbox (id INTEGER PRIMARY KEY, source TEXT, data TEXT);"
    )
    writing = threading.Lock()
    app = FastAPI()

    def keep(rows: list[tuple[str, str]]) -> None:
        with writing, connection:
            connection.executemany("INSERT INTO inbox (source, data) VALUES (?, ?)", rows)

    @app.post("/v1/sources/{source}/records", status_code=202)
    async def records(source: str, request: Request) -> dict[str, int]:
        found = orjson.loads(await request.body())
        await run_in_threadpool(keep, [(source, orjson.dumps(record).decode()) for record in found])
        return {"accepted": len(found)}

    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1])

"""Names of things inside the database: short hashes of long identities, and idempotency keys of tasks."""

from __future__ import annotations

from hashlib import blake2b

import orjson

from recrawl.model.record import Json


def identity_hash(source: str, name: str) -> str:
    """Stands for (source, page_id) or (source, url) in unique indexes, whose entries PostgreSQL bounds in length."""
    return blake2b(f"{source}\0{name}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def task_key(*parts: Json) -> str:
    """An idempotency key; a JSON array, so that no joining of parts can make two keys one."""
    return orjson.dumps(parts).decode()

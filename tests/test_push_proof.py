"""Dirty records pushed by several clients at once, while the service is killed again and again: none is lost, none is
stored twice, and what became of them adds up."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from recrawl.declare import Source
from recrawl.declare.load import load
from recrawl.operate.work import work
from recrawl.store.database import Store, open_store
from recrawl.store.inbox import account
from tests.support.flood import BATCH, Clients, Flood, flood
from tests.support.stores import one, rows

pytest.importorskip("fastapi", reason="the service is not installed: pip install 'recrawl[serve]'")

DECLARATION = """
from recrawl import Moment, Price, Record, Source


class Item(Record, table="items", key="sku", history=True, updated="changed"):
    sku: str
    title: str
    price: Price
    text: str | None
    changed: Moment


flood = Source("flood", read=Item, order="updated", currency="EUR")
"""
_URL = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def service(store: Store, declaration: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`recrawl serve` with its worker, and its address; killed at the end."""
    command = [
        sys.executable,
        "-m",
        "recrawl",
        "serve",
        str(declaration),
        "--store",
        store.url,
        "--port",
        "0",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        try:
            assert process.stdout is not None
            found = next((found for line in process.stdout if (found := _URL.search(line))), None)
            assert found is not None, "the service did not begin"
            yield process, found[0]
        finally:
            process.kill()


def push_through_kills(store: Store, declaration: Path, made: Flood, kills: int, chance: Random) -> Clients:
    """Push all, while the service dies `kills` times, each time after some more batches were taken in."""
    clients = Clients(made.lines)
    batches = -(-len(made.lines) // BATCH)
    points = sorted(chance.sample(range(1, batches), kills))
    clients.start()
    for point in [*points, batches]:
        with service(store, declaration) as (_, address):
            clients.serve(address)
            clients.wait(point)
        clients.serve("")
    clients.join()
    assert not clients.errors
    return clients


def finish(store: Store, source: Source) -> None:
    asyncio.run(work(store, [source]))


def check(store: Store, declaration: Path, made: Flood, clients: Clients) -> None:
    (source,) = load(declaration)
    finish(store, source)
    told = sum(answer["accepted"] + answer["dead"] for answer in clients.answers)
    of = account(store, "flood")
    assert told == of.received == len(made.lines)
    assert of.waiting == 0
    assert of.received == of.new + of.changed + of.duplicates + of.regressions + of.dead
    assert of.dead == one(store, "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL")
    assert of.new == one(store, "SELECT count(*) FROM items") == one(store, "SELECT count(*) FROM pages")
    assert of.new + of.changed == one(store, "SELECT count(*) FROM versions")
    shown = {row["sku"]: row["title"] for row in rows(store, "SELECT sku, title FROM items")}
    old = {sku: title for sku, title in made.titles.items() if sku not in made.renamed}
    assert old.keys() <= shown.keys()

    command = [sys.executable, "-m", "recrawl", "dead", "replay", "--source", "flood", "--map", "salePrice=price"]
    for _ in range(2):  # asked twice, done once
        subprocess.run([*command, "--store", store.url], check=True, capture_output=True, timeout=300)
    finish(store, source)
    shown = {row["sku"]: row["title"] for row in rows(store, "SELECT sku, title FROM items")}
    assert shown == made.titles
    of = account(store, "flood")
    assert of.received == of.new + of.changed + of.duplicates + of.regressions + of.dead
    assert of.dead == one(store, "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL") == made.invalid


@pytest.mark.timeout(300)
def test_what_was_accepted_is_stored_once_though_the_service_is_killed(store_address: str, tmp_path: Path) -> None:
    prove(store_address, tmp_path, records=2_000, kills=2)


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_records_and_twenty_kills(store_address: str, tmp_path: Path) -> None:
    prove(store_address, tmp_path, records=100_000, kills=20)


def prove(address: str, folder: Path, *, records: int, kills: int) -> None:
    seed = os.environ.get("RECRAWL_SEED") or str(Random().getrandbits(32))
    print(f"RECRAWL_SEED={seed}")
    chance = Random(seed)
    declaration = folder / "flood.py"
    declaration.write_text(DECLARATION)
    store = open_store(address)
    try:
        made = flood(records, chance)
        clients = push_through_kills(store, declaration, made, kills, chance)
        check(store, declaration, made, clients)
    finally:
        store.close()

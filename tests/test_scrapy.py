"""Items of a real Scrapy crawl: kept when they count as scraped, and not asked for again while nothing is newer."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from recrawl.decide.envelope import read_line
from recrawl.decide.pushes import says_no_more
from recrawl.declare.load import load
from recrawl.operate.work import work
from recrawl.store.database import Store
from tests.support.stores import one, rows

pytest.importorskip("scrapy", reason="Scrapy is not installed: pip install 'recrawl[scrapy]'")

DECLARATION = """
from recrawl import Moment, Record, Source


class Offer(Record, table="offers", key="sku", history=True, updated="changed"):
    sku: str
    title: str
    changed: Moment


offers = Source("offers", read=Offer, order="updated")
"""


@dataclass
class Shop:
    """A site of offers. `offers` are titles and days of change by number; `asked` are the paths that were asked for."""

    offers: dict[str, tuple[str, str]]
    asked: list[str] = field(default_factory=list)
    address: str = ""

    def answer(self, path: str) -> Any:
        self.asked.append(path)
        if path == "/offers":
            listed = self.offers.items()
            return [{"sku": sku, "href": f"/offer/{sku}", "updated": changed} for sku, (_, changed) in listed]
        sku = path.rpartition("/")[2]
        title, changed = self.offers[sku]
        return {"sku": sku, "title": title, "changed": changed}


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop({str(number): (f"Offer {number}", "2026-11-01T00:00:00Z") for number in range(60)})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(shop.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        shop.address = f"http://127.0.0.1:{server.server_address[1]}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield shop
        server.shutdown()


@pytest.fixture
def declaration(tmp_path: Path) -> Path:
    path = tmp_path / "shop_offers.py"
    path.write_text(DECLARATION)
    return path


def begin(shop: Shop, store: Store, source: str | Path | None) -> subprocess.Popen[str]:
    environment = {**os.environ, "SPIDER_STORE": store.url}
    if source is not None:
        environment["SPIDER_SOURCE"] = str(source)
    command = [sys.executable, "-m", "tests.support.spider", shop.address]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


def crawl(shop: Shop, store: Store, source: str | Path | None) -> tuple[dict[str, int], str]:
    """The statistics of a crawl that ran to its end, and what it said."""
    out, said = begin(shop, store, source).communicate(timeout=120)
    stats: dict[str, int] = json.loads(out.splitlines()[-1])
    return stats, said


def test_items_become_rows_and_a_second_crawl_asks_only_for_what_is_newer(
    store: Store, shop: Shop, declaration: Path
) -> None:
    stats, said = crawl(shop, store, declaration)
    assert not said
    assert (stats["item_scraped_count"], stats["recrawl/new"]) == (60, 60)
    assert one(store, "SELECT count(*) FROM offers WHERE _deleted_at IS NULL") == 60

    shop.asked.clear()
    shop.offers["7"] = ("Offer 7, cheaper", "2026-11-02T00:00:00Z")
    shop.offers["new"] = ("Another", "2026-11-02T00:00:00Z")
    stats, said = crawl(shop, store, declaration)
    assert not said
    assert sorted(shop.asked) == ["/offer/7", "/offer/new", "/offers"]
    assert stats["recrawl/skipped"] == 59
    assert (stats["recrawl/changed"], stats["recrawl/new"]) == (1, 1)
    assert one(store, "SELECT title FROM offers WHERE sku = '7'") == "Offer 7, cheaper"
    assert one(store, "SELECT count(*) FROM versions") == 62


def test_what_counts_as_scraped_outlives_a_kill(store: Store, shop: Shop, declaration: Path) -> None:
    shop.offers = {str(number): (f"Offer {number}", "2026-11-01T00:00:00Z") for number in range(400)}
    process = begin(shop, store, declaration)
    assert process.stdout is not None
    scraped = {json.loads(process.stdout.readline()) for _ in range(100)}
    process.kill()
    rest, _ = process.communicate()
    scraped |= {json.loads(line) for line in rest.splitlines(keepends=True) if line.endswith('"\n')}
    asyncio.run(work(store, load(declaration)))
    assert len(scraped) >= 100
    assert scraped <= {row["sku"] for row in rows(store, "SELECT sku FROM offers")}


def test_an_item_that_is_not_valid_is_a_dead_letter_with_its_bytes(store: Store, shop: Shop, declaration: Path) -> None:
    shop.offers["3"] = ("Offer 3", "no time at all")
    shop.offers["4"] = ("", "")
    stats, _ = crawl(shop, store, declaration)
    assert stats["recrawl/dead"] == one(store, "SELECT count(*) FROM dead_letters WHERE raw IS NOT NULL")
    assert stats["recrawl/new"] + stats["recrawl/dead"] == stats["item_scraped_count"]


def test_a_crawl_whose_source_is_not_named_says_what_to_write(store: Store, shop: Shop) -> None:
    _, said = begin(shop, store, None).communicate(timeout=120)
    assert "no source is named" in said
    assert "Write RECRAWL_SOURCE" in said


def test_an_item_of_any_values_that_json_can_hold_is_written() -> None:
    from recrawl.contrib.scrapy import _line

    item = {
        "id": 2**70,
        "name": "\ud800",
        "tags": {"b", 1},
        "on": datetime(2026, 1, 2, tzinfo=UTC),
        "cost": Decimal("1.50"),
    }
    told = read_line(_line(item))["data"]
    assert told == {
        "id": 2**70,
        "name": "\ud800",
        "tags": [1, "b"],
        "on": "2026-01-02T00:00:00+00:00",
        "cost": "1.50",
    }


@pytest.mark.parametrize(("stored", "spared"), [("2026-03-02", True), ("2026-02-28", False), ("2099-01-01", False)])
def test_a_stored_time_that_lies_ahead_spares_no_request(stored: str, spared: bool) -> None:
    said = datetime(2026, 3, 1, tzinfo=UTC)
    held = datetime.fromisoformat(stored).replace(tzinfo=UTC)
    assert says_no_more((None, said), (None, held), datetime(2026, 3, 3, tzinfo=UTC)) is spared

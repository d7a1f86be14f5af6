"""Pushed records become rows, duplicates, regressions or dead letters: each exactly one of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random

import pytest
import zstandard

from recrawl import Article, Price, Record, Sitemap, Source, sync
from recrawl.errors import Misuse
from recrawl.model.push import Queue
from recrawl.operate.drift import diagnose
from recrawl.operate.work import work
from recrawl.run.engine import Ending
from recrawl.run.inbox import Inbox
from recrawl.steps.clean import clean_chunk, pushed_to
from recrawl.store import claim, reap
from recrawl.store.database import Store, open_store
from recrawl.store.inbox import account, chunks_of
from recrawl.store.settle.pushed import settle_pushed
from tests.support.pushes import (
    OFFERS,
    Offer,
    an_inbox,
    an_offer_source,
    claimed_chunk,
    held_back,
    later,
    offer,
    push,
    serve,
    titles,
    versions_of,
)
from tests.support.stores import NOW, killed_before_commit, one, rows


def letters(store: Store) -> list[tuple[str, bytes]]:
    """Signature and raw bytes of the dead letters, in their order."""
    unpack = zstandard.ZstdDecompressor().decompress
    return [
        (row["signature"], unpack(row["raw"]))
        for row in rows(store, "SELECT signature, raw FROM dead_letters WHERE resolved_at IS NULL ORDER BY observed")
    ]


def adds_up(store: Store, source: str = "offers") -> bool:
    of = account(store, source)
    return of.received == of.new + of.changed + of.duplicates + of.regressions + of.dead + of.waiting


# Records and versions


def test_a_pushed_record_becomes_a_row_a_version_and_a_page(store: Store) -> None:
    push(store, {"id": "o-1", "url": "https://shop.example/o/1?utm_source=x", "data": offer("1", price="9,50 €")})
    assert serve(store) == Counter(new=1)
    (row,) = rows(store, "SELECT * FROM offers")
    assert (row["sku"], float(row["price_amount"]), row["price_currency"]) == ("1", 9.5, "EUR")
    (page,) = rows(store, "SELECT * FROM pages")
    assert (page["page_id"], page["url"], page["status"]) == ("o-1", "https://shop.example/o/1", "active")
    assert [version["kind"] for version in versions_of(store, "o-1")] == ["created"]
    assert one(store, "SELECT count(*) FROM tasks WHERE state <> 'done'") == 0


def test_a_b_a_pushed_in_turn_makes_three_versions(store: Store) -> None:
    for title in "aba":
        push(store, offer("1", title))
        serve(store)
    assert titles(store, "1") == ["a", "b", "a"]
    assert one(store, "SELECT title FROM offers") == "a"


def test_a_b_a_inside_one_chunk_makes_three_versions_too(store: Store) -> None:
    push(store, offer("1", "a"), offer("2", "x"), offer("1", "b"), offer("1", "b"), offer("1", "a"))
    assert serve(store) == Counter(new=2, changed=2, duplicates=1)
    assert titles(store, "1") == ["a", "b", "a"]
    assert one(store, "SELECT title FROM offers WHERE sku = '1'") == "a"
    assert one(store, "SELECT _version FROM offers WHERE sku = '1'") == 3


def test_equal_content_is_a_duplicate_whatever_order_its_fields_have(store: Store) -> None:
    push(store, b'{"sku": "1", "title": "a", "extra": 1}')
    push(store, b'{"title": "a", "sku": "1"}', b'{"id": "1", "data": {"sku": "1", "title": " a "}}')
    assert serve(store) == Counter(new=1, duplicates=2)
    assert len(versions_of(store, "1")) == 1


def test_a_volatile_field_is_refreshed_without_a_version(store: Store) -> None:
    push(store, offer("1", viewers=3))
    serve(store)
    push(store, offer("1", viewers=4))
    assert serve(store) == Counter(duplicates=1)
    assert one(store, "SELECT viewers FROM offers") == 4


def test_what_is_cleaned_late_and_was_accepted_early_is_older(store: Store) -> None:
    push(store, offer("1", "early"))
    with held_back(store):
        push(store, offer("1", "late"))
        assert serve(store) == Counter(new=1)
    assert serve(store) == Counter(regressions=1)
    assert one(store, "SELECT title FROM offers") == "late"


def test_content_that_was_seen_again_later_is_not_replaced_by_what_came_between(store: Store) -> None:
    push(store, offer("1", "a"))
    serve(store)
    push(store, offer("1", "b"))
    with held_back(store):
        push(store, offer("1", "a"))
        assert serve(store) == Counter(duplicates=1)
    assert serve(store) == Counter(regressions=1)
    assert one(store, "SELECT title FROM offers") == "a"


def test_a_higher_queue_is_served_first(store: Store) -> None:
    for number in range(20):
        push(store, offer(str(number)), queue=Queue.LOW)
    push(store, offer("urgent"), queue=Queue.HIGH)
    assert an_inbox(store).take() < 21
    assert one(store, "SELECT count(*) FROM offers WHERE sku = 'urgent'") == 1


def test_older_by_the_order_of_the_source_is_a_regression_and_changes_nothing(store: Store) -> None:
    source = an_offer_source(order="updated")
    push(store, offer("1", "new", changed="2026-11-20T10:00:00Z"), offer("1", "old", changed="2026-11-19T10:00:00Z"))
    assert serve(store, source) == Counter(new=1, regressions=1)
    assert titles(store, "1") == ["new"]
    assert rows(store, "SELECT kind FROM events") == [{"kind": "regression"}]


def test_the_envelope_tells_the_order_where_the_record_does_not(store: Store) -> None:
    source = an_offer_source(order="updated")
    at = {"new": "2026-11-20T10:00:00+08:00", "old": 1763000000}
    push(store, *({"source_updated_at": at[title], "data": offer("1", title)} for title in ("new", "old")))
    assert serve(store, source) == Counter(new=1, regressions=1)


def test_other_content_at_the_same_place_in_the_order_is_a_conflict_that_the_later_wins(store: Store) -> None:
    source = an_offer_source(order="updated")
    push(store, *(offer("1", title, changed="2026-11-20T10:00:00Z") for title in "ab"))
    assert serve(store, source) == Counter(new=1, changed=1)
    assert one(store, "SELECT title FROM offers") == "b"
    assert rows(store, "SELECT kind FROM events") == [{"kind": "conflict"}]


def test_versions_of_the_source_order_by_number(store: Store) -> None:
    class Numbered(Record, table="numbered", key="id", version="revision"):
        id: int
        revision: int

    source = Source("offers", read=Numbered, order="version")
    push(store, *({"id": 1, "revision": revision} for revision in (9, 10, 8)))
    assert serve(store, source) == Counter(new=1, changed=1, regressions=1)
    assert one(store, "SELECT revision FROM numbered") == 10


# Identity


def test_a_record_is_known_by_the_pushed_id_else_by_its_key(store: Store) -> None:
    push(store, {"id": 7, "data": offer("1")}, offer("2"), {"url": "https://shop.example/3", "data": offer("3")})
    serve(store)
    assert [row["page_id"] for row in rows(store, "SELECT page_id FROM pages ORDER BY page_id")] == ["2", "3", "7"]


def test_a_source_that_finds_pages_knows_a_pushed_record_by_its_address(store: Store) -> None:
    source = Source("offers", find=Sitemap("https://shop.example/sitemap.xml"), read=Offer)
    push(store, {"url": "https://shop.example/o/1#top", "data": offer("1")})
    serve(store, source)
    (page,) = rows(store, "SELECT * FROM pages")
    assert page["page_id"] == "https://shop.example/o/1"
    assert page["due_at"] is not None


def test_one_record_that_moves_to_another_key_leaves_its_old_row_deleted(store: Store) -> None:
    push(store, {"id": "p", "data": offer("1")})
    serve(store)
    push(store, {"id": "p", "data": offer("2")})
    serve(store)
    live = rows(store, "SELECT sku FROM offers WHERE _deleted_at IS NULL")
    assert live == [{"sku": "2"}]


def test_a_list_as_data_is_several_records_of_one_page(store: Store) -> None:
    push(store, {"id": "search", "data": [offer("1"), offer("2")]})
    assert serve(store) == Counter(new=1)
    assert one(store, "SELECT count(*) FROM offers") == 2


def test_a_field_with_jmes_is_looked_for_in_the_record_and_else_under_its_own_name(store: Store) -> None:
    push(store, offer("1", shop={"name": "ours"}), offer("2", seller="theirs"))
    serve(store)
    assert [row["seller"] for row in rows(store, "SELECT seller FROM offers ORDER BY sku")] == ["ours", "theirs"]


def test_an_article_can_be_pushed_as_a_spider_has_read_it(store: Store) -> None:
    source = Source("news", find=Sitemap("https://news.example/sitemap.xml"))
    assert source.read is Article
    found = {"url": "https://news.example/a", "title": "A", "text": "Words."}
    push(store, {"url": found["url"], "data": found}, source="news")
    assert serve(store, source) == Counter(new=1)


# Times


def test_relative_times_are_counted_from_when_the_spider_saw_them(store: Store) -> None:
    push(store, {"fetched_at": "2026-11-29T10:00:00Z", "data": offer("1", changed="3 hours ago")})
    serve(store, at=later(days=3))
    assert str(one(store, "SELECT changed FROM offers"))[:13].replace("T", " ") == "2026-11-29 07"


def test_without_a_time_they_are_counted_from_when_the_push_was_accepted(store: Store) -> None:
    push(store, offer("1", changed="3 hours ago"), at=NOW)
    serve(store, at=later(days=3))
    assert str(one(store, "SELECT changed FROM offers"))[:13].replace("T", " ") == "2026-11-30 09"


def test_a_relative_time_that_has_only_grown_older_is_no_change(store: Store) -> None:
    push(store, offer("1", changed="1 hour ago"))
    serve(store)
    push(store, offer("1", changed="2 hours ago"), at=later(hours=1))
    assert serve(store) == Counter(duplicates=1)


# Windows


@pytest.mark.parametrize(
    ("window", "after", "counted"),
    [
        (None, timedelta(days=400), "duplicates"),
        ("day", timedelta(hours=3), "duplicates"),
        ("day", timedelta(hours=5), "changed"),  # midnight in Shanghai is 16:00 UTC, and it is noon
        ("6h", timedelta(hours=5, minutes=59), "duplicates"),
        ("6h", timedelta(hours=6), "changed"),
    ],
)
def test_equal_content_is_a_duplicate_within_the_window(
    store: Store, window: str | None, after: timedelta, counted: str
) -> None:
    source = an_offer_source(window=window, zone="Asia/Shanghai")
    push(store, offer("1"))
    serve(store, source)
    push(store, {"fetched_at": (NOW + after).isoformat(), "data": offer("1")})
    assert serve(store, source) == Counter({counted: 1})
    assert one(store, "SELECT count(*) FROM events") == 0


# What cannot become data


def test_each_bad_record_is_a_dead_letter_with_its_bytes_and_the_others_are_rows(store: Store) -> None:
    bad = [
        b'{"title": "no key"}',
        b'"a text"',
        b"[1, 2]",
        b'{"id": "1", "data": null}',
        b'{"id": true, "data": {"sku": "1"}}',
        b'{"fetched_at": "yesterday", "data": {"sku": "1"}}',
        b'{"url": "nonsense", "data": {"sku": "1"}}',
        b'{"sku": []}',
        b'{"id": "\\u0000", "data": {"sku": "1"}}',
        b'{"id": "\\ud800", "data": {"sku": "1"}}',
        b'{"sku": "1", "viewers": 99999999999999999999}',
        b'{"sku": "1", "title": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"sku": "1", "title": "' + b"x" * 3_000_000 + b'"}',
    ]
    push(store, offer("good"), *bad, offer("good, too"))
    assert serve(store) == Counter(new=2, dead=len(bad))
    assert [raw for _, raw in letters(store)] == bad
    assert adds_up(store)


def test_nul_and_lone_surrogates_in_texts_are_shown_as_what_they_are_not(store: Store) -> None:
    push(store, b'{"sku": "1", "title": "a\\u0000b\\ud800c"}')
    assert serve(store) == Counter(new=1)
    assert one(store, "SELECT title FROM offers") == "a\ufffdb\ufffdc"


def test_letters_have_the_number_of_their_line_and_name_field_and_kind(store: Store) -> None:
    answer = push(store, offer("1"), b'{"title": "x"}')
    serve(store)
    (letter,) = rows(store, "SELECT * FROM dead_letters")
    assert letter["signature"] == "clean:sku:missing"
    assert letter["observed"] == one(store, "SELECT observed FROM tasks WHERE id = :id", id=answer.tasks[0]) + 1
    assert letter["task_key"] == one(store, "SELECT key FROM tasks WHERE id = :id", id=answer.tasks[0])


def test_what_the_database_refuses_is_found_by_halving_and_the_others_become_rows(store: Store) -> None:
    """A column that is narrower than recrawl made it stands for all that validation did not foresee."""
    an_inbox(store)
    forbid = "ALTER TABLE offers ADD CONSTRAINT no_seven CHECK (sku <> '7')"
    if not store.is_postgres:
        forbid = (
            "CREATE TRIGGER no_seven BEFORE INSERT ON offers WHEN NEW.sku = '7' "
            "BEGIN SELECT RAISE(ABORT, 'no_seven'); END"
        )
    store.write(lambda connection: connection.exec_driver_sql(forbid))
    push(store, *(offer(str(number), "a") for number in range(20)), offer("3", "b"), offer("7", "b"))
    assert serve(store) == Counter(new=19, changed=1, dead=2)
    assert [signature for signature, _ in letters(store)] == ["clean:refused"] * 2
    assert one(store, "SELECT count(*) FROM pages") == one(store, "SELECT count(*) FROM offers") == 19
    assert titles(store, "3") == ["a", "b"]
    assert adds_up(store)


def test_expired_pushes_become_dead_letters(store: Store) -> None:
    push(store, offer("1"), offer("2"), expires_at=later(hours=1))
    push(store, offer("3"))
    assert serve(store, at=later(hours=2)) == Counter(new=1)
    assert [signature for signature, _ in letters(store)] == ["clean:expired"] * 2
    assert account(store, "offers").dead == 2
    assert adds_up(store)


def test_everything_that_was_pushed_is_accounted_for(store: Store) -> None:
    push(store, offer("1"), offer("1"), offer("1", "b"), b"no json", b"{}")
    before = account(store, "offers")
    assert (before.received, before.waiting, before.dead) == (5, 4, 1)
    serve(store)
    push(store, offer("9"))
    of = account(store, "offers")
    assert (of.new, of.changed, of.duplicates, of.regressions, of.dead, of.waiting) == (1, 1, 1, 0, 2, 1)
    assert adds_up(store)


def test_a_worker_with_another_declaration_leaves_pushes_alone(store: Store) -> None:
    push(store, offer("1"))
    an_inbox(store, an_offer_source(zone="Europe/Berlin"))
    worker = an_inbox(store)
    an_inbox(store, an_offer_source(zone="Europe/Berlin"))  # registered last, so it is the one in use
    assert worker.take() == 0
    assert OFFERS.spec_hash != an_offer_source(zone="Europe/Berlin").spec_hash


# Workers


def test_a_worker_without_a_bell_serves_until_nothing_waits(store: Store) -> None:
    push(store, *(offer(str(number)) for number in range(3)), b"{}")
    assert asyncio.run(work(store, [OFFERS])) == Counter(new=3, dead=1)
    assert account(store, "offers").waiting == 0


async def test_a_worker_serves_what_comes_in_until_it_is_stopped(store: Store) -> None:
    stop = asyncio.Event()

    def told(counts: Counter[str]) -> None:
        if counts["new"]:
            loop.call_soon_threadsafe(stop.set)

    loop = asyncio.get_running_loop()
    working = asyncio.create_task(work(store, [OFFERS], stop=stop, told=told))
    await asyncio.to_thread(push, store, offer("1"))
    assert await working == Counter(new=1)


def test_a_sync_of_a_source_takes_its_waiting_pushes_too(store_address: str) -> None:
    store = open_store(store_address)
    push(store, offer("1"), offer("1"), b"{}")
    store.close()
    (result,) = sync(OFFERS, store=store_address)
    counts = result.progress.summary()
    assert (counts["pushed_new"], counts["pushed_duplicates"], counts["pushed_dead"]) == (1, 1, 1)
    assert result.ending is Ending.FAILURES


def test_a_lost_lease_writes_nothing_and_the_other_worker_does(store: Store) -> None:
    push(store, offer("1"), b"{}")
    with held_back(store) as held:
        chunks = [clean_chunk(chunk, OFFERS)[0] for chunk in chunks_of(store, held)]
        reap.reap(store, later(hours=1))  # the lease runs out
        assert serve(store) == Counter(new=1, dead=1)
        settled = settle_pushed(store, chunks, to={"offers": pushed_to(OFFERS)}, now=NOW)
    assert settled.lost == tuple(task.id for task in held)
    assert settled.counts == Counter()
    assert len(versions_of(store, "1")) == 1
    assert len(letters(store)) == 1


def test_a_worker_that_dies_before_the_commit_leaves_no_trace(store: Store) -> None:
    push(store, offer("1"), b"{}")
    an_inbox(store)
    chunk = claimed_chunk(store)
    with killed_before_commit(store):
        settle_pushed(store, [chunk], to={"offers": pushed_to(OFFERS)}, now=NOW)
    assert one(store, "SELECT count(*) FROM pages") == 0
    assert account(store, "offers").waiting == 2
    assert serve(store, at=later(hours=1)) == Counter(new=1, dead=1)
    assert adds_up(store)


def test_a_chunk_that_kills_its_workers_ends_as_dead_letters(store: Store) -> None:
    push(store, offer("1"), offer("2"))
    push(store, offer("3"))
    an_inbox(store)
    for attempt in range(reap.MOST_CRASHES):
        at = later(hours=attempt)
        claim.claim_chunks(store, 1, specs={"offers": OFFERS.spec_hash}, owner="mortal", now=at, until=at)
        reap.reap(store, at + timedelta(seconds=1))
    reap.reap(store, later(days=1))
    assert [signature for signature, _ in letters(store)] == ["clean:killed_workers"] * 2
    assert serve(store, at=later(days=1)) == Counter(new=1)
    assert adds_up(store)


# Fields that no record declares


def test_by_default_a_new_field_is_left_out_and_told_of_once(store: Store) -> None:
    push(store, offer("1", colour="red"), offer("2", colour="blue", salePrice="3 €", shop={"name": "ours"}))
    push(store, offer("3", colour="green"))
    assert serve(store) == Counter(new=3)
    serve(store)
    assert rows(store, "SELECT kind FROM events") == [{"kind": "new_field"}]
    assert "colour" in str(one(store, "SELECT data FROM events"))


def test_a_frozen_source_refuses_what_it_does_not_know_and_keeps_it(store: Store) -> None:
    source = an_offer_source(contract="freeze")
    push(store, offer("1", colour="red"), offer("2"))
    assert serve(store, source) == Counter(new=1, dead=1)
    assert [signature for signature, _ in letters(store)] == ["clean:colour:unknown"]


def test_a_frozen_source_refuses_a_newly_declared_field_and_others_add_its_column(store: Store) -> None:
    an_inbox(store)

    class Wider(Offer, table="offers", key="sku"):
        colour: str | None

    with pytest.raises(Misuse, match="no column 'colour'"):
        an_inbox(store, an_offer_source(read=Wider, contract="freeze"))
    push(store, offer("1", colour="red"))
    assert serve(store, an_offer_source(read=Wider, contract="discard")) == Counter(new=1)
    assert one(store, "SELECT colour FROM offers") == "red"


def test_a_source_that_discards_leaves_new_fields_out_and_counts_them(store: Store) -> None:
    push(store, offer("1", colour="red", size=3), offer("2"))
    assert serve(store, an_offer_source(contract="discard")) == Counter(new=2, discarded=2)
    assert one(store, "SELECT count(*) FROM events") == 0


def test_a_field_that_was_renamed_is_told_by_the_records_that_were_good_before(store: Store) -> None:
    class Priced(Record, table="priced", key="sku"):
        sku: str
        price: Price

    source = Source("offers", read=Priced, currency="EUR")
    for part in range(3):
        push(store, *({"sku": f"{part}-{number}", "price": f"{number}.50", "old": "1.50"} for number in range(20)))
        serve(store, source)
    assert one(store, "SELECT count(*) FROM pushes WHERE data IS NOT NULL") == 1, "of all chunks one keeps its bytes"
    push(store, *({"sku": f"new-{number}", "amount": f"{number}.90", "old": "1.50"} for number in range(20)))
    serve(store, source)
    (told,) = diagnose(store, source)
    (found,) = told.found
    assert (told.field, told.total, found.raw, found.parses, found.is_new) == ("price", 20, "amount", 1.0, True)
    assert found.value_likeness > 0.8


@pytest.mark.timeout(120)
def test_workers_that_meet_the_same_new_ids_at_once_store_each_once(postgres_store: Store) -> None:
    store, chance = postgres_store, Random(1)
    for _ in range(100):
        push(store, *(offer(str(chance.randrange(3000)), f"title {chance.randrange(3)}") for _ in range(100)))
    opened = [open_store(store.url) for _ in range(6)]
    inboxes = [an_inbox(each, owner=f"worker {number}") for number, each in enumerate(opened)]

    def take(inbox: Inbox) -> None:
        while inbox.take():
            pass

    with ThreadPoolExecutor(6) as workers:
        list(workers.map(take, inboxes))
    for each in opened:
        each.close()
    of = account(store, "offers")
    assert (of.received, of.dead, of.waiting) == (10_000, 0, 0)
    assert of.new == one(store, "SELECT count(*) FROM pages") == one(store, "SELECT count(DISTINCT page_id) FROM pages")
    assert one(store, "SELECT count(*) FROM pages WHERE version = 0") == 0


class Edition(Record, table="editions", key="sku", version="edition"):
    sku: str
    edition: str | None


@pytest.mark.parametrize("edition", ["--5", "²", "1" * 19, "v7"])
def test_a_version_that_is_no_number_stops_nobody(store: Store, edition: str) -> None:
    push(store, {"sku": "1", "edition": edition}, {"sku": "2", "edition": "2"})
    assert serve(store, an_offer_source(read=Edition, order="version")) == Counter(new=2)

"""`audit`, `reconcile`, `pause`: what is stored, held against what the source shows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.decide.estimate import wilson
from recrawl.declare import Record, Sitemap, Source, css
from recrawl.errors import Permanent
from recrawl.operate.audit import Audited, audit_source
from recrawl.operate.reconcile import Reconciled, reconcile_source
from recrawl.operate.standing import pause, resume
from recrawl.run.engine import Ending, Engine, Result
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source
from recrawl.store import audit
from recrawl.store.database import Store
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import one, rows


class Thing(Record, table="things", key="sku"):
    sku: str = css("b::text")
    name: str = css("h1::text")


@pytest.fixture
def site(site: ScriptedSite) -> ScriptedSite:
    site.sitemap({f"/{name}": "2026-01-01" for name in "abcd"})
    for name in "abcd":
        site[f"/{name}"] = page(name, "old")
    return site


@pytest.fixture
def store(empty: Store) -> Store:
    return empty


def page(sku: str, name: str) -> Reply:
    return Reply(f"<h1>{name}</h1><b>{sku}</b>", headers={"ETag": f'"{sku}"'})


def declared(site: ScriptedSite) -> Declared:
    source = Source("shop", find=Sitemap(f"{site.url}/sitemap.xml"), read=Thing, forced_looks=0.0)
    return Declared(source, "test")


def sync(site: ScriptedSite, store: Store) -> Result:
    return asyncio.run(sync_source(declared(site), store))


def look(site: ScriptedSite, store: Store, count: int = 100, seed: int = 1) -> Audited:
    return asyncio.run(audit_source(declared(site), store, count, Random(seed)))[0]


def hold(site: ScriptedSite, store: Store) -> Reconciled:
    return asyncio.run(reconcile_source(declared(site), store))


@pytest.mark.parametrize(
    ("hits", "looks", "low", "high"),
    # E. B. Wilson, JASA 22 (1927); figures as in Newcombe, Statistics in Medicine 17 (1998), table I.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_bounds_of_an_estimate_are_those_of_wilson(hits: int, looks: int, low: float, high: float) -> None:
    assert wilson(hits, looks) == pytest.approx((low, high), abs=0.00006)
    assert wilson(0, 0) == (0.0, 1.0)


def test_an_audit_finds_what_hints_and_validators_kept_silent(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    site["/b"] = page("b", "new")
    site.forget()
    found = look(site, store)
    assert site.paths() == ["/a", "/b", "/c", "/d"]
    assert not any(asked.conditional for asked in site.asked)
    assert (found.looked, found.stale, found.silent, found.share) == (4, 1, 1, 0.25)
    assert found.silent_urls == [f"{site.url}/b"]
    assert one(store, "SELECT name FROM things WHERE sku = 'b'") == "new"
    assert one(store, "SELECT kind FROM events") == "audit"
    assert {row["kind"] for row in rows(store, "SELECT kind FROM tasks WHERE page IS NOT NULL")} == {"visit", "audit"}
    assert one(store, "SELECT count(*) FROM pages WHERE due_at IS NULL") == 0


def test_a_source_that_keeps_changes_silent_loses_trust(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    site["/b"] = page("b", "new")
    look(site, store)
    recent = one(store, "SELECT recent FROM trust WHERE kind = 'hints'")
    assert sorted(recent) == ["f", "t", "t", "t"]


def test_pages_that_give_no_answer_say_nothing(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    site["/a"] = Reply("no", 403)
    found = look(site, store)
    assert (found.looked, found.stale, found.unanswered) == (3, 0, 1)


def test_a_sample_is_of_the_size_asked_for_and_the_seed_chooses_it(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    chosen = audit.sample(store, "shop", 2, Random(7))
    assert len(set(chosen)) == 2
    assert audit.sample(store, "shop", 2, Random(7)) == chosen
    assert {tuple(sorted(audit.sample(store, "shop", 2, Random(seed)))) for seed in range(40)} > {tuple(sorted(chosen))}
    assert audit.sample(store, "shop", 9, Random(7)) != []


def test_of_many_pages_each_is_as_likely_and_none_is_read_but_those_drawn(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO pages (id, source, page_id, page_hash, url, fetch_url, host, status, first_seen_at) "
                "VALUES (:id, :source, CAST(:name AS text), CAST(:name AS text), "
                "'u', 'u', 'h', :status, '2026-01-01T00:00:00.000000Z')"
            ),
            [
                {"id": number, "name": str(number), "source": source, "status": status}
                for number in range(1, 1001)
                for source, status in [
                    ("shop" if number > 900 else "other", "deleted" if number % 2 else "active"),
                ]
            ],
        )
    # 50 active pages in one corner of all numbers.
    monkeypatch.setattr(audit, "_FEW", 49)
    chosen = audit.sample(store, "shop", 20, Random(3))
    assert len(set(chosen)) == 20
    assert all(number > 900 and number % 2 == 0 for number in chosen)
    counts = dict.fromkeys(range(902, 1001, 2), 0)
    for seed in range(100):
        for number in audit.sample(store, "shop", 10, Random(seed)):
            counts[number] += 1
    assert min(counts.values()) > 3
    assert max(counts.values()) < 45


def test_a_page_that_is_being_worked_at_gets_no_second_task(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE pages SET due_at = NULL WHERE id = 1"))
    found = look(site, store)
    assert found.looked == 3


def test_an_audit_takes_up_no_other_work(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    site.sitemap({"/a": "2026-01-01", "/new": "2026-01-01"})
    site.forget()
    look(site, store, 1)
    assert len(site.paths()) == 1
    assert "/sitemap.xml" not in site.paths(pages_only=False)


def test_reconcile_reads_lists_that_say_that_they_are_unchanged(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    with store.engine.begin() as connection:
        connection.execute(text("DELETE FROM members WHERE page = 2"))
        connection.execute(text("UPDATE pages SET hint = 'earlier' WHERE id = 3"))
    site.forget()
    sync(site, store)
    assert one(store, "SELECT count(*) FROM members") == 3, "a sync spares the list"
    found = hold(site, store)
    assert one(store, "SELECT count(*) FROM members") == 4
    assert found.result.complete
    assert (found.new.count, found.unread) == (0, 0)
    assert found.differing.urls == (f"{site.url}/c",)
    assert found.unlisted is not None
    assert found.unlisted.count == 0


def test_reconcile_tells_what_is_missing_here_and_unknown_there_and_fetches_what_is_missing(
    site: ScriptedSite, store: Store
) -> None:
    site["/d"] = Reply("not yet", 403)
    sync(site, store)
    site["/d"], site["/e"] = page("d", "at last"), page("e", "more")
    site.sitemap({f"/{name}": "2026-01-01" for name in "acde"})
    site.forget()
    found = hold(site, store)
    assert (found.new.urls, found.unread) == ((f"{site.url}/e",), 1)
    assert found.unlisted is not None
    assert found.unlisted.urls == (f"{site.url}/b",)
    assert site.paths() == ["/d", "/e"]
    assert one(store, "SELECT count(*) FROM things") == 5
    assert one(store, "SELECT status FROM pages WHERE id = 2") in ("active", "suspected")


def test_reconcile_says_nothing_of_absence_where_a_list_was_cut_off(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    site["/sitemap.xml"] = Reply(
        f"<urlset><url><loc>{site.url}/a</loc></url>", headers={"Content-Type": "application/xml"}
    )
    found = hold(site, store)
    assert found.unlisted is None
    assert found.result.ending is Ending.FAILURES


def test_a_paused_source_is_left_alone_until_it_is_resumed(site: ScriptedSite, store: Store) -> None:
    sync(site, store)
    pause(store, "shop", "they asked")
    site.sitemap({"/a": "2026-02-02"})
    site.forget()
    result = sync(site, store)
    assert (result.ending, site.asked) == (Ending.PAUSED, [])
    assert result.troubles[0].message == "shop is paused: they asked"
    with pytest.raises(Permanent, match="paused: they asked"):
        look(site, store)
    resume(store, "shop")
    assert sync(site, store).ending is Ending.FINISHED
    assert site.paths() == ["/a"]


def test_a_source_that_is_paused_during_a_run_ends_it(site: ScriptedSite, store: Store) -> None:
    """The pause is committed before the first page is asked for."""
    site.sitemap([f"/{number}" for number in range(60)])
    sync_before = [Reply("", 503, {"Retry-After": "1"})]
    site["/sitemap.xml"] = [*sync_before, Reply("<urlset/>", headers={"Content-Type": "application/xml"})]

    def during(engine: Engine, progress: Progress) -> None:
        def on_change(progress: Progress) -> None:
            if progress.waiting:
                pause(store, "shop")

        progress.on_change = on_change

    result = asyncio.run(sync_source(declared(site), store, prepare=during))
    assert result.ending is Ending.PAUSED
    assert one(store, "SELECT state FROM runs") == "paused"
    assert one(store, "SELECT count(*) FROM tasks WHERE state IN ('pending', 'failed')") == 1


DECLARATION = """
from recrawl import Record, Sitemap, Source, css

class Thing(Record, table="things", key="sku"):
    sku: str = css("b::text")
    name: str = css("h1::text")

shop = Source("shop", find=Sitemap("{base}/sitemap.xml"), read=Thing, forced_looks=0.0)
"""


def test_the_commands_tell_what_they_found(site: ScriptedSite, tmp_path: Path) -> None:
    path = tmp_path / "shop.py"
    path.write_text(DECLARATION.replace("{base}", site.url))

    def run(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, [*arguments, "--store", str(tmp_path / "a.db")])
        return result.exit_code, result.stdout, result.stderr

    assert run("audit", str(path))[0] == 1, "there is no database yet"
    run("sync", str(path))
    site["/b"] = page("b", "new")
    code, said, _ = run("audit", str(path), "--sample", "9")
    assert code == 0
    assert said.startswith("shop: 4 pages looked at, 1 stale, 1 silently\n")
    assert "about 25.0%, between 4.6% and 69.9% with 95 % confidence" in said
    told = json.loads(run("audit", str(path), "--json")[1])
    assert told["sources"][0]["stale"] == 0
    code, said, _ = run("reconcile", str(path))
    assert (code, "4 pages listed" in said, "0 were not known here" in said) == (0, True, True)
    assert json.loads(run("reconcile", str(path), "--json")[1])["sources"][0]["unlisted"]["count"] == 0
    assert run("pause", "shop", "why not")[0] == 0
    code, said, _ = run("sync", str(path))
    assert (code, "shop is paused: why not" in said) == (3, True)
    assert run("audit", str(path))[0] == 1
    assert run("resume", "shop")[0] == 0
    assert run("sync", str(path))[0] == 0
    assert run("pause", "shpo")[0] == 2

"""Quarantine, templates, trust and rollbacks in whole runs: a real server, a real database, a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recrawl.decide.trust import WINDOW, Subject
from recrawl.declare import Moment, Record, Sitemap, Source, Urls, css
from recrawl.run import wire
from recrawl.run.engine import Ending, Result
from recrawl.run.wire import Declared, sync_source
from recrawl.store.database import Store
from recrawl.store.trust import note, trust_of
from tests.support.lookalikes import CLOUDFLARE, FILLER, LOGIN, NOT_THE_PAGE, article, bare
from tests.support.scripted import Reply, ScriptedSite
from tests.support.stores import NOW, one, rows


class Story(Record, table="stories", key="url"):
    url: str
    title: str | None = css("h1::text", default=None)
    text: str | None = css("p.text::text", default=None)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSite]:
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")
    monkeypatch.setenv("RECRAWL_SEED", "7")
    with ScriptedSite() as running:
        yield running


@pytest.fixture
def store(empty: Store) -> Store:
    return empty


def source(site: ScriptedSite, **policies: Any) -> Source:
    given: dict[str, Any] = {"find": Sitemap(f"{site.url}/sitemap.xml"), "read": Story, "forced_looks": 0.0}
    return Source("daily", **(given | policies))


def sync(declared: Source, store: Store) -> Result:
    return asyncio.run(sync_source(Declared(declared, "test"), store, delay=0.0, concurrency=4))


def later(**spans: int) -> None:
    """Let time pass."""
    asyncio.run(wire._VIRTUAL.sleep(timedelta(**spans).total_seconds()))


def kinds(store: Store) -> list[str]:
    return [row["kind"] for row in rows(store, "SELECT kind FROM versions ORDER BY seq")]


def events(store: Store, kind: str) -> list[Any]:
    return rows(store, "SELECT * FROM events WHERE kind = :kind ORDER BY seq", kind=kind)


def stories(site: ScriptedSite, count: int) -> dict[str, str]:
    """That many good pages, listed and served."""
    found = {f"/news/{n}": article(f"News number {n}", f"Story {n}. " + FILLER * (2 + n % 7)) for n in range(count)}
    site.sitemap(list(found))
    for path, body in found.items():
        site[path] = Reply(body)
    return found


# Quarantine


def test_good_captcha_good_makes_one_quarantined_look_and_no_version(site: ScriptedSite, store: Store) -> None:
    pages = stories(site, 3)
    sync(source(site), store)
    site["/news/1"] = Reply(CLOUDFLARE)
    result = sync(source(site), store)
    assert result.ending is Ending.FAILURES
    assert result.progress.counts["quarantined"] == 1
    assert one(store, "SELECT count(*) FROM stories WHERE title = 'Just a moment...'") == 0
    assert one(store, "SELECT status FROM pages WHERE url LIKE '%/1'") == "failing"
    (letter,) = rows(store, "SELECT signature, reason, raw, resolved_at FROM dead_letters")
    assert letter["signature"] == "judge:quarantined, bot check"
    assert "Cloudflare asks for a proof" in letter["reason"]
    assert letter["raw"], "what came is kept"
    site["/news/1"] = Reply(pages["/news/1"])
    assert sync(source(site), store).ending is Ending.FINISHED
    assert kinds(store) == ["created"] * 3
    assert one(store, "SELECT count(*) FROM dead_letters WHERE resolved_at IS NULL") == 0


@pytest.mark.parametrize("name", ["captcha", "访问", "登录", "页面不存在", "shell"])
def test_a_page_whose_first_look_is_a_notice_gets_no_version(site: ScriptedSite, store: Store, name: str) -> None:
    notice = NOT_THE_PAGE["频繁" if name == "访问" else name]
    site.sitemap(["/news/1"])
    site["/news/1"] = [Reply(notice), Reply(article("News", FILLER * 3))]
    assert sync(source(site), store).progress.counts["quarantined"] == 1
    assert kinds(store) == []
    assert sync(source(site), store).progress.counts["new"] == 1
    assert kinds(store) == ["created"]


def test_what_reads_as_no_valid_data_is_told_as_what_it_is(site: ScriptedSite, sqlite_store: Store) -> None:
    class Strict(Record, table="stories", key="url"):
        url: str
        text: str = css("p.text::text")

    site.sitemap(["/a", "/b"])
    site["/a"] = Reply(LOGIN)
    site["/b"] = Reply(article("No text", "").replace("<p class=text></p>", FILLER * 4))
    sync(source(site, read=Strict), sqlite_store)
    signatures = [
        row["signature"] for row in rows(sqlite_store, "SELECT signature FROM dead_letters ORDER BY signature")
    ]
    assert signatures == ["clean:text:missing", "judge:quarantined, login wall"]


def test_an_unknown_notice_on_every_page_is_no_change_and_no_new_template(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    pages = stories(site, 40)
    sync(source(site), sqlite_store)
    for number, path in enumerate(pages):
        site[path] = Reply(f"<html><body><center><b>Fermé pour travaux, n° {number}</b></center></body></html>")
    result = sync(source(site), sqlite_store)
    assert result.progress.counts["quarantined"] == 40
    assert kinds(sqlite_store) == ["created"] * 40
    assert events(sqlite_store, "template") == []


def test_a_whole_host_that_answers_with_block_pages_changes_nothing(site: ScriptedSite, sqlite_store: Store) -> None:
    pages = stories(site, 30)
    sync(source(site), sqlite_store)
    before = rows(sqlite_store, "SELECT url, title, text FROM stories ORDER BY url")
    for path in pages:
        site[path] = Reply(bare("Access Denied", "Your request was blocked."))
    for _ in range(4):
        sync(source(site), sqlite_store)
    assert kinds(sqlite_store) == ["created"] * 30
    assert rows(sqlite_store, "SELECT url, title, text FROM stories ORDER BY url") == before


def test_pages_that_all_move_to_one_address_are_not_believed(site: ScriptedSite, store: Store) -> None:
    pages = stories(site, 8)
    sync(source(site), store)
    for path in pages:
        site[path] = Reply(status=301, headers={"Location": "/maintenance"})
    site["/maintenance"] = Reply(article("Soon", FILLER * 2))
    result = sync(source(site), store)
    assert result.progress.counts["quarantined"] >= 5
    for path, body in pages.items():
        site[path] = Reply(body)
    for _ in range(3):
        sync(source(site), store)
    states = rows(store, "SELECT url, status FROM pages WHERE url LIKE '%/news/%'")
    assert {row["status"] for row in states} == {"active"}
    shown = rows(store, "SELECT title FROM stories WHERE _deleted_at IS NULL AND title LIKE 'News%'")
    assert len(shown) == 8


def test_pages_that_are_all_sent_to_one_notice_for_a_while_stay_as_they_are(
    site: ScriptedSite, sqlite_store: Store
) -> None:
    pages = stories(site, 8)
    sync(source(site), sqlite_store)
    for path in pages:
        site[path] = Reply(status=302, headers={"Location": "/consent"})
    site["/consent"] = Reply(article("Your privacy", "We value it. " + FILLER * 3))
    for _ in range(4):
        assert sync(source(site), sqlite_store).progress.counts["quarantined"] == 8
        later(days=1)
    assert kinds(sqlite_store) == ["created"] * 8


def test_a_page_that_is_found_elsewhere_for_good_is_believed_at_the_third_look(
    site: ScriptedSite, store: Store
) -> None:
    stories(site, 3)
    sync(source(site), store)
    site["/news/1"] = Reply(status=302, headers={"Location": "/moved/1"})
    site["/moved/1"] = Reply(article("News number 1", "What came of it. " + FILLER * 3))
    for expected in (3, 3, 4):
        sync(source(site), store)
        later(hours=1)
        assert len(kinds(store)) == expected


# Templates


def test_a_rebuilt_site_is_one_event_and_no_quarantine(site: ScriptedSite, store: Store) -> None:
    pages = stories(site, 40)
    sync(source(site), store)
    for path, body in pages.items():
        site[path] = Reply(body.replace("<main>", "<div><section>").replace("</main>", "</section></div>"))
    result = sync(source(site), store)
    assert result.progress.counts["quarantined"] == 0
    assert kinds(store) == ["created"] * 40, "the content is what counts"
    assert len(events(store, "template")) == 1
    sync(source(site), store)
    assert len(events(store, "template")) == 1


def test_one_page_that_is_built_anew_is_no_event(site: ScriptedSite, sqlite_store: Store) -> None:
    pages = stories(site, 30)
    sync(source(site), sqlite_store)
    site["/news/3"] = Reply(pages["/news/3"].replace("<main>", "<div>").replace("</main>", "</div>"))
    sync(source(site), sqlite_store)
    assert events(sqlite_store, "template") == []


# Trust


def hinted(site: ScriptedSite, count: int, day: int, revision: int) -> None:
    """A sitemap whose lastmods stay, and that is a new document each day; pages of this revision."""
    rows_ = "".join(f"<url><loc>{site.url}/p/{n}</loc><lastmod>2026-01-01</lastmod></url>" for n in range(count))
    site["/sitemap.xml"] = Reply(f"<urlset><!-- {day} -->{rows_}</urlset>", headers={"Content-Type": "application/xml"})
    for n in range(count):
        site[f"/p/{n}"] = Reply(article(f"Page {n}", f"Revision {revision}. " + FILLER))


def test_hints_that_stay_silent_lose_their_trust_and_pages_are_looked_at_again(
    site: ScriptedSite, store: Store
) -> None:
    hinted(site, 25, 0, 0)
    sync(source(site), store)
    site.forget()
    hinted(site, 25, 1, 1)
    sync(source(site), store)
    assert site.paths() == [], "hints are believed until they are known to lie"
    hinted(site, 25, 2, 1)
    sync(source(site, forced_looks=1.0), store)
    (known,) = trust_of(store, "daily")
    assert (known.kind, known.checks, known.wrong, known.believed) == ("hints", 25, 25, False)
    assert len(events(store, "trust")) == 1
    site.forget()
    hinted(site, 25, 2, 2)
    result = sync(source(site), store)
    assert len(site.paths()) == 25, "no hint spares a look any more"
    assert result.progress.counts["changed"] == 25


def test_hints_that_prove_true_again_are_believed_again(site: ScriptedSite, sqlite_store: Store) -> None:
    hinted(site, 25, 0, 0)
    sync(source(site), sqlite_store)
    hinted(site, 25, 1, 1)
    sync(source(site, forced_looks=1.0), sqlite_store)
    assert not trust_of(sqlite_store, "daily")[0].believed
    for _ in range(4):
        sync(source(site), sqlite_store)
    assert trust_of(sqlite_store, "daily")[0].believed
    assert [row["kind"] for row in rows(sqlite_store, "SELECT kind FROM events WHERE kind = 'trust'")] == ["trust"] * 2
    sync(source(site), sqlite_store)
    site.forget()
    sync(source(site), sqlite_store)
    assert site.paths() == []


def test_hints_that_cry_wolf_cost_requests_and_no_trust(site: ScriptedSite, sqlite_store: Store) -> None:
    for day in range(1, 4):
        site.sitemap({f"/p/{n}": f"2026-01-0{day}" for n in range(25)})
        for n in range(25):
            site[f"/p/{n}"] = Reply(article(f"Page {n}", FILLER))
        sync(source(site), sqlite_store)
    assert trust_of(sqlite_store, "daily") == []
    assert kinds(sqlite_store) == ["created"] * 25


class Lying(ScriptedSite):
    """Answers 304 to whoever sends validators, whatever has changed; `honest` ends that."""

    honest = False
    revision = 0

    def _next(self, path: str, headers: Any) -> Reply:
        reply = super()._next(path, headers)
        if not path.startswith("/p/"):
            return reply
        etag = f'"{self.revision}"'
        sent = headers.get("If-None-Match")
        if sent is not None and (not self.honest or sent == etag):
            return Reply(status=304)
        return Reply(article(f"Page {path}", f"Revision {self.revision}. " + FILLER), headers={"ETag": etag})


def test_validators_that_lie_are_found_out_and_no_longer_sent(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")
    monkeypatch.setenv("RECRAWL_SEED", "7")
    with Lying() as site:
        site.sitemap([f"/p/{n}" for n in range(25)])
        for n in range(25):
            site[f"/p/{n}"] = Reply()
        sync(source(site), sqlite_store)
        site.revision = 1
        assert sync(source(site), sqlite_store).progress.counts["unchanged_304"] == 25
        assert sync(source(site, forced_looks=1.0), sqlite_store).progress.counts["changed"] == 25
        (known,) = trust_of(sqlite_store, "daily")
        assert (known.kind, known.believed, known.wrong) == ("validators", False, 25)
        site.revision = 2
        site.forget()
        assert sync(source(site), sqlite_store).progress.counts["changed"] == 25
        sent = [asked for asked in site.asked if asked.conditional and asked.path.startswith("/p/")]
        assert len(sent) <= 8, "only now and then, to see whether they may be believed again"
        site.honest = True
        for _ in range(3):
            sync(source(site), sqlite_store)
        (known,) = trust_of(sqlite_store, "daily")
        assert known.checks > 25, "what is sent now and then is checked"
        assert known.wrong <= 25 + 8
        note(sqlite_store, "daily", {(Subject.VALIDATORS, known.name): [True] * WINDOW}, now=NOW, soon=NOW)
        site.forget()
        sync(source(site), sqlite_store)
        assert all(asked.conditional for asked in site.asked if asked.path.startswith("/p/"))


def test_a_share_of_304s_is_looked_into_for_ever(site: ScriptedSite, sqlite_store: Store) -> None:
    site.sitemap([f"/p/{n}" for n in range(50)])
    for n in range(50):
        first = Reply(article(f"Page {n}", FILLER), headers={"ETag": '"1"'})
        site[f"/p/{n}"] = [first, Reply(status=304), first]
    sync(source(site), sqlite_store)
    site.forget()
    sync(source(site, forced_looks=0.2), sqlite_store)
    plain = [asked for asked in site.asked if not asked.conditional and asked.path.startswith("/p/")]
    assert 1 <= len(plain) <= 30
    (known,) = trust_of(sqlite_store, "daily")
    assert (known.checks, known.wrong, known.believed) == (len(plain), 0, True)


# Rollbacks


class Dated(Record, table="dated", key="url", updated="updated"):
    url: str
    title: str = css("h1::text")
    updated: Moment = css("time::text")


def dated(title: str, at: datetime) -> Reply:
    return Reply(f"<html><body><h1>{title}</h1><time>{at:%Y-%m-%dT%H:%M:%SZ}</time></body></html>")


def test_the_same_older_state_in_two_looks_is_a_rollback(site: ScriptedSite, store: Store) -> None:
    old, new = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    declared = source(site, find=Urls([f"{site.url}/a"]), read=Dated, order="updated")
    site["/a"] = [dated("new", new), dated("old", old)]
    sync(declared, store)
    assert sync(declared, store).progress.counts["regressions"] == 1
    assert one(store, "SELECT title FROM dated") == "new"
    sync(declared, store)
    assert kinds(store) == ["created", "rollback"]
    assert one(store, "SELECT title FROM dated") == "old"
    assert sync(declared, store).progress.counts["unchanged_hash"] == 1


def test_two_different_older_states_are_no_rollback(site: ScriptedSite, sqlite_store: Store) -> None:
    new = datetime(2026, 2, 1, tzinfo=UTC)
    declared = source(site, find=Urls([f"{site.url}/a"]), read=Dated, order="updated")
    site["/a"] = [dated("new", new), *(dated(f"old {n}", new - timedelta(days=n)) for n in range(1, 5))]
    for _ in range(4):
        sync(declared, sqlite_store)
    assert kinds(sqlite_store) == ["created"]


def test_equal_times_with_other_content_are_a_conflict_that_the_later_look_wins(
    site: ScriptedSite, store: Store
) -> None:
    at = datetime(2026, 2, 1, tzinfo=UTC)
    declared = source(site, find=Urls([f"{site.url}/a"]), read=Dated, order="updated")
    site["/a"] = [dated("one", at), dated("two", at)]
    sync(declared, store)
    sync(declared, store)
    assert kinds(store) == ["created", "updated"]
    assert len(events(store, "conflict")) == 1
    assert one(store, "SELECT title FROM dated") == "two"

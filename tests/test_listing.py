"""Listings: followed to their end, cheap where nothing changed, and read so that nothing slips by while they move."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from recrawl.declare import Listing, Source
from recrawl.steps import linked
from recrawl.store import migrate
from recrawl.store.database import Store, open_store
from tests.support.finding import InProcess, MovingList, doubted, ended_whole, find, found, listed, missed
from tests.support.scripted import Reply, ScriptedSite

SHOP = "https://shop.example"


@pytest.fixture(autouse=True)
def _virtual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_CLOCK", "virtual")


@pytest.fixture
def store(empty: Store) -> Store:
    return empty


def page(*items: str, following: str | None = None, more: str = "") -> Reply:
    rows = "".join(f"<li><a href='/item/{item}'>{item}</a></li>" for item in items)
    link = f"<a rel=next href='{following}'>next</a>" if following else ""
    return Reply(f"<!doctype html><nav><a href=/about>about</a></nav><ul>{rows}</ul>{link}{more}")


def source(site: ScriptedSite, **options: Any) -> Source:
    given: dict[str, Any] = {"links": "li a"}
    return Source("shop", find=Listing(f"{site.url}/list", **(given | options)), forced_looks=0.0)


def items(site: ScriptedSite, *names: str) -> set[str]:
    return {f"{site.url}/item/{name}" for name in names}


def kinds(declared: Source, store: Store) -> list[str]:
    return [trouble.kind for trouble in find(declared, store)]


# To its end


def test_a_listing_is_followed_to_its_end_by_the_link_with_rel_next(site: ScriptedSite, store: Store) -> None:
    site["/list"] = page("a", "b", following="/list?page=2")
    site["/list?page=2"] = page("c", following="/list?page=3")
    site["/list?page=3"] = page("d")
    assert find(source(site), store) == []
    assert found(store, "shop") == listed(store, "shop") == items(site, "a", "b", "c", "d")
    assert ended_whole(store, "shop")


@pytest.mark.parametrize(
    ("links", "following"),
    [("li", "p.more"), ("li a::attr(data-to)", "p.more a::attr(data-to)"), ("li a", "p.more a")],
    ids=["elements with a link inside", "attributes", "links"],
)
def test_links_and_next_are_css_of_links_of_elements_around_them_or_of_attributes(
    site: ScriptedSite, sqlite_store: Store, links: str, following: str
) -> None:
    def shown(item: str, more: str) -> Reply:
        return Reply(
            f"<li><b>x</b><a href=/item/{item} data-to=/item/{item}>x</a></li><a rel=next href=/wrong>no</a>"
            f"<p class=more>{more}</p>"
        )

    site["/list"] = shown("a", "<a href=/two data-to=/two>more</a>")
    site["/two"] = shown("b", "no more")
    assert find(source(site, links=links, next=following), sqlite_store) == []
    assert found(sqlite_store, "shop") == items(site, "a", "b")


def test_without_links_all_links_that_match_are_pages(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/list"] = page("a", "b")
    assert find(source(site, links=None, match=r"/item/", skip="b$"), sqlite_store) == []
    assert found(sqlite_store, "shop") == items(site, "a")


@pytest.mark.parametrize("after", [Reply("", 404), page()], ids=["404", "an empty page"])
def test_numbered_pages_end_where_there_is_none_or_nothing_on_it(
    site: ScriptedSite, store: Store, after: Reply
) -> None:
    site["/list"] = page("a")
    site["/list?p=2"] = page("b")
    site["/list?p=3"] = after
    assert find(source(site, next="/list?p={page}"), store) == []
    assert found(store, "shop") == items(site, "a", "b")
    assert ended_whole(store, "shop")


def test_numbers_go_on_from_the_one_in_the_first_address(site: ScriptedSite, sqlite_store: Store) -> None:
    declared = Source("shop", find=Listing(f"{site.url}/list/0.html", links="li a", next="{page}.html"))
    site["/list/0.html"], site["/list/1.html"] = page("a"), page("b")
    assert find(declared, sqlite_store) == []
    assert found(sqlite_store, "shop") == items(site, "a", "b")


def test_a_page_that_names_itself_as_the_next_is_the_last(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/list"] = page("a", following="/list?page=2")
    site["/list?page=2"] = page("b", following="?page=2#")
    assert find(source(site), sqlite_store) == []
    assert ended_whole(sqlite_store, "shop")


# At no cost


def test_a_second_pass_over_a_listing_that_stands_still_asks_for_each_page_once_and_for_the_first_again(
    site: ScriptedSite, store: Store
) -> None:
    site["/list"] = page("a", "b", following="/list?page=2")
    site["/list?page=2"] = page("c")
    find(source(site), store)
    site.forget()
    site["/list"] = page("a", "b", following="/list?page=2", more="<i>7 visitors</i>")
    assert find(source(site), store) == []
    assert site.paths() == ["/list", "/list", "/list?page=2"]
    assert missed(store, "shop") == set()


def test_an_unchanged_page_answers_304_and_keeps_its_items(site: ScriptedSite, store: Store) -> None:
    tag = {"ETag": '"1"'}
    site["/list"] = [Reply(page("a", following="/list?page=2").body, headers=tag), Reply(status=304)]
    site["/list?page=2"] = [Reply(page("b").body, headers=tag), Reply(status=304)]
    find(source(site), store)
    assert find(source(site), store) == []
    assert missed(store, "shop") == set()
    assert ended_whole(store, "shop")


def test_what_is_taken_out_of_a_listing_is_missed_and_nothing_else(site: ScriptedSite, store: Store) -> None:
    site["/list"] = page("a", "b", following="/list?page=2")
    site["/list?page=2"] = page("c", "d")
    find(source(site), store)
    site["/list"] = page("a", "c", following="/list?page=2")
    site["/list?page=2"] = page("d")
    assert find(source(site), store) == []
    assert missed(store, "shop") == items(site, "b")


def test_that_an_item_moved_from_page_to_page_is_not_remembered_for_ever(site: ScriptedSite, store: Store) -> None:
    site["/list"] = page("b", following="/list?page=2")
    site["/list?page=2"] = page("a")
    find(source(site), store)
    site["/list"] = page("c", following="/list?page=2")
    site["/list?page=2"] = page("b")
    find(source(site), store)
    with store.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT p.page_id FROM members m JOIN pages p ON p.id = m.page WHERE m.dropped IS NOT NULL"
        )
        assert set(rows.scalars()) == items(site, "a")


def test_a_listing_that_became_shorter_leaves_its_last_page_unread_and_what_stood_there_missed(
    site: ScriptedSite, store: Store
) -> None:
    site["/list"] = page("a", following="/list?page=2")
    site["/list?page=2"] = page("b")
    find(source(site), store)
    site["/list"] = page("a")
    assert find(source(site), store) == []
    assert missed(store, "shop") == items(site, "b")
    assert ended_whole(store, "shop")


# What goes wrong


def test_a_first_page_without_links_is_no_empty_listing(site: ScriptedSite, store: Store) -> None:
    site["/list"] = page("a")
    find(source(site), store)
    site["/list"] = Reply("<html><body><h1>Are you human?</h1></body></html>")
    (trouble,) = find(source(site), store)
    assert trouble.kind == "no_links"
    assert "'li a'" in trouble.message
    assert missed(store, "shop") == items(site, "a")
    assert not ended_whole(store, "shop")


@pytest.mark.parametrize(
    ("second", "kind"),
    [
        (Reply("", 404), "empty"),
        (Reply("<h1>Are you human?</h1>"), "empty"),
        (page("b", following="/list"), "loop"),
        (Reply("", 302, {"Location": "/list"}), "loop"),
        (page("b", following="https://other.example/list"), "off_site"),
        (Reply(b"%PDF-1.7", headers={"Content-Type": "application/pdf"}), "no_document"),
        (Reply("", 503), "http_503"),
    ],
    ids=["missing", "block page", "loop", "redirect back", "other site", "no HTML", "error"],
)
def test_a_page_that_is_not_what_its_link_promised_ends_the_listing_early_and_says_so(
    site: ScriptedSite, store: Store, second: Reply, kind: str
) -> None:
    site["/list"] = page("a", following="/list?page=2")
    site["/list?page=2"] = page("b", "c")
    find(source(site), store)
    site["/list?page=2"] = second
    assert kind in kinds(source(site), store)
    assert not ended_whole(store, "shop")


def test_a_listing_that_becomes_shorter_while_it_is_read_ends_where_its_last_page_says(
    site: ScriptedSite, store: Store
) -> None:
    site["/list"] = [page("a", "b", following="/list?page=2"), page("a", "c")]
    assert find(source(site), store) == []
    assert listed(store, "shop") == items(site, "a", "b", "c")


@pytest.mark.parametrize("following", [None, "/list?page={page}"], ids=["links", "numbers"])
def test_a_pager_that_repeats_a_page_under_new_addresses_is_stopped(
    site: ScriptedSite, sqlite_store: Store, following: str | None
) -> None:
    site["/list"] = page("a", following="/list?page=2")
    for number in range(2, 100):
        site[f"/list?page={number}"] = page("a", following=f"/list?page={number + 1}")
    assert kinds(source(site, next=following), sqlite_store) == ["repeats"]
    assert len(site.paths()) == 6
    assert not ended_whole(sqlite_store, "shop")


def test_a_pager_that_never_ends_is_stopped(
    site: ScriptedSite, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.steps.listing.MOST", 20)
    assert linked.MOST == 10_000
    for number in range(1, 30):
        site[f"/list?page={number}"] = page(str(number), following=f"/list?page={number + 1}")
    declared = Source("shop", find=Listing(f"{site.url}/list?page=1", links="li a"))
    (trouble,) = find(declared, sqlite_store)
    assert (trouble.kind, "more than 20 pages" in trouble.message) == ("too_long", True)
    assert len(found(sqlite_store, "shop")) == 20


def test_links_of_other_sites_and_such_as_are_none_are_left_out(site: ScriptedSite, sqlite_store: Store) -> None:
    site["/list"] = Reply(
        "<li><a href=/item/a>a</a><li><a href='https://other.example/x'>x</a><li><a href='javascript:void(0)'>j</a>"
        "<li><a href='http://[::1'>b</a><li><a>none</a><li><a href='mailto:a@b.example'>m</a><li><a href='#top'>t</a>"
    )
    assert find(source(site, match="/item/"), sqlite_store) == []
    assert found(sqlite_store, "shop") == items(site, "a")


# While it moves


def _watched(store: Store, moving: MovingList, name: str, cycles: int) -> None:
    """Read a moving listing some times over: what was on it all the while is found, and is never missed."""
    declared = Source(name, find=Listing(f"{SHOP}/list", links="li a"), forced_looks=0.0)
    for _ in range(cycles):
        moving.watch()
        troubles = find(declared, store, InProcess(moving))
        assert [trouble.kind for trouble in troubles] in ([], ["moving"])
        there = {f"{SHOP}/item/{item}" for item in moving.there}
        lost = there - listed(store, name)
        assert not lost, f"{len(lost)} items slipped by: {sorted(lost)[:3]}"
        assert not there & doubted(store, name)
        moving.move(moving.chance.randrange(3 * moving.per_page))


@pytest.fixture(scope="module")
def module_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = open_store(str(tmp_path_factory.mktemp("moving") / "recrawl.db"))
    migrate.ready(opened)
    yield opened
    opened.close()


_moving = given(
    seed=st.integers(0, 2**32),
    count=st.integers(60, 160),
    per_page=st.integers(10, 20),
    rate=st.floats(0, 0.3),
    bumps=st.floats(0, 0.1),
)


@pytest.mark.timeout(600)
@_moving
@settings(
    max_examples=50,
    deadline=None,
    phases=[Phase.generate],  # a list that is made smaller is not easier to see through
    derandomize="RECRAWL_SEED" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_nothing_is_missed_in_a_listing_that_moves_while_it_is_paged(
    module_store: Store, seed: int, count: int, per_page: int, rate: float, bumps: float
) -> None:
    name = f"s{seed}-{count}-{per_page}-{hash((rate, bumps)) & 0xFFFFFFFF}"
    _watched(module_store, MovingList(Random(seed), count, per_page, rate=rate, bumps=bumps), name, cycles=2)


def test_five_thousand_items_are_all_found_while_the_listing_moves(module_store: Store) -> None:
    _watched(module_store, MovingList(Random(7), 5000, 100, rate=0.3), "large", cycles=2)


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_five_thousand_items_are_all_found_over_two_hundred_runs(module_store: Store) -> None:
    for seed in range(200):
        chance = Random(seed)
        moving = MovingList(chance, 5000, 100, rate=chance.uniform(0, 0.3), bumps=chance.uniform(0, 0.1))
        _watched(module_store, moving, f"run{seed}", cycles=2)


def test_a_listing_in_another_order_at_each_request_concludes_nothing_from_what_was_not_seen(
    sqlite_store: Store,
) -> None:
    class Shuffled(MovingList):
        def move(self, times: int = 1) -> None:
            self.chance.shuffle(self.items)

    moving = Shuffled(Random(3), 200, 10)
    declared = Source("shop", find=Listing(f"{SHOP}/list", links="li a"))
    (trouble,) = find(declared, sqlite_store, InProcess(moving))
    assert trouble.kind == "moving"
    assert moving.requests <= 5 * 21
    assert not ended_whole(sqlite_store, "shop")


# Killed in the middle


def test_a_listing_that_is_broken_off_at_any_point_goes_on_there_and_comes_to_the_same(sqlite_store: Store) -> None:
    declared = Source("whole", find=Listing(f"{SHOP}/list", links="li a"))
    undisturbed = MovingList(Random(5), 60, 10)
    find(declared, sqlite_store, InProcess(undisturbed))
    for stop in range(1, undisturbed.requests + 1):
        moving = MovingList(Random(5), 60, 10)
        name = f"cut{stop}"
        requests = _broken_off(Source(name, find=declared.find), sqlite_store, moving, stop)
        assert requests == 6 - min(stop - 1, 6) + 6  # the rest, and a look at whether anything moved meanwhile
        assert missed(sqlite_store, name) == set()
        assert len(listed(sqlite_store, name)) == 60
        assert ended_whole(sqlite_store, name)


def test_what_slipped_while_nobody_read_is_found_when_the_listing_is_gone_on_with(sqlite_store: Store) -> None:
    for stop in range(2, 13):
        moving = MovingList(Random(stop), 60, 10)
        declared = Source(f"cut{stop}", find=Listing(f"{SHOP}/list", links="li a"))
        moving.watch()
        moving.rate = 0.5
        _broken_off(declared, sqlite_store, moving, stop)
        lost = {f"{SHOP}/item/{item}" for item in moving.there} - listed(sqlite_store, declared.name)
        assert not lost


def _broken_off(declared: Source, store: Store, moving: MovingList, stop: int) -> int:
    """A cycle that an error of the machine ends at request number `stop`, and that is gone on with: by how many."""

    def fall(number: int) -> None:
        if number == stop:
            raise KeyError("the machine")

    moving.on_request = fall
    with pytest.raises(KeyError):
        find(declared, store, InProcess(moving))
    moving.on_request = lambda _: None
    before = moving.requests
    moving.move(20)
    assert find(declared, store, InProcess(moving)) == []
    return moving.requests - before

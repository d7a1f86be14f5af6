"""Pages that come with their sighting: what `see`, `plan`, `settle` and `reap` do with a body in hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from recrawl.decide.taken import NEVER
from recrawl.model.sighting import InHand, Sighting
from recrawl.model.work import NO_HOST, Task
from recrawl.store import bodies, contents, plan, reap
from recrawl.store.database import Store
from recrawl.store.reap import MOST_CRASHES
from tests.support.stores import (
    LEASE,
    NOW,
    SOURCE,
    Walk,
    a_body,
    a_changed_outcome,
    a_page,
    a_walk,
    one,
    put,
    rows,
    sight,
    take,
    take_one,
)

DAY = timedelta(days=1)


def in_hand(page_id: str, content: str) -> Sighting:
    body = a_body(content)
    return replace(a_page(page_id, body.hash), in_hand=InHand(body.hash, NOW, body))


def seen(store: Store, *pages: Sighting) -> Walk:
    walk = a_walk(store)
    walk.see(*pages)
    return walk


def read(store: Store, task: Task, content: str) -> None:
    """Settle what the body in hand of a task came to."""
    outcome = a_changed_outcome(task, content)
    look = replace(outcome.look, requests=0)
    put(store, (task, replace(outcome, look=look, raw_hash=a_body(content).hash, body=None)))


def planned(store: Store) -> int:
    return plan.plan(store, SOURCE, until=NOW + 1000 * DAY, now=NOW, expires_at=NOW + 1001 * DAY)


def page(store: Store) -> dict[str, Any]:
    (found,) = rows(store, "SELECT * FROM pages")
    return dict(found)


def test_a_body_is_stored_with_its_sighting_and_its_task_brings_it_along(store: Store) -> None:
    seen(store, in_hand("a", "one"))
    task = take_one(store)
    assert (task.body_hash, task.host, one(store, "SELECT stage FROM tasks WHERE page IS NOT NULL")) == (
        a_body("one").hash, NO_HOST, "judge",
    )  # fmt: skip
    assert task.observed == one(store, "SELECT hint_observed FROM pages")
    assert task.page is not None
    stored = contents.last_look(store, task.page.id, a_body("one").hash)
    assert stored is not None
    assert (stored.body, stored.fetched_at, stored.content_type) == (b"one", NOW, "application/json")


def test_the_same_body_makes_no_task_and_another_one_makes_one(store: Store) -> None:
    walk = seen(store, in_hand("a", "one"))
    read(store, take_one(store), "one")
    assert walk.see(in_hand("a", "one"), forced=True).same == 1
    assert take(store) == []
    assert walk.see(in_hand("a", "two")).hinted == 1
    assert take_one(store).body_hash == a_body("two").hash


def test_a_task_that_nobody_began_takes_the_newer_body(store: Store) -> None:
    walk = seen(store, in_hand("a", "one"))
    walk.see(in_hand("a", "two"))
    task = take_one(store)
    assert task.body_hash == a_body("two").hash
    assert task.observed == one(store, "SELECT hint_observed FROM pages")
    read(store, task, "two")
    assert take(store) == []


def test_a_body_that_comes_while_another_is_read_is_read_next(store: Store) -> None:
    walk = seen(store, in_hand("a", "one"))
    task = take_one(store)
    walk.see(in_hand("a", "two"))
    read(store, task, "one")
    after = take_one(store)
    assert (after.body_hash, after.host, after.observed > task.observed) == (a_body("two").hash, NO_HOST, True)
    read(store, after, "two")
    assert page(store)["raw_hash"] == a_body("two").hash
    assert take(store) == []


def test_a_page_that_was_read_is_never_due_by_itself(store: Store) -> None:
    seen(store, in_hand("a", "one"))
    read(store, take_one(store), "one")
    assert one(store, "SELECT count(*) FROM pages WHERE due_at >= :never", never=_as_stored(store)) == 1
    assert planned(store) == 0


def _as_stored(store: Store) -> Any:
    return NEVER if store.is_postgres else "9999-01-01T00:00:00.000000Z"


def test_a_task_that_waited_too_long_is_planned_again_with_its_body(store: Store) -> None:
    seen(store, in_hand("a", "one")).end()
    assert reap.reap(store, NOW + 400 * DAY).expired == 1
    assert planned(store) == 1
    task = take_one(store, now=NOW + 400 * DAY)
    assert (task.body_hash, task.observed) == (a_body("one").hash, page(store)["hint_observed"])


def test_an_item_that_kills_its_workers_ends_as_a_dead_letter(store: Store) -> None:
    seen(store, in_hand("a", "one")).end()
    now = NOW
    for _ in range(MOST_CRASHES):
        assert [task.body_hash for task in take(store, now=now)] == [a_body("one").hash]
        now += 2 * LEASE
        reap.reap(store, now)
    reap.reap(store, now)
    assert one(store, "SELECT signature FROM dead_letters") == "judge:killed_workers"


def test_pages_with_equal_bodies_share_one(store: Store) -> None:
    seen(store, in_hand("a", "one"), in_hand("b", "one"))
    assert one(store, "SELECT count(*) FROM bodies") == 1
    assert {task.body_hash for task in take(store)} == {a_body("one").hash}
    assert bodies.kept(store, [a_body("one").hash, a_body("two").hash]) == {a_body("one").hash}


def test_a_page_that_is_fetched_is_planned_as_before(store: Store) -> None:
    sight(store, a_page("a"))
    reap.reap(store, NOW + 400 * DAY)
    assert planned(store) == 1
    task = take_one(store, now=NOW + 400 * DAY)
    assert (task.body_hash, task.host) == (None, "shop.example")

"""SIGKILL anywhere while records are pushed and stored, start again: each is stored exactly once."""

from __future__ import annotations

import os
import random

import pytest

from recrawl.store.database import open_store
from recrawl.store.inbox import Account, account
from tests.support.killable import Killable
from tests.support.push_worker import push_and_store
from tests.support.pushes import titles
from tests.support.stores import one

_RANDOM = random.Random(os.environ.get("RECRAWL_SEED"))
_DRAWN = 3
_WANTED = Account(received=11, new=3, changed=4, duplicates=1, regressions=0, dead=3, waiting=0)


def _run(address: str, *point: str) -> int:
    return Killable(push_and_store, address, *point).wait()


def _check(address: str, told: str) -> None:
    store = open_store(address)
    try:
        assert account(store, "offers") == _WANTED, told
        assert [titles(store, sku) for sku in "123"] == [["a", "b", "a"], ["a"], ["a", "b", "a"]], told
        assert one(store, "SELECT count(*) FROM dead_letters") == 3, told
        assert one(store, "SELECT count(*) FROM pages") == one(store, "SELECT count(*) FROM offers") == 3, told
        assert one(store, "SELECT count(*) FROM tasks WHERE state <> 'done'") == 0, told
    finally:
        store.close()


@pytest.mark.timeout(300)
def test_a_pusher_and_worker_that_is_killed_again_and_again_stores_each_record_once(store_address: str) -> None:
    """Each start gets a little further, since what was committed is not done again; the last one is left alone."""
    points = [f"{kind}:{number}" for kind in ("begin", "commit") for number in range(1, 40)]
    for point in _RANDOM.sample(points, _DRAWN):
        _run(store_address, point)
    assert _run(store_address) == 0
    _check(store_address, "killed at several points")
    assert _run(store_address) == 0
    _check(store_address, "pushed once more")


def _forgive(address: str) -> None:
    """A chunk whose workers die again and again would end as dead letters."""
    store = open_store(address)
    store.write(lambda connection: connection.exec_driver_sql("UPDATE tasks SET crashes = 0"))
    store.close()


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_a_pusher_and_worker_can_be_killed_at_every_transaction(store_address: str) -> None:
    """One database after the other would take hours: each point is reached on what the ones before have left."""
    for number in range(60, 0, -1):
        for kind in ("begin", "commit"):
            _run(store_address, f"{kind}:{number}")
            _forgive(store_address)
    assert _run(store_address) == 0
    _check(store_address, "killed at every transaction")

"""The rules of trust and of templates, each by its numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.decide.template import rebuilt
from recrawl.decide.trust import ENOUGH, WINDOW, Subject, believed, remember
from recrawl.store import trust
from recrawl.store.database import Store
from tests.support.stores import NOW, SOURCE, one


@pytest.mark.parametrize(
    ("true", "false", "is_believed"),
    [(0, 0, True), (0, 19, True), (0, 20, False), (19, 1, True), (18, 2, False), (95, 5, True), (94, 6, False)],
)
def test_trust_is_lost_beyond_one_in_twenty_of_at_least_twenty_checks(true: int, false: int, is_believed: bool) -> None:
    assert believed("t" * true + "f" * false) is is_believed


@given(st.lists(st.booleans(), max_size=3 * WINDOW))
def test_good_checks_bring_trust_back_whatever_was_before(checks: list[bool]) -> None:
    recent = remember("", checks)
    assert len(recent) <= WINDOW
    assert believed(remember(recent, [True] * WINDOW))
    assert not believed(remember(recent, [False] * ENOUGH))


def test_checks_are_kept_by_subject_and_each_turn_is_one_event(store: Store) -> None:
    lost = {(Subject.VALIDATORS, "a.example"): [False] * ENOUGH, (Subject.VALIDATORS, "b.example"): [True] * ENOUGH}
    for _ in range(2):
        trust.note(store, SOURCE, lost, now=NOW, soon=NOW)
    assert [(known.name, known.checks, known.believed) for known in trust.trust_of(store, SOURCE)] == [
        ("a.example", 2 * ENOUGH, False),
        ("b.example", 2 * ENOUGH, True),
    ]
    assert one(store, "SELECT count(*) FROM events WHERE kind = 'trust'") == 1
    trust.note(store, SOURCE, {(Subject.VALIDATORS, "a.example"): [True] * WINDOW}, now=NOW, soon=NOW)
    assert one(store, "SELECT count(*) FROM events WHERE kind = 'trust'") == 2
    assert trust.trust_of(store, "another source") == []


@pytest.mark.parametrize(
    ("moved", "calm", "usual", "at_end", "verdict"),
    [
        (10, 9, 0, False, None),  # too few
        (11, 9, 0, False, True),
        (10, 10, 0, False, None),  # half is not most
        (4, 16, 0, False, False),
        (20, 0, 30, False, None),  # it is always like that
        (20, 0, 25, False, True),
        (3, 1, 0, True, None),
        (3, 2, 0, True, True),
        (0, 5, 0, True, False),
    ],
)
def test_a_source_is_rebuilt_where_most_looks_find_another_structure_and_few_used_to(
    moved: int, calm: int, usual: int, at_end: bool, verdict: bool | None
) -> None:
    assert rebuilt([True] * moved + [False] * calm, looks=100, usual=usual, at_end=at_end) is verdict

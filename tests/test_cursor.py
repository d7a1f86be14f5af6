"""How far a stream was read, from where it is read next, and when a pager is at its end: rules without I/O."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.decide.cursor import (
    Form,
    Id,
    Pass,
    Reach,
    Time,
    asked,
    begun,
    further,
    is_future,
    resumed,
    settled,
    stored_pass,
)
from recrawl.decide.paging import (
    MOST_ANSWERS,
    MOST_EMPTY,
    MOST_TURNS,
    End,
    Place,
    Stop,
    Told,
    after,
    first,
    has_moved,
    parameters,
    refused,
)
from recrawl.declare import AfterId, NextLink, NextToken, Offset, PageNumber
from recrawl.declare.paging import Paging

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OVERLAP = 600.0


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def a_pass(place: Place | None = None, **options: object) -> Pass:
    return replace(Pass(cycle=1, spec="rules", began=NOW, place=place), **options)  # type: ignore[arg-type]


def walk(paging: Paging | None, answers: Callable[[Place], Told], most: int = 50) -> list[Place | End | Stop]:
    """Every step of a pager, to its end."""
    way: list[Place | End | Stop] = [first(paging)]
    while isinstance(way[-1], Place) and len(way) < most:
        way.append(after(paging, way[-1], answers(way[-1])))
    return way


# --- cursors ---


def test_a_time_in_the_future_does_not_move_the_cursor_past_the_beginning_of_the_pass() -> None:
    far = Time(at(60 * 24 * 365))
    assert is_future(far, NOW)
    assert not is_future(Time(at(60 * 23)), NOW)
    assert further(None, far, NOW) == Time(NOW)


def test_what_changes_while_a_list_is_read_is_read_again() -> None:
    assert further(Time(at(-5)), Time(at(3)), NOW) == Time(NOW)


def test_a_smaller_value_never_moves_a_cursor_back() -> None:
    assert further(Time(at(-5)), Time(at(-9)), NOW) == Time(at(-5))
    assert further(Id(90), Id(17), NOW) == Id(90)


@pytest.mark.parametrize(
    ("form", "sent"),
    [
        (Form.ISO, "2026-11-30T11:50:00Z"),
        (Form.DATE, "2026-11-30"),
        (Form.SECONDS, 1796039400),
        (Form.MILLISECONDS, 1796039400000),
    ],
)
def test_a_time_is_asked_for_in_the_form_of_the_source_less_the_overlap(form: Form, sent: object) -> None:
    assert asked(Time(NOW + timedelta(microseconds=999_999), form), OVERLAP) == sent


def test_an_id_is_asked_for_itself_so_that_ties_are_safe() -> None:
    assert asked(Id(17), OVERLAP) == 17


def test_ids_of_digits_are_compared_as_numbers_and_others_as_text() -> None:
    assert Id("9").key < Id("10").key < Id(11).key
    assert Id("01ARZ3").key < Id("01ARZ4").key
    assert Id(2**70).key > Id(2**70 - 1).key


@pytest.mark.parametrize("reach", [None, Time(NOW, Form.DATE), Id(2**80), Id("0017"), Id(17)])
def test_a_pass_comes_back_from_the_database_as_it_was(reach: Reach | None) -> None:
    place = Place(2**70, 3, 250, 100, 1, 400, True, True)
    for known in (
        a_pass(place, since=reach, reach=reach, reading=4, turn=2, restarts=1),
        a_pass(Place("t:=+/", 1)),
        a_pass(None),
    ):
        assert stored_pass(json.loads(json.dumps(known.point()))) == known


@pytest.mark.parametrize("point", [None, 3, "x", [], {}, {"cycle": 1, "document": "u", "entries": 3}])
def test_what_is_no_point_of_a_pass_begins_a_new_one(point: object) -> None:
    assert stored_pass(point) is None  # type: ignore[arg-type]


def test_a_place_in_a_list_is_good_for_its_own_cycle_and_rules_only() -> None:
    known = a_pass(Place(200))
    assert resumed(known, 1, "rules") == known
    assert resumed(known, 2, "rules") is None
    assert resumed(known, 1, "other rules") is None
    assert resumed(None, 1, "rules") is None


def test_only_a_pass_that_came_to_its_end_has_proved_its_reach() -> None:
    assert settled(a_pass(Place(200), since=Time(at(-60)), reach=Time(at(-5)))) == Time(at(-60))
    assert settled(a_pass(None, since=Time(at(-60)), reach=Time(at(-5)))) == Time(at(-5))
    assert settled(None) is None


def test_a_source_that_goes_by_another_kind_of_value_now_is_read_from_its_beginning() -> None:
    assert begun(first(None), 2, "rules", NOW, Id(17), Time).since is None
    assert begun(first(None), 2, "rules", NOW, Time(NOW), Time).since == Time(NOW)
    assert begun(first(None), 2, "rules", NOW, Time(NOW), None).since is None


# --- paging ---


def test_an_offset_ends_at_the_total_or_at_an_empty_answer() -> None:
    by_total = walk(Offset(), lambda place: Told(2 if place.at == 0 else 1, total=3))
    assert [step.at for step in by_total if isinstance(step, Place)] == [0, 2]
    without = walk(Offset(), lambda place: Told(2 if place.at == 0 else 0))
    assert [step.at for step in without if isinstance(step, Place)] == [0, 2]
    assert isinstance(without[-1], End)


def test_an_offset_goes_on_by_what_came_and_not_by_what_was_asked_for() -> None:
    way = walk(Offset(size=500), lambda place: Told(200, total=600))
    assert [step.at for step in way if isinstance(step, Place)] == [0, 200, 400]


def test_a_page_number_ends_at_the_last_page_or_at_a_short_one_after_the_total() -> None:
    assert len(walk(PageNumber(), lambda place: Told(10, last=3))) == 4
    sizes = {1: 10, 2: 10, 3: 5}
    assert len(walk(PageNumber(), lambda place: Told(sizes[int(str(place.at))], total=25))) == 4
    assert isinstance(walk(PageNumber(), lambda _: Told(3, total=3))[1], End)


def test_items_that_were_counted_twice_do_not_end_a_list_early() -> None:
    # Ten new ones came in front: page 2 is page 1 again, and 20 items were counted of which 10 are the same.
    sizes = {1: 10, 2: 10, 3: 10, 4: 5}
    way = walk(PageNumber(), lambda place: Told(sizes[int(str(place.at))], total=25, twice=place.at == 2))
    assert [step.at for step in way if isinstance(step, Place)] == [1, 2, 3, 4]


def test_a_source_that_answers_its_last_page_for_ever_ends_where_the_total_is_reached() -> None:
    way = walk(PageNumber(), lambda place: Told(10, total=20, repeated=place.at == 3))
    assert isinstance(way[-1], End)


@pytest.mark.parametrize("paging", [Offset(), PageNumber(), NextToken("t"), NextLink()])
def test_a_pager_that_repeats_an_answer_is_stopped(paging: Paging) -> None:
    way = walk(paging, lambda place: Told(10, next=f"n{place.answers}", repeated=place.answers == 1))
    assert isinstance(way[-1], Stop)
    assert way[-1].kind == "repeats"


@pytest.mark.parametrize("paging", [NextToken("t"), NextLink()])
def test_a_token_that_stays_the_same_is_stopped(paging: Paging) -> None:
    assert isinstance(walk(paging, lambda _: Told(10, next="same"))[-1], Stop)


@pytest.mark.parametrize("paging", [Offset(), PageNumber(), NextToken("t"), NextLink(), AfterId()])
def test_a_pager_that_never_ends_is_stopped(paging: Paging) -> None:
    step = Place(1, answers=MOST_ANSWERS - 1)
    found = after(paging, step, Told(10, next="another", beyond=17))
    assert isinstance(found, Stop)
    assert found.kind == "endless"


def test_empty_answers_with_a_token_are_followed_but_not_for_ever() -> None:
    way = walk(NextToken("t"), lambda place: Told(0, next=place.answers + 1), most=MOST_EMPTY + 10)
    assert len(way) == MOST_EMPTY + 1
    assert isinstance(way[-1], Stop)


@pytest.mark.parametrize(
    ("paging", "told"),
    [(Offset(), Told(0, total=500)), (PageNumber(), Told(0, total=500)), (PageNumber(), Told(0, last=9))],
)
def test_an_empty_answer_in_the_middle_is_no_end(paging: Paging, told: Told) -> None:
    start = after(paging, first(paging), Told(10, total=told.total, last=told.last))
    assert isinstance(start, Place)
    found = after(paging, start, told)
    assert isinstance(found, Stop)
    assert (found.kind, found.again) == ("empty_page", True)


def test_ids_go_on_behind_the_greatest_and_end_where_nothing_is_beyond() -> None:
    told = {None: Told(2, beyond=7), 7: Told(2, beyond=9), 9: Told(1)}
    way = walk(AfterId(), lambda place: told[place.at])  # type: ignore[index]
    assert [step.at for step in way if isinstance(step, Place)] == [None, 7, 9]
    assert isinstance(way[-1], End)


def test_a_source_that_does_not_heed_the_id_is_stopped() -> None:
    way = walk(AfterId(), lambda place: Told(2, beyond=9) if place.at is None else Told(2, behind=True))
    assert isinstance(way[-1], Stop)


def test_a_list_that_shrinks_or_shifts_is_read_again_but_not_for_ever() -> None:
    shrunk = after(Offset(), Place(10, total=30, answers=1), Told(10, total=20))
    assert isinstance(shrunk, End)
    assert [has_moved(Offset(), shrunk.met, turn) for turn in range(1, MOST_TURNS + 1)] == [True, True, False]
    twice = after(Offset(), Place(10, answers=1), Told(10, total=20, twice=True))
    assert isinstance(twice, End)
    assert [has_moved(Offset(), twice.met, turn) for turn in (1, 2)] == [True, False]
    assert not has_moved(NextToken("t"), twice.met, 1)


def test_an_error_behind_the_last_answer_is_an_end_unless_more_was_told_of() -> None:
    assert isinstance(refused(PageNumber(), Place(4, answers=3, items=30), 404), End)
    assert refused(PageNumber(), Place(4, answers=3, items=30, total=90), 404) is None
    assert refused(PageNumber(), Place(1), 404) is None
    assert refused(PageNumber(), Place(4, answers=3), 500) is None


def test_a_token_that_is_refused_has_expired() -> None:
    expired = refused(NextToken("t"), Place("t:3", answers=3), 410)
    assert isinstance(expired, Stop)
    assert expired.kind == "token_expired"
    assert refused(NextToken("t"), Place(None), 410) is None
    assert refused(NextToken("t"), Place("t:3", answers=3), 503) is None


def test_a_link_holds_its_own_parameters() -> None:
    assert parameters(NextLink(size=50), first(NextLink())) == {"limit": 50}
    assert parameters(NextLink(size=50), Place("https://a.example/?page=2")) == {}
    assert parameters(AfterId(), Place(None)) == {}
    assert parameters(Offset("skip", size=None), Place(20)) == {"skip": 20}


# --- all together: rows that are committed late ---


@dataclass(frozen=True)
class Row:
    id: int
    updated: float  # minutes after NOW
    late: float  # minutes from then until it can be seen


class Source:
    """A source whose rows can be seen some time after they were stamped, read one answer a minute."""

    def __init__(self, rows: list[Row], size: int) -> None:
        self.rows = rows
        self.size = size
        self.minute = 0.0

    def answer(self, since: str, start: int) -> list[Row]:
        self.minute += 1
        seen = [row for row in self.rows if row.updated + row.late <= self.minute and _iso(row) >= since]
        return sorted(seen, key=lambda row: (row.updated, row.id))[start : start + self.size]


def _iso(row: Row) -> str:
    return at(row.updated).replace(tzinfo=None).isoformat() + "Z"


def read_through(source: Source, since: Reach | None) -> tuple[set[int], Reach | None]:
    """One pass, as a stream makes it."""
    began = at(source.minute)
    place: Place | End | Stop = first(Offset())
    current, found = begun(first(Offset()), 1, "rules", began, since, Time), set()
    met: set[int] = set()
    while isinstance(place, Place):
        assert isinstance(place.at, int)
        answered = source.answer(str(asked(since, OVERLAP)) if since else "", place.at)
        for row in answered:
            current = replace(current, reach=further(current.reach, Time(at(row.updated)), began))
        ids = {row.id for row in answered}
        twice = not met.isdisjoint(ids)
        found |= ids
        met |= ids
        place = after(Offset(), place, Told(len(answered), twice=twice))
        if isinstance(place, End):
            current = replace(current, place=None)
            if has_moved(Offset(), place.met, current.turn):
                place, current = first(Offset()), replace(current, turn=current.turn + 1)
                met.clear()
    assert isinstance(place, End)
    return found, settled(current)


ROWS = st.lists(
    st.tuples(st.integers(0, 120), st.one_of(st.integers(0, 10), st.integers(11, 90))), min_size=1, max_size=40
)


WAITS = st.lists(st.integers(0, 30), max_size=6)


@settings(max_examples=200, deadline=None)
@given(ROWS, st.integers(1, 7), WAITS)
def test_rows_late_within_the_overlap_are_found_by_the_next_pass_and_later_ones_by_the_next_full_one(
    drawn: list[tuple[int, int]], size: int, waits: list[int]
) -> None:
    nothing_is_missed(drawn, size, waits)


@pytest.mark.prove
@settings(max_examples=20_000, deadline=None)
@given(ROWS, st.integers(1, 7), WAITS)
def test_no_late_row_is_missed_in_many_more_runs(drawn: list[tuple[int, int]], size: int, waits: list[int]) -> None:
    nothing_is_missed(drawn, size, waits)


def nothing_is_missed(drawn: list[tuple[int, int]], size: int, waits: list[int]) -> None:
    rows = [Row(number, updated, late) for number, (updated, late) in enumerate(drawn)]
    source = Source(rows, size)
    known, reach = read_through(source, None)
    for wait in waits:
        source.minute += wait
        began = source.minute
        found, reach = read_through(source, reach)
        known |= found
        missed = [row for row in rows if row.updated + row.late <= began and row.late <= 10 and row.id not in known]
        assert not missed, f"late within the overlap, and not found: {missed}"
    source.minute = 300
    known |= read_through(source, None)[0]
    assert known == {row.id for row in rows}

"""The rules of deletion by themselves: what they must never do, whatever happens to a page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recrawl.decide.case import Case, Rules
from recrawl.decide.deletion import Standing, Step, enough, has_evidence, step, stopped, vanishings
from recrawl.decide.settlement import judge
from recrawl.declare.policies import Deletion
from recrawl.model.fetched import Validators
from recrawl.model.outcome import Broken, By, Gone, Look, Outcome, Refused, Unchanged
from recrawl.model.settlement import PageFacts
from recrawl.model.work import PageState

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
GAP = timedelta(hours=6)

policies = st.builds(
    Deletion,
    suspect_after=st.integers(1, 4),
    confirm_after=st.integers(1, 3),
    delete_after=st.integers(1, 6),
    max_vanish=st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0]),
)
times = st.integers(0, 100).map(lambda hours: NOW + timedelta(hours=hours))
standings = st.builds(
    Standing,
    id=st.integers(1, 1000),
    status=st.sampled_from(PageState),
    version=st.integers(0, 3),
    listed=st.booleans(),
    misses=st.integers(0, 8),
    gone_at=st.none() | times,
    confirms=st.integers(0, 3),
    failures=st.integers(0, 3),
    absent_since=times,
    held=st.booleans(),
    approved=st.booleans(),
)


@given(standings, policies)
def test_only_a_suspected_page_is_deleted(page: Standing, policy: Deletion) -> None:
    assert step(page, policy) is not Step.DELETE or page.status is PageState.SUSPECTED


@given(standings, policies)
def test_a_listed_page_that_no_look_missed_is_neither_suspected_nor_deleted(page: Standing, policy: Deletion) -> None:
    seen = replace(page, listed=True, gone_at=None, misses=0, confirms=0)
    assert step(seen, policy) in (Step.KEEP, Step.ACQUIT)


@given(standings, policies)
def test_absence_deletes_no_page_that_could_be_looked_at(page: Standing, policy: Deletion) -> None:
    unseen = replace(page, confirms=0, failures=0)
    assert step(unseen, policy) is not Step.DELETE


@given(standings, policies)
def test_a_page_without_evidence_stays_as_it_is(page: Standing, policy: Deletion) -> None:
    if page.status is not PageState.SUSPECTED and not has_evidence(page, policy):
        assert step(page, policy) is Step.KEEP


# The guard


@given(st.integers(1, 10_000), policies)
def test_counting_stops_only_where_more_pages_would_change_nothing(vanished: int, policy: Deletion) -> None:
    limit = enough(vanished, policy)
    if policy.max_vanish:
        assert not stopped(vanished, limit, policy)
        assert not stopped(vanished, limit + 1_000_000, policy)


@given(st.integers(1, 1000), policies)
def test_all_of_a_source_never_goes_without_a_word(pages: int, policy: Deletion) -> None:
    assert stopped(pages, pages, policy)


@given(st.lists(standings, max_size=30), policies)
def test_what_is_at_stake_grows_with_time_and_leaves_out_what_is_approved(
    pages: list[Standing], policy: Deletion
) -> None:
    found = vanishings(pages, policy)
    counts = [each.pages for each in found]
    assert counts == sorted(set(counts))
    assert [each.since for each in found] == sorted(each.since for each in found)
    assert all(each.suspected <= each.pages for each in found)
    assert vanishings([replace(page, approved=True) for page in pages], policy) == []


def test_pages_found_since_make_a_share_no_smaller() -> None:
    """48 of 187 pages vanish in the cycle in which 227 others appear."""
    policy = Deletion()
    assert stopped(48, 187, policy)
    assert not stopped(48, 187 + 227, policy)
    gone = [_standing(number, misses=2, absent_since=NOW) for number in range(48)]
    (vanishing,) = vanishings(gone, policy)
    assert (vanishing.since, vanishing.pages) == (NOW, 48)


def _standing(number: int, **changes: object) -> Standing:
    page = Standing(
        id=number,
        status=PageState.ACTIVE,
        version=1,
        listed=False,
        misses=0,
        gone_at=None,
        confirms=0,
        failures=0,
        absent_since=None,
    )
    return replace(page, **changes)  # type: ignore[arg-type]


# A page's life: looks and ends of cycles in any order


@dataclass(frozen=True)
class Happening:
    """Some hours later: is the page there, can it be fetched, is it listed, was the cycle complete?"""

    hours: int
    there: bool
    reachable: bool
    listed: bool
    complete: bool
    looked_at: bool
    status: int


happenings = st.builds(
    Happening,
    hours=st.integers(0, 12),
    there=st.booleans(),
    reachable=st.booleans(),
    listed=st.booleans(),
    complete=st.booleans(),
    looked_at=st.booleans(),
    status=st.sampled_from([404, 410]),
)


def _page() -> PageFacts:
    texts = {"source": "s", "page_id": "p", "url": "http://h/p", "fetch_url": "http://h/p", "host": "h"}
    nothing: dict[str, object] = dict.fromkeys(PageFacts.__dataclass_fields__)
    numbers = {"id": 1, "version": 1, "observed": 1, "hint_observed": 0, "failures": 0, "misses": 0, "confirms": 0}
    flags = {"held": False, "approved": False, "generation": 0}
    given = nothing | texts | numbers | flags | {"status": PageState.ACTIVE, "raw_hash": "r", "content_hash": "c"}
    return PageFacts(**given)  # type: ignore[arg-type]


@dataclass
class Life:
    """One page through many cycles, by the rules alone. `looks` are those that found nothing since it is suspected."""

    policy: Deletion
    page: PageFacts
    now: datetime
    looks: list[tuple[datetime, int]]

    def go_through(self, happening: Happening) -> Step:
        self.now += timedelta(hours=happening.hours)
        if happening.looked_at:
            self._look(happening)
        return self._close(happening)

    def _look(self, happening: Happening) -> None:
        rules = Rules(max_attempts=1, confirm_after=self.policy.confirm_after, confirm_gap=GAP.total_seconds())
        look = Look(at=self.now, url="http://h/p", status=200, validators=Validators(), requests=1)
        outcome: Outcome
        if not happening.reachable:
            refused = Refused(look=look, reason="robots.txt", by_robots=True)
            outcome = refused if happening.there else Broken(look=look, kind="timeout", message="no answer")
        elif happening.there:
            outcome = Unchanged(look=look, by=By.RAW, raw_hash="r", reader_hash="")
        else:
            outcome = Gone(look=replace(look, status=happening.status))
            if self.page.status is PageState.SUSPECTED:
                self.looks.append((self.now, happening.status))
        self.page = judge(Case(self.page, 1, 2, rules, self.now, 0.5), outcome).page
        if happening.there and happening.reachable:
            assert self.page.status is PageState.ACTIVE
            self.looks.clear()

    def _close(self, happening: Happening) -> Step:
        missed = happening.complete and not happening.listed
        misses = 0 if happening.listed else self.page.misses + missed
        self.page = replace(self.page, misses=misses)
        standing = _standing(
            1,
            status=self.page.status,
            listed=happening.listed,
            misses=misses,
            gone_at=self.page.gone_at,
            confirms=self.page.confirms,
            failures=self.page.failures,
        )
        found = step(standing, self.policy)
        if found is Step.SUSPECT:
            self.page = replace(self.page, status=PageState.SUSPECTED, failures=0, confirms=0, confirm_at=None)
            self.looks.clear()
        elif found is Step.ACQUIT:
            self.page = replace(self.page, status=PageState.ACTIVE, failures=0, confirms=0, confirm_at=None)
            self.looks.clear()
        return found


@given(st.lists(happenings, max_size=40), policies)
def test_whatever_happens_a_page_is_deleted_only_by_looks_apart_or_by_long_absence(
    story: list[Happening], policy: Deletion
) -> None:
    life = Life(policy, _page(), NOW, [])
    for happening in story:
        if life.go_through(happening) is Step.DELETE:
            confirmed = _spaced([at for at, _ in life.looks]) >= policy.confirm_after
            meant = any(status == 410 for _, status in life.looks)
            beyond_reach = life.page.failures > 0 and life.page.misses >= policy.delete_after
            assert confirmed or meant or beyond_reach
            return


def _spaced(times: list[datetime]) -> int:
    """The most looks that can be chosen with the gap between each two."""
    count, last = 0, None
    for at in times:
        if last is None or at - last >= GAP:
            count, last = count + 1, at
    return count


@given(st.lists(happenings, max_size=40), policies)
def test_a_page_that_is_there_and_can_be_fetched_is_never_deleted(story: list[Happening], policy: Deletion) -> None:
    """However long it is unlisted, and whatever cycles come to."""
    life = Life(policy, _page(), NOW, [])
    for happening in story:
        assert life.go_through(replace(happening, there=True, reachable=True)) is not Step.DELETE


@given(st.lists(happenings, max_size=40), policies)
def test_a_page_that_stays_listed_and_is_fetched_well_at_times_is_never_deleted_for_absence(
    story: list[Happening], policy: Deletion
) -> None:
    life = Life(policy, _page(), NOW, [])
    for happening in story:
        assert life.go_through(replace(happening, listed=True, there=True)) is not Step.DELETE

"""An alarm is raised once where too much of a source fails, and ended once when it no longer does."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from recrawl.cli.app import app
from recrawl.decide.alarm import Recent, too_many_fail
from recrawl.decide.health import Ailment
from recrawl.declare import Failing
from recrawl.operate.health import unhealthy
from recrawl.steps.alarm import Alarm
from recrawl.store import sources
from recrawl.store.database import Store
from tests.support.pushes import an_inbox, an_offer_source, offer, push, serve
from tests.support.stores import NOW, one, rows

GOOD = [offer(str(number)) for number in range(300)]
BAD = [{"title": f"no sku {number}"} for number in range(60)]


def alarms(store: Store) -> list[str]:
    found = rows(store, "SELECT kind FROM events WHERE kind IN ('failing', 'recovered') ORDER BY seq")
    return [row["kind"] for row in found]


def test_a_source_whose_pushes_fail_is_unhealthy_until_they_are_good_again(store: Store) -> None:
    source = an_offer_source()
    push(store, *BAD)
    assert serve(store, source)["dead"] == 60
    assert alarms(store) == ["failing"]
    assert [(each.source, each.kind) for each in unhealthy(store, NOW)] == [("offers", Ailment.FAILING)]
    push(store, *GOOD)
    assert serve(store, source)["new"] == 300
    assert alarms(store) == ["failing", "recovered"]
    assert unhealthy(store, NOW) == []


def test_however_many_workers_notice_it_the_alarm_is_raised_once(store: Store) -> None:
    source = an_offer_source()
    for start in (0, 30):
        push(store, *BAD[start : start + 30])
        push(store, *BAD)
        serve(store, source)
    assert alarms(store) == ["failing"]


def test_a_worker_that_lives_on_raises_the_alarm_anew_after_somebody_let_the_source_go_on(store: Store) -> None:
    at, source = [NOW], an_offer_source(failing=Failing(over=0.2, pause=True))
    an_inbox(store, source)
    alarm = Alarm(store, source, lambda: at[0])
    for _ in range(2):
        alarm.hear(Counter(dead=60))
        assert sources.standing(store, "offers").paused
        sources.resume(store, "offers")
        at[0] += timedelta(minutes=1)
    assert alarms(store) == ["failing", "failing"]


def test_a_source_that_is_to_pause_stops_and_keeps_what_is_pushed_until_somebody_resumes_it(store: Store) -> None:
    source = an_offer_source(failing=Failing(over=0.2, pause=True))
    push(store, *BAD)
    serve(store, source)
    assert (
        one(store, "SELECT paused_reason FROM sources WHERE name = 'offers'")
        == "100% of the latest became dead letters"
    )
    push(store, *GOOD)
    assert not serve(store, source)["new"]
    assert one(store, "SELECT count(*) FROM tasks WHERE state = 'pending'") == 1
    sources.resume(store, "offers")
    assert serve(store, source)["new"] == 300


def test_looks_at_pages_count_too_but_not_those_that_wait(store: Store) -> None:
    source = an_offer_source()
    sources.register(store, source.name, source.spec_hash, source.reader_hash)
    alarm = Alarm(store, source, lambda: NOW)
    alarm.hear(Counter(postponed=500, lost=5, failed=40))
    assert alarms(store) == []
    alarm.hear(Counter(quarantined=5, invalid=5, unchanged_304=1))
    assert alarms(store) == ["failing"]


def test_a_check_tells_what_fails_and_what_to_do(store: Store) -> None:
    push(store, *BAD)
    serve(store, an_offer_source())
    result = CliRunner().invoke(app, ["status", "--check", "--store", store.url])
    assert result.exit_code == 1
    assert "offers: failing: too many of its pages or records become dead letters since" in result.stdout
    assert "recrawl dead diagnose" in result.stdout


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0, 1)), max_size=30))
def test_the_share_is_one_of_at_most_the_latest_two_hundred(heard: list[tuple[int, float]]) -> None:
    recent = Recent()
    for ended, part in heard:
        recent = recent.after(ended, int(ended * part))
        assert recent.ended <= 200.001
        assert 0 <= recent.share <= 1.001
    assert too_many_fail(recent, 1.0) in (None, False)


def test_what_is_long_past_no_longer_counts() -> None:
    recent = Recent().after(1000, 1000)
    assert too_many_fail(recent, 0.5) is True
    assert too_many_fail(recent.after(201, 0), 0.5) is False

"""Which sources are not looked after as they should be: for `status --check`, and for whatever asks if all is well."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recrawl.decide.health import Ailment, ailments
from recrawl.store import sources
from recrawl.store.database import Store
from recrawl.store.passes import passes

_ACTIONS = {
    Ailment.OVERDUE: "Start `recrawl run` again, or see why it lags behind: `recrawl status`.",
    Ailment.INCOMPLETE: "See what its passes fail at: `recrawl status`.",
    Ailment.FAILING: "See what fails, and why: `recrawl dead list`, `recrawl dead diagnose`.",
}


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """A source that nobody looks after, or not well: what is wrong, and what to do."""

    source: str
    kind: Ailment
    since: datetime
    problem: str
    action: str


def unhealthy(store: Store, now: datetime) -> list[Unhealthy]:
    """The sources that need a person: an alarm was raised, or passes that are due by themselves are not made."""
    found = []
    for source in sources.all_sources(store):
        ails = [(Ailment.FAILING, source.failing_since)] if source.failing_since else []
        if source.every is not None and not source.paused:
            ails += ailments(passes(store, source.name), source.every, now)
        for kind, since in ails:
            problem = _PROBLEMS[kind].format(since=f"{since:%Y-%m-%d %H:%M:%S} UTC")
            found.append(Unhealthy(source.name, kind, since, problem, _ACTIONS[kind]))
    return found


_PROBLEMS = {
    Ailment.OVERDUE: "its next pass has been due since {since}",
    Ailment.INCOMPLETE: "no pass has seen all there is to see since {since}",
    Ailment.FAILING: "too many of its pages or records become dead letters since {since}",
}

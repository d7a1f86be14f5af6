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
    """The sources that need a person, of those whose passes are due by themselves and that are not paused."""
    found = []
    for source in sources.all_sources(store):
        if source.every is None or source.paused:
            continue
        for kind, since in ailments(passes(store, source.name), source.every, now):
            problem = _PROBLEMS[kind].format(since=f"{since:%Y-%m-%d %H:%M:%S} UTC")
            found.append(Unhealthy(source.name, kind, since, problem, _ACTIONS[kind]))
    return found


_PROBLEMS = {
    Ailment.OVERDUE: "its next pass has been due since {since}",
    Ailment.INCOMPLETE: "no pass has seen all there is to see since {since}",
}

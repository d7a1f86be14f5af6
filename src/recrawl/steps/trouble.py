"""How the looks at a host end, and leaving it alone where it is in trouble.

Each process keeps the last ends of a host in memory; only that it is in trouble, or no longer, is written down. Then no
worker takes up its tasks until the time is over, and what failed for it has spent no attempt.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from recrawl.decide.trouble import RECENT, in_trouble, left_alone
from recrawl.model.outcome import Broken, Outcome, Throttled
from recrawl.model.work import PageState, Task
from recrawl.steps.tools import Tools
from recrawl.store import hosts


@dataclass(slots=True)
class Standing:
    """What this process knows of a host's troubles. `troubles`: how often in a row it was left alone."""

    troubles: int
    until: datetime
    ends: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT))


async def judged(task: Task, outcome: Outcome, standing: Standing, tools: Tools) -> Outcome:
    """Note how a look ended; while its host is in trouble, a failure is the host's and the task only waits."""
    if not outcome.look.requests:
        return outcome
    if not isinstance(outcome, Broken | Throttled):
        standing.ends.append(False)
        if standing.troubles:
            standing.troubles = 0
            await tools.db(hosts.recover, task.host)
        return outcome
    now = tools.clock.now()
    if isinstance(outcome, Throttled):
        standing.until = max(standing.until, outcome.until)
    if standing.until <= now or isinstance(outcome, Throttled):
        await _note_failure(task, outcome, standing, tools, now)
    if standing.until <= now:
        return outcome
    return _excused(task, outcome, standing)


async def _note_failure(
    task: Task, outcome: Broken | Throttled, standing: Standing, tools: Tools, now: datetime
) -> None:
    if isinstance(outcome, Broken) and _known_as_bad(task, standing):
        return
    standing.ends.append(True)
    # After a rest, one failure tells that it is not over.
    if standing.troubles or in_trouble(list(standing.ends)):
        draw = tools.chance.random()
        standing.ends.clear()
        # At once, for what is on its way while this is written.
        standing.until = max(standing.until, now + left_alone(standing.troubles, draw))
        trouble = await tools.db(hosts.trouble, task.host, now, draw)
        standing.troubles, standing.until = trouble.troubles, max(standing.until, trouble.until)


def _known_as_bad(task: Task, standing: Standing) -> bool:
    """A page that fails again says nothing new of its host: at the end of many a run only such pages are left."""
    failing = task.page is not None and task.page.status is PageState.FAILING
    return failing or (task.attempt > 1 and not standing.troubles)


def _excused(task: Task, outcome: Broken | Throttled, standing: Standing) -> Throttled:
    rest = f"{task.host} is left alone until {standing.until:%Y-%m-%d %H:%M:%S} UTC"
    return Throttled(
        look=outcome.look,
        until=standing.until,
        kind=outcome.kind,
        message=f"{outcome.message}; {rest}" if outcome.message else rest,
    )

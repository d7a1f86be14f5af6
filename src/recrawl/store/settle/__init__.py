"""The verb `settle`: the only door to pages, versions and records. One file per table it writes.

One transaction: lock the pages in the order of their ids, fence every outcome by its lease, judge the survivors, write.
An outcome whose lease is lost leaves no trace and harms no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from recrawl.decide.case import Case, Rules
from recrawl.decide.settlement import judge
from recrawl.model.outcome import Moved
from recrawl.model.settlement import PageFacts, Settlement, Verdict
from recrawl.store import bodies
from recrawl.store.database import Store
from recrawl.store.settle import events, identity, letters, pages, records, tasks, versions, yields
from recrawl.store.settle.moves import Target, forget_targets, hand_over, prepare_targets
from recrawl.store.visits import lock_pages


@dataclass(frozen=True, slots=True)
class Settled:
    """What was written: counts by line of the summary, and the tasks whose lease was lost."""

    counts: Counter[str] = field(default_factory=Counter)
    lost: tuple[int, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()  # (kind, url) of each version written
    ends: Mapping[int, str] = field(default_factory=dict)  # the line of the summary that each task counts for
    by_source: Mapping[str, Counter[str]] = field(default_factory=dict)  # of pushes, which may be of several sources


def settle(
    store: Store,
    settlements: Sequence[Settlement],
    *,
    rules: Mapping[str, Rules],
    now: datetime,
    draw: Callable[[], float],
    run: int | None = None,
) -> Settled:
    """Write outcomes. `rules` holds those of each source; `draw` gives random numbers in [0, 1) for back-off."""

    def work(connection: Connection) -> Settled:
        targets = prepare_targets(store, connection, [s for s in settlements if isinstance(s.outcome, Moved)], now)
        ids = {s.task.page.id for s in settlements if s.task.page} | {target.id for target in targets.values()}
        lock_pages(store, connection, sorted(ids))
        held = tasks.fenced(store, connection, settlements)
        forget_targets(connection, targets, held)
        facts = pages.load(store, connection, sorted(ids))
        verdicts = {
            s.task.id: _verdict(s, facts, rules[s.task.source], now, draw) for s in settlements if s.task.id in held
        }
        kept = [s for s in settlements if s.task.id in verdicts]
        _write(store, connection, kept, verdicts, facts, targets, now, run)
        counts: Counter[str] = Counter(verdict.count for verdict in verdicts.values())
        lost = tuple(s.task.id for s in settlements if s.task.id not in held)
        changed = tuple((v.version.kind, v.page.url) for v in verdicts.values() if v.version)
        ends = {task: verdict.count for task, verdict in verdicts.items()}
        return Settled(counts, lost, changed, ends)

    return store.write(work)


def _verdict(
    settlement: Settlement, facts: Mapping[int, PageFacts], rules: Rules, now: datetime, draw: Callable[[], float]
) -> Verdict:
    task = settlement.task
    assert task.page is not None
    case = Case(facts[task.page.id], task.attempt, task.observed, rules, now, draw())
    return judge(case, settlement.outcome)


def _write(
    store: Store,
    connection: Connection,
    kept: Sequence[Settlement],
    verdicts: dict[int, Verdict],
    facts: dict[int, PageFacts],
    targets: Mapping[int, Target],
    now: datetime,
    run: int | None,
) -> None:
    bodies.write(store, connection, [verdict.body for verdict in verdicts.values()])
    identity.rename(store, connection, verdicts)
    moved = hand_over(store, connection, kept, verdicts, facts, targets, now, run)
    pages.write(connection, [verdict.page for verdict in verdicts.values()])
    versions.write(connection, verdicts.values(), run)
    touched = yields.write(store, connection, verdicts.values())
    records.show(store, connection, verdicts.values(), touched | moved, now)
    letters.write(store, connection, kept, verdicts, now)
    events.write(connection, verdicts.values(), now)
    tasks.end(connection, verdicts, now)
    tasks.go_on(store, connection, kept, verdicts, now)
    tasks.hold_hosts(store, connection, kept, verdicts)

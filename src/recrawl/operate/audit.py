"""Looking at a random sample of pages without belief in anything, to tell how much of a source is stale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from random import Random

from recrawl.decide.estimate import wilson
from recrawl.model.work import Task
from recrawl.operate.standing import working
from recrawl.run.engine import Engine, Errand, Result
from recrawl.run.progress import Progress
from recrawl.run.wire import Declared, sync_source, the_clock
from recrawl.store import audit, notes
from recrawl.store.database import Store
from recrawl.store.settle import Settled

_FRESH = ("unchanged_304", "unchanged_hash", "reread")
_STALE = ("changed", "moved", "gone")


@dataclass(slots=True)
class Tally:
    """What the looks of an audit found. `silent`: those stale pages whose change no finder had announced. A look that
    got no answer says nothing, and is `unanswered`."""

    fresh: int = 0
    stale: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    unanswered: int = 0

    def hear(self, tasks: list[Task], settled: Settled) -> None:
        for task in tasks:
            end = settled.ends.get(task.id, "lost")
            page = task.page
            assert page is not None
            if end in _FRESH:
                self.fresh += 1
            elif end in _STALE:
                self.stale.append(page.url)
                if page.hint_stayed or not page.hinted:
                    self.silent.append(page.url)
            elif end not in ("postponed", "lost"):
                self.unanswered += 1


@dataclass(frozen=True, slots=True)
class Audited:
    """An estimate of the share of stale pages, with its bounds at 95 % confidence, and what it was made from."""

    sample: int
    looked: int
    stale: int
    silent: int
    unanswered: int
    share: float | None
    low: float
    high: float
    urls: list[str]
    silent_urls: list[str]


async def audit_source(
    declared: Declared,
    store: Store,
    count: int,
    chance: Random,
    *,
    prepare: Callable[[Engine, Progress, int], None] = lambda _engine, _progress, _total: None,
) -> tuple[Audited, Result]:
    """Look at up to `count` active pages without validators and whatever their hints say, and compare with what is
    stored. What changed is stored as by any look, and hints and validators gain or lose trust by it.

    Raises Permanent for a source that was never synced, or is paused.
    """
    name = declared.source.name
    working(store, name)
    pages = audit.sample(store, name, count, chance)
    left = list(pages)
    tally = Tally()

    def plan(store: Store, **times: object) -> int:
        made = audit.plan_audits(store, name, left, **times) if left else []  # type: ignore[arg-type]
        left.clear()
        return len(made)

    result = await sync_source(
        declared,
        store,
        errand=Errand(plan, tally.hear),
        prepare=lambda engine, progress: prepare(engine, progress, len(pages)),
    )
    found = _estimate(len(pages), tally)
    told = {key: value for key, value in asdict(found).items() if not key.endswith("urls")}
    notes.note(store, name, "audit", told, the_clock().now())
    return found, result


def _estimate(sample: int, tally: Tally) -> Audited:
    stale = len(tally.stale)
    looked = tally.fresh + stale
    low, high = wilson(stale, looked)
    return Audited(
        sample=sample,
        looked=looked,
        stale=stale,
        silent=len(tally.silent),
        unanswered=tally.unanswered,
        share=stale / looked if looked else None,
        low=low,
        high=high,
        urls=sorted(tally.stale),
        silent_urls=sorted(tally.silent),
    )

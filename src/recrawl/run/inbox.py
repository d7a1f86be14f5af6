"""Who takes pushed records out of the inbox: claim, clean, settle, in one thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recrawl.clean.plain import storable
from recrawl.declare import Source
from recrawl.errors import RecrawlError
from recrawl.model.push import Cleaned
from recrawl.model.work import Task
from recrawl.run.owner import dead, own_name
from recrawl.steps.alarm import Alarm
from recrawl.steps.clean import clean_chunk, pushed_to
from recrawl.store import claim, leases, notes, reap, recordtables, sources
from recrawl.store.database import Store
from recrawl.store.inbox import chunks_of
from recrawl.store.settle.pushed import PushedTo, settle_pushed

LEASE = timedelta(seconds=60)
_RENEW_AFTER = timedelta(seconds=20)
_REAP_AFTER = timedelta(seconds=5)
_CLAIMED = 16  # chunks
_MOST_FIELDS = 1_000  # whose names are told: some sources make names of ids
_TOGETHER = 500  # records that one transaction takes, unless a single chunk holds more


@dataclass(slots=True)
class Inbox:
    """Serves the pushes of some sources. `told` hears what each transaction came to, by source."""

    store: Store
    served: Mapping[str, Source]
    now: Callable[[], datetime]
    told: Callable[[Counter[str]], None] = lambda _: None
    owner: str = field(default_factory=own_name)
    run: int | None = None
    _to: dict[str, PushedTo] = field(default_factory=dict)
    _told_fields: set[tuple[str, str]] = field(default_factory=set)
    _alarms: dict[str, Alarm] = field(default_factory=dict)
    _reaped_at: datetime | None = None

    def prepare(self) -> None:
        """Make the declarations known, and the tables of their records. Raises Misuse where one cannot be."""
        for source in self.served.values():
            sources.register(self.store, source.name, source.spec_hash, source.reader_hash)
            recordtables.ensure(self.store, source.records, frozen=source.contract == "freeze")
            self._told_fields |= {(source.name, name) for name in notes.told_fields(self.store, source.name)}
            self._to[source.name] = pushed_to(source)
            self._alarms[source.name] = Alarm(self.store, source, self.now)

    def take(self) -> int:
        """Clean and settle some of what waits; how many chunks that were. 0: nothing can be claimed now."""
        self._reap()
        now = self.now()
        specs = {name: source.spec_hash for name, source in self.served.items()}
        held = claim.claim_chunks(self.store, _CLAIMED, specs=specs, owner=self.owner, now=now, until=now + LEASE)
        renewed, settled = now, 0
        try:
            for part in self._parts(held):
                result = settle_pushed(self.store, part, to=self._to, now=self.now(), run=self.run)
                settled += len(part)
                for name, counts in result.by_source.items():
                    self._alarms[name].hear(counts)
                self.told(result.counts + Counter(lost=len(result.lost)))
                if self.now() - renewed > _RENEW_AFTER and settled < len(held):
                    renewed = self.now()
                    leases.renew(self.store, _leases(held[settled:]), renewed + LEASE)
        except (RecrawlError, KeyboardInterrupt):
            leases.release(self.store, _leases(held[settled:]))
            raise
        return len(held)

    def _parts(self, held: Sequence[Task]) -> Iterator[list[Cleaned]]:
        """Cleaned chunks, as many together as one transaction takes."""
        part: list[Cleaned] = []
        for task in held:
            for chunk in chunks_of(self.store, [task]):
                cleaned, specs = clean_chunk(chunk, self.served[task.source])
                recordtables.ensure(self.store, specs)
                self._tell_of(cleaned)
                part.append(cleaned)
            if sum(len(each.lines) for each in part) >= _TOGETHER:
                yield part
                part = []
        if part:
            yield part

    def _tell_of(self, cleaned: Cleaned) -> None:
        """Tell once of each field that no record declares; what is discarded is only counted."""
        source = self.served[cleaned.task.source]
        if source.contract == "discard":
            self.told(Counter(discarded=cleaned.unknown.total()))
            return
        for name in cleaned.unknown:
            if (source.name, name) not in self._told_fields and len(self._told_fields) < _MOST_FIELDS:
                self._told_fields.add((source.name, name))
                notes.note(self.store, source.name, notes.NEW_FIELD, {"field": storable(name)}, self.now())

    def _reap(self) -> None:
        """Bring back what dead workers held, and end what has expired, now and then."""
        now = self.now()
        if self._reaped_at is None or now - self._reaped_at >= _REAP_AFTER:
            self._reaped_at = now
            reap.reap(self.store, now, dead(leases.owners(self.store)))


def _leases(tasks: Sequence[Task]) -> list[tuple[int, str]]:
    return [(task.id, task.token) for task in tasks]

"""Makers for tests of the store: a source with one stream, its pages, a worker's claims, and outcomes.

Everything goes through the store's own verbs, so that what a test sees is what a run leaves behind. Time stands still
at `NOW` unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import event, text

from recrawl.clean.fingerprint import content_hash
from recrawl.decide.case import Rules
from recrawl.declare.policies import Deletion
from recrawl.declare.specs import FieldSpec, Kind, RecordSpec
from recrawl.model.fetched import Validators
from recrawl.model.outcome import Body, Broken, By, Changed, Gone, Look, Moved, Outcome, Unchanged
from recrawl.model.record import Json, RecordRow
from recrawl.model.settlement import Settlement, TaskEnd
from recrawl.model.sighting import Batch, Seen, Sighting
from recrawl.model.work import Stage, Task, TaskKind, TaskState
from recrawl.store import claim, close, cursor, cycle, documents, leases, migrate, plan, recordtables, sources
from recrawl.store.database import Store, open_store
from recrawl.store.see import see
from recrawl.store.settle import Settled, settle

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LEASE = timedelta(seconds=60)
SOURCE, STREAM, HOST = "shop", "sitemap", "shop.example"
SPEC, READER = "spec-1", "reader-1"

THING = RecordSpec(
    "Thing",
    "things",
    ("id",),
    (
        FieldSpec("id", Kind.STR),
        FieldSpec("title", Kind.STR),
        FieldSpec("viewers", Kind.INT, optional=True, volatile=True),
    ),
    history=True,
)


def fresh_store(path: Path) -> Store:
    """A new SQLite store with this release's schema, and the source that these makers speak of."""
    store = open_store(str(path))
    migrate.ready(store)
    return prepared(store)


def prepared(store: Store) -> Store:
    """A migrated store, told of the source and its record type."""
    sources.register(store, SOURCE, SPEC, READER)
    recordtables.ensure(store, [THING])
    return store


def rows(store: Store, sql: str, **values: object) -> list[Mapping[str, Any]]:
    """What a query gives; instants are texts on SQLite."""
    with store.read() as connection:
        return [dict(row) for row in connection.execute(text(sql), values).mappings()]


def one(store: Store, sql: str, **values: object) -> Any:
    """The single value of a query."""
    with store.read() as connection:
        return connection.execute(text(sql), values).scalar_one()


# What a finder sees


def a_page(page_id: str, hint: str | None = None) -> Sighting:
    """A sighting of the page `page_id`, which is also the path of its address."""
    return Sighting(page_id, f"https://{HOST}/{page_id}", f"https://{HOST}/{page_id}", HOST, hint)


@dataclass(slots=True)
class Walk:
    """A worker that leads the stream through one cycle; it holds the discover task's lease."""

    store: Store
    task: Task
    point: Json
    stream: str = STREAM

    def see(self, *pages: Sighting, now: datetime = NOW, forced: bool = False) -> Seen:
        """Take in one batch; the stream's `seen` point grows by its length."""
        after = int(str(self.point or 0)) + len(pages)
        assert self.task.cycle is not None
        batch = Batch(SOURCE, self.stream, self.task.cycle, None, 0, pages, self.point, after)
        seen = see(
            self.store,
            batch,
            task=self.task.id,
            token=self.task.token,
            now=now,
            until=now + LEASE,
            forced=lambda: forced,
            expires_at=now + timedelta(days=2),
        )
        self.point = after
        return seen

    def end(self, now: datetime = NOW) -> bool | None:
        """Reach the end of the stream and close the cycle."""
        assert self.task.cycle is not None
        cycle_id, task, token = self.task.cycle, self.task.id, self.task.token
        cursor.end_stream(self.store, SOURCE, self.stream, cycle=cycle_id, exhaustive=True, task=task, token=token)
        leases.end_task(self.store, task, token, TaskEnd(state=TaskState.DONE, stage=Stage.SETTLE), now)
        closed = close.close(self.store, SOURCE, cycle_id, Deletion(), now)
        return closed.complete if closed else None


def a_walk(store: Store, *, stream: str = STREAM, now: datetime = NOW) -> Walk:
    """Begin a cycle, or join the open one, and take the lead of its stream, which comes before every visit."""
    cycle.begin(store, SOURCE, [cycle.Stream(stream, HOST, exhaustive=True)], now)
    (task,) = take(store, 1, now=now)
    assert task.kind is TaskKind.DISCOVER
    return Walk(store, task, cursor.cursor(store, SOURCE, stream).seen, stream)


def sight(store: Store, *pages: Sighting, now: datetime = NOW) -> Seen:
    """See these pages in a cycle of their own, from its begin to its end."""
    walk = a_walk(store, now=now)
    seen = walk.see(*pages, now=now)
    walk.end(now)
    return seen


def a_cycle(
    store: Store,
    listed: Mapping[str, Sequence[str]],
    *,
    now: datetime,
    policy: Deletion | None = None,
    whole: bool = True,
    exhaustive: bool = True,
    stream: str = STREAM,
) -> close.Closed:
    """A cycle in which each of these documents lists these pages, from its begin to its end. Without `whole`, the
    stream does not come to its end."""
    opened = cycle.begin(store, SOURCE, [cycle.Stream(stream, HOST, exhaustive=exhaustive)], now)
    task = next(task for task in take(store, now=now) if task.kind is TaskKind.DISCOVER)
    point = cursor.cursor(store, SOURCE, stream).seen
    for url, names in listed.items():
        known = documents.document(store, SOURCE, stream, url)
        reading = documents.begin_reading(store, task.id, task.token, known)
        after = int(str(point or 0)) + 1
        found = tuple(a_page(name) for name in names)
        see(
            store,
            Batch(SOURCE, stream, opened.id, known.id, reading, found, point, after),
            task=task.id,
            token=task.token,
            now=now,
            until=now + LEASE,
            forced=lambda: False,
            expires_at=now + timedelta(days=7),
        )
        point = after
        documents.end_reading(
            store,
            task.id,
            task.token,
            known,
            cycle=opened.id,
            kind="urlset",
            body_hash=sha256(f"{url} {names}".encode()).hexdigest(),
            validators=Validators(),
            spec=SPEC,
            complete=True,
        )
    if whole:
        cursor.end_stream(store, SOURCE, stream, cycle=opened.id, exhaustive=exhaustive, task=task.id, token=task.token)
    state = TaskState.DONE if whole else TaskState.DEAD
    leases.end_task(store, task.id, task.token, TaskEnd(state=state, stage=Stage.SETTLE), now)
    closed = close.close(store, SOURCE, opened.id, policy or Deletion(), now)
    assert closed is not None
    return closed


def looked_at(store: Store, outcome: Callable[[Task], Outcome], *, now: datetime) -> list[str]:
    """Look at every page that is due: `outcome` says what is found; the pages."""
    plan.plan(store, SOURCE, until=now, now=now, expires_at=now + timedelta(days=7))
    tasks = take(store, now=now)
    put(store, *((task, outcome(task)) for task in tasks), now=now)
    return sorted(page_id_of(task) for task in tasks)


def a_document(store: Store, url: str = f"https://{HOST}/sitemap.xml") -> documents.Document:
    return documents.document(store, SOURCE, STREAM, url)


# What a worker does


def take(store: Store, count: int = 100, *, owner: str = "worker", now: datetime = NOW, spec: str = SPEC) -> list[Task]:
    """Claim up to `count` tasks."""
    return claim.claim(store, count, specs={SOURCE: spec}, owner=owner, now=now, until=now + LEASE)


def take_one(store: Store, *, owner: str = "worker", now: datetime = NOW) -> Task:
    """Claim the only task there is to claim."""
    (task,) = take(store, owner=owner, now=now)
    return task


def put(
    store: Store, *found: tuple[Task, Outcome], now: datetime = NOW, order: str = "observed", max_attempts: int = 5
) -> Settled:
    """Settle outcomes in one transaction."""
    rules = {SOURCE: Rules(order=order, max_attempts=max_attempts, shortest=3600.0)}
    settlements = [Settlement(task, outcome) for task, outcome in found]
    return settle(store, settlements, rules=rules, now=now, draw=lambda: 0.5)


def visited(store: Store, *pages: tuple[Sighting, str], now: datetime = NOW) -> None:
    """Pages that were sighted and read well, each with one thing of its own that has this title."""
    sight(store, *(page for page, _ in pages), now=now)
    titles = {page.page_id: title for page, title in pages}
    tasks = take(store, now=now)
    put(store, *((task, a_changed_outcome(task, titles[page_id_of(task)], at=now)) for task in tasks), now=now)


def page_id_of(task: Task) -> str:
    assert task.page is not None
    return task.page.page_id


# What a look at a page finds


def a_thing(key: str, title: str, viewers: int | None = None) -> RecordRow:
    data: dict[str, Json] = {"id": key, "title": title, "viewers": viewers}
    return RecordRow("things", key, data, volatile=frozenset({"viewers"}))


def a_look(task: Task, at: datetime = NOW, status: int = 200, etag: str | None = None) -> Look:
    assert task.page is not None
    url = task.page.fetch_url
    return Look(at=at, url=url, final_url=url, status=status, validators=Validators(etag), requests=1)


def a_body(content: str) -> Body:
    data = content.encode()
    return Body(sha256(data).hexdigest(), "plain", len(data), data)


def a_changed_outcome(
    task: Task,
    title: str = "one",
    *,
    at: datetime = NOW,
    things: Sequence[RecordRow] | None = None,
    page_id: str | None = None,
    updated: datetime | None = None,
    version: str | None = None,
) -> Changed:
    """The page holds `things`; without them, one of the page's own id with this title."""
    found = tuple(things) if things is not None else (a_thing(page_id or page_id_of(task), title),)
    body = a_body(repr(found))
    return Changed(
        look=a_look(task, at),
        raw_hash=body.hash,
        content_hash=content_hash(found),
        structure_hash=None,
        reader_hash=READER,
        rows=found,
        body=body,
        page_id=page_id,
        source_version=version,
        source_updated_at=updated,
    )


def an_unchanged_outcome(
    task: Task,
    by: By = By.RAW,
    *,
    raw_hash: str | None = None,
    things: Sequence[RecordRow] = (),
    at: datetime = NOW,
    requests: int = 1,
) -> Unchanged:
    """What came is what is stored; judged against `raw_hash`, or else against what the claim told."""
    assert task.page is not None
    status = 304 if by is By.NOT_MODIFIED else 200
    return Unchanged(
        look=replace(a_look(task, at, status), requests=requests),
        reread=not requests,
        by=by,
        raw_hash=raw_hash or task.page.raw_hash,
        reader_hash=READER,
        rows=tuple(things),
    )


def a_moved_outcome(task: Task, to: str) -> Moved:
    """301 to the page of that id."""
    target = a_page(to)
    return Moved(
        look=replace(a_look(task), status=301),
        page_id=target.page_id,
        url=target.url,
        fetch_url=target.fetch_url,
        host=HOST,
    )


def a_gone_outcome(task: Task, status: int = 404) -> Gone:
    return Gone(look=a_look(task, status=status))


def a_broken_outcome(task: Task) -> Broken:
    return Broken(look=replace(a_look(task), status=None), kind="timeout", message="no answer within 30 s")


# How a worker dies


class Killed(BaseException):
    """The end of a process: no handler of the program sees it, and nothing is committed after it."""


@contextmanager
def killed_before_commit(store: Store) -> Iterator[None]:
    """The process ends just before the next commit of this store."""

    def die(*_: object) -> None:
        raise Killed

    event.listen(store.engine, "commit", die)
    try:
        yield
    except Killed:
        pass
    else:
        raise AssertionError("nothing was committed: the process would not have died")
    finally:
        event.remove(store.engine, "commit", die)

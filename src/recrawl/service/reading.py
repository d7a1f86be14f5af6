"""What is stored, for those who follow: sources, pages, changes, and what became of a push."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from recrawl.decide.urls import canonical_url
from recrawl.operate.scopes import Scope
from recrawl.service.auth import requires
from recrawl.service.desk import TheDesk
from recrawl.service.problems import Problem, documented
from recrawl.store import contents, queries, receipts
from recrawl.store.changes import changes

_REFUSALS = documented(400, 401, 403, 404, 422, 503)
router = APIRouter(tags=["read"], dependencies=[Depends(requires(Scope.READ))], responses=_REFUSALS)

MOST_ID = 2**63 - 1
Number = Annotated[int, Path(ge=0, le=MOST_ID)]
# Names as databases can keep them: no NUL.
Name = Annotated[str, Query(max_length=64, pattern=r"^[^\x00]*$")]


class _FromStore(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class TaskState(_FromStore):
    """`state` is pending, running, failed (waits), done, dead or expired; `counts` tell what became of a push."""

    id: int
    source: str
    kind: str = Field(examples=["clean"])
    state: str = Field(examples=["done"])
    due_at: datetime | None
    ended_at: datetime | None
    error: str | None
    counts: dict[str, int] = Field(examples=[{"records": 100, "new": 90, "changed": 4, "duplicates": 5, "dead": 1}])


@router.get("/v1/tasks/{task}")
async def get_task(task: Number, desk: TheDesk) -> TaskState:
    """What became of a task: of a chunk of pushed records, or of a visit that has not ended long ago."""
    found = await desk.db(receipts.receipt, task)
    if found is None:
        raise Problem(404, f"there is no task {task}", action="Tasks that ended leave after some hours.")
    return TaskState.model_validate(found)


class ChangedRecord(BaseModel):
    table: str
    key: str
    data: dict[str, Any]


class ChangeRow(_FromStore):
    """One version. `position` is the place after it in the feed."""

    position: str
    source: str
    page_id: str
    url: str
    kind: str = Field(examples=["updated"])
    version: int
    fetched_at: datetime
    source_updated_at: datetime | None
    content_hash: str | None
    raw_hash: str | None
    records: list[ChangedRecord]


class Feed(BaseModel):
    changes: list[ChangeRow]
    position: str = Field(description="send it as `after` to go on")
    more: bool = Field(description="whether there is more already")


@router.get("/v1/changes")
async def get_changes(
    desk: TheDesk,
    after: Annotated[str | None, Query(description="A position of an earlier answer.", max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
    source: Name | None = None,
) -> Feed:
    """Versions in the order of their commits: none appears behind one that was read already."""
    found = await desk.db(changes, after, limit, source)
    rows = [ChangeRow.model_validate(row) for row in found.rows]
    return Feed(changes=rows, position=found.position, more=found.more)


class VersionRow(_FromStore):
    version: int
    kind: str
    fetched_at: datetime
    source_updated_at: datetime | None
    content_hash: str | None


class PageState(BaseModel):
    source: str
    page_id: str
    url: str
    status: str = Field(examples=["active"])
    first_seen_at: datetime
    last_fetched_at: datetime | None
    last_changed_at: datetime | None
    due_at: datetime | None
    deleted_at: datetime | None
    aliases: list[str]
    versions: list[VersionRow]
    records: list[ChangedRecord] = Field(description="of the last version")


_FACTS = ("page_id", "url", "status", "first_seen_at", "last_fetched_at", "last_changed_at", "due_at", "deleted_at")


@router.get("/v1/pages")
async def get_page(
    desk: TheDesk,
    source: Name,
    id: Annotated[str, Query(description="Its id at the source, or its URL.", max_length=8_000, pattern=r"^[^\x00]+$")],  # noqa: A002
) -> PageState:
    """One page: its state, its versions, and the records of the last one."""
    names = [id]
    with suppress(ValueError):
        names.append(canonical_url(id))
    found = await desk.db(queries.find_pages, names, source)
    if not found:
        raise Problem(404, f"no page {id[:200]!r} of {source!r} is known", action="See /v1/sources for names.")
    page = found[0]
    versions = await desk.db(queries.versions_of, page.id)
    records = await desk.db(contents.records_of, page.id, versions[-1].version) if versions else {}
    return PageState(
        source=page.source,
        **{name: page.facts[name] for name in _FACTS},
        aliases=list(page.aliases),
        versions=[VersionRow.model_validate(version) for version in versions],
        records=[ChangedRecord(table=table, key=key, data=data) for (table, key), data in records.items()],
    )


class SourceState(BaseModel):
    name: str
    declared: bool = Field(description="whether records can be pushed to it here")
    paused: bool
    pages: dict[str, int] = Field(description="by state", examples=[{"active": 1200, "failing": 3}])
    open_tasks: dict[str, int]
    dead_letters: int


@router.get("/v1/sources")
async def get_sources(desk: TheDesk) -> list[SourceState]:
    """All sources of the database, and those that are declared here."""
    stored = await desk.db(queries.source_names)
    found = [await desk.db(queries.status, name) for name in stored]
    states = [
        SourceState(
            name=one.source,
            declared=one.source in desk.sources,
            paused=one.paused,
            pages=dict(one.pages),
            open_tasks=dict(one.tasks),
            dead_letters=sum(group.count for group in one.dead_letters),
        )
        for one in found
    ]
    fresh = [name for name in desk.sources if name not in stored]
    return states + [
        SourceState(name=name, declared=True, paused=False, pages={}, open_tasks={}, dead_letters=0) for name in fresh
    ]

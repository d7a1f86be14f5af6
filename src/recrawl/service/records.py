"""`POST /v1/sources/{source}/records`: records that somebody's spider found."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import IO, Annotated, Any, ParamSpec, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import BaseModel, Field

from recrawl.declare.policies import seconds
from recrawl.errors import Misuse
from recrawl.model.push import Accepted, Backlog, KeyReused, Push, Queue
from recrawl.operate.scopes import Scope
from recrawl.service.auth import requires
from recrawl.service.bodies import lines_of, received
from recrawl.service.desk import TheDesk
from recrawl.service.problems import Problem, documented

router = APIRouter(tags=["push"])

P = ParamSpec("P")
T = TypeVar("T")

_LARGE = 200_000  # bytes of a body
_PORTION_RECORDS = 5_000
_PORTION_BYTES = 4_000_000
_LONGEST_KEY = 190
_LONGEST_WAIT = 366 * 86_400

_ENVELOPE = {
    "id": "A-1",
    "url": "https://shop.example/p/1",
    "source_updated_at": "2026-11-30T12:00:00Z",
    "fetched_at": "2026-11-30T12:03:00Z",
    "data": {"sku": "A-1", "title": "Desk lamp", "price": "¥1,299.00"},
}
_BODY = {
    "requestBody": {
        "required": True,
        "description": "Records: bare data, or in an envelope that tells more about them. One object, an array, or one "
        "object a line. May be compressed (Content-Encoding: gzip or zstd).",
        "content": {
            "application/json": {
                "schema": {
                    "oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}],
                },
                "examples": {
                    "bare": {"value": [{"sku": "A-1", "title": "Desk lamp", "price": "¥1,299.00"}]},
                    "envelope": {"value": _ENVELOPE},
                },
            },
            "application/x-ndjson": {"schema": {"type": "string"}, "example": '{"sku": "A-1"}\n{"sku": "A-2"}\n'},
        },
    }
}


class Receipt(BaseModel):
    """What was taken in. It is kept: the answer is sent after the commit."""

    accepted: int = Field(description="records that will be cleaned and stored", examples=[100])
    dead: int = Field(description="lines that are no JSON: dead letters already", examples=[0])
    tasks: list[int] = Field(description="their chunks: see /v1/tasks/{id}", examples=[[17]])
    repeated: bool = Field(description="the Idempotency-Key was known: nothing was taken in again")


@router.post(
    "/v1/sources/{source}/records",
    status_code=202,
    dependencies=[Depends(requires(Scope.PUSH))],
    responses=documented(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503),
    openapi_extra=_BODY,
)
async def push_records(
    source: str,
    request: Request,
    desk: TheDesk,
    queue: Annotated[Queue, Query(description="How urgent they are.")] = Queue.DEFAULT,
    expires_in: Annotated[
        str | None, Query(description="A record that waits longer becomes a dead letter.", examples=["2h"])
    ] = None,
    idempotency_key: Annotated[
        str | None, Header(description="The same key again is answered as before, and takes nothing in.")
    ] = None,
) -> Receipt:
    """Take records in, durably. They are cleaned and stored soon after: ask for their tasks."""
    name = desk.source(source).name
    wait = _wait(expires_in)
    key = _key(idempotency_key)
    accepted: list[Accepted] = []
    async with received(request, desk.bounds) as file:
        apart = _is_large(file)
        lines = await _read(apart, lines_of, file, request.headers.get("content-type"))
        portions = _portions(lines)
        while (portion := await _read(apart, next, portions, None)) is not None:
            push = Push(
                source=name,
                lines=portion,
                key=None if key is None else f"{key}/{len(accepted)}" if accepted else key,
                queue=queue,
                expires_at=None if wait is None else desk.now() + timedelta(seconds=wait),
            )
            try:
                accepted.append(await desk.intake.accept(push))
            except Backlog as error:
                headers = {"Retry-After": f"{error.retry_after:.0f}"}
                raise Problem(429, error.problem, action=error.action, headers=headers, **_so_far(accepted)) from None
            except KeyReused as error:
                raise Problem(409, error.problem, action=error.action, **_so_far(accepted)) from None
    return Receipt(**_counts(accepted), repeated=bool(accepted) and all(one.repeated for one in accepted))


def _is_large(file: IO[bytes]) -> bool:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size > _LARGE


async def _read(apart: bool, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call what reads a body; one that is large in a thread, as other requests would wait for it."""
    return await asyncio.to_thread(call, *args, **kwargs) if apart else call(*args, **kwargs)


def _counts(accepted: list[Accepted]) -> dict[str, Any]:
    return {
        "accepted": sum(one.records for one in accepted),
        "dead": sum(one.dead for one in accepted),
        "tasks": [task for one in accepted for task in one.tasks],
    }


def _so_far(accepted: list[Accepted]) -> dict[str, Any]:
    """Of a large push the first part may have been taken in; sent again with its key it is not taken in twice."""
    return {"taken": _counts(accepted)} if accepted else {}


def _portions(lines: Iterator[bytes]) -> Iterator[tuple[bytes, ...]]:
    """A large push goes in by portions, which are the same each time that it is sent."""
    portion: list[bytes] = []
    size = 0
    first = True
    for line in lines:
        portion.append(line)
        size += len(line)
        if len(portion) >= _PORTION_RECORDS or size >= _PORTION_BYTES:
            yield tuple(portion)
            portion, size, first = [], 0, False
    if portion or first:
        yield tuple(portion)


def _wait(expires_in: str | None) -> float | None:
    if expires_in is None:
        return None
    try:
        wait = seconds(expires_in)
    except Misuse as error:
        raise Problem(422, f"expires_in: {error.problem}", action=error.action) from None
    if not 0 < wait <= _LONGEST_WAIT:
        raise Problem(422, f"expires_in: {expires_in!r} is not between 0 and a year", action="Write for instance 2h.")
    return wait


def _key(given: str | None) -> str | None:
    if given is not None and not (0 < len(given) <= _LONGEST_KEY and given.isprintable()):
        action = f"Send 1 to {_LONGEST_KEY} printable characters, for instance a UUID."
        raise Problem(400, "this is no Idempotency-Key", action=action)
    return given

"""Dead letters over HTTP: see them, and put them aside."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from recrawl.operate.replay import replay
from recrawl.operate.scopes import Scope
from recrawl.service.auth import requires
from recrawl.service.desk import TheDesk
from recrawl.service.problems import Problem, documented
from recrawl.service.reading import MOST_ID, Name, Number
from recrawl.store import dead

_REFUSALS = documented(400, 401, 403, 404, 422, 503)
router = APIRouter(tags=["dead letters"], responses=_REFUSALS)
_READ = [Depends(requires(Scope.READ))]
_OPERATE = [Depends(requires(Scope.OPERATE))]
Signature = Annotated[str, Query(max_length=500, pattern=r"^[^\x00]*$")]


class LetterState(BaseModel):
    """`raw` is what came, as far as it is text; what is no UTF-8 in it is shown as U+FFFD."""

    id: int
    source: str
    url: str | None
    stage: str
    signature: str = Field(examples=["clean:price:price_unclear(字)"])
    reason: str
    errors: list[dict[str, Any]]
    raw: str | None
    created_at: datetime
    resolved_at: datetime | None
    resolution: str | None


class GroupState(BaseModel):
    source: str
    signature: str
    stage: str
    count: int
    first_at: datetime
    last_at: datetime
    newest: int
    reason: str
    url: str | None


class Letters(BaseModel):
    groups: list[GroupState] = Field(description="all unresolved letters by kind, the most numerous first")
    letters: list[LetterState] = Field(description="those after `after`, by their ids")


_MOST_RAW = 100_000


def _state(letter: dead.Letter) -> LetterState:
    raw = None if letter.raw is None else letter.raw[:_MOST_RAW].decode("utf-8", "replace")
    names = set(LetterState.model_fields) - {"raw"}
    return LetterState(raw=raw, **{name: getattr(letter, name) for name in names})


@router.get("/v1/dead-letters", dependencies=_READ)
async def get_letters(
    desk: TheDesk,
    source: Name | None = None,
    signature: Signature | None = None,
    after: Annotated[int, Query(ge=0, le=MOST_ID)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Letters:
    """Unresolved dead letters: all kinds, and some letters with what came."""
    groups = await desk.db(dead.groups, source)
    chosen = dead.Selection(source, signature)
    letters = await desk.db(lambda store: list(dead.letters(store, chosen, after=after, most=limit)))
    return Letters(
        groups=[GroupState(**{name: getattr(group, name) for name in GroupState.model_fields}) for group in groups],
        letters=[_state(letter) for letter in letters],
    )


@router.get("/v1/dead-letters/{letter}", dependencies=_READ)
async def get_letter(letter: Number, desk: TheDesk) -> LetterState:
    """One dead letter, resolved or not."""
    found = await desk.db(dead.letter, letter)
    if found is None:
        raise Problem(404, f"there is no dead letter {letter}", action="See /v1/dead-letters.")
    return _state(found)


class Chosen(BaseModel):
    """Which unresolved letters: by id, or all of a source, of a kind, or of both."""

    ids: list[Annotated[int, Field(ge=0, le=MOST_ID)]] = Field(default=[], max_length=1_000)
    source: Annotated[str, Field(max_length=64, pattern=r"^[^\x00]*$")] | None = None
    signature: Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] | None = None

    def selection(self) -> dead.Selection:
        if not self.ids and self.source is None and self.signature is None:
            raise Problem(422, "which dead letters?", action="Name ids, a source or a signature.")
        return dead.Selection(self.source, self.signature, tuple(self.ids))


class Dropped(BaseModel):
    dropped: int


@router.post("/v1/dead-letters/drop", dependencies=_OPERATE)
async def drop_letters(chosen: Chosen, desk: TheDesk) -> Dropped:
    """Put letters aside for good; what came stays readable until it is pruned."""
    return Dropped(dropped=await desk.db(dead.drop, chosen.selection(), desk.now()))


class Renaming(Chosen):
    """`map` tells raw names of fields and the names that the record knows them by, for pushed records."""

    map: dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default={}, max_length=100, examples=[{"salePrice": "price"}]
    )


class Begun(BaseModel):
    pushed: int = Field(description="pushed records that go back into the inbox")
    pages: int = Field(description="pages that are read again from what came, by the next sync")
    busy: int = Field(description="under way already")
    rest: int = Field(description="kept nothing that could be read again")


@router.post("/v1/dead-letters/replay", dependencies=_OPERATE)
async def replay_letters(chosen: Renaming, desk: TheDesk) -> Begun:
    """Begin letters anew, from what came. What is newer by now is not overwritten; asked for twice, it runs once."""
    found = await desk.db(replay, chosen.selection(), renamed=chosen.map, now=desk.now())
    return Begun(pushed=found.pushed, pages=found.pages, busy=found.busy, rest=found.rest)

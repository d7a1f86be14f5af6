"""Whether the service lives, and whether all is well."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from recrawl.service.desk import TheDesk
from recrawl.service.problems import documented
from recrawl.store import migrate

router = APIRouter(tags=["health"])


class Health(BaseModel):
    ok: bool


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health(ok=True)


@router.get("/readyz", responses=documented(503))
async def readyz(desk: TheDesk) -> Health:
    """The database can be used, and has this release's schema."""
    await desk.db(migrate.ready)
    return Health(ok=True)

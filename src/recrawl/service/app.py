"""The HTTP service: an ASGI application over a store and declared sources."""

from __future__ import annotations

from fastapi import FastAPI

from recrawl.service import health, letters, problems, reading, records
from recrawl.service.desk import Desk
from recrawl.version import __version__

_ABOUT = """
Push the records of your own spiders, and follow what changed.

A push is answered once it is kept; cleaning, deduplication and storing follow. What cannot become data is a dead letter
that can be replayed. Errors are problem details (RFC 9457) with an `action`: what to do next.
"""


def create_app(desk: Desk) -> FastAPI:
    """The application. It starts nothing of its own: a worker that stores what is pushed runs beside it."""
    app = FastAPI(title="recrawl", version=__version__, description=_ABOUT, redoc_url=None)
    app.state.desk = desk
    problems.install(app)
    for module in (records, reading, letters, health):
        app.include_router(module.router)
    return app

"""What `recrawl run` shows: a line for each source that is worked on, on a terminal, and what happened as lines."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import structlog
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from recrawl.cli.summary import facts
from recrawl.cli.surface import err, safe
from recrawl.errors import RecrawlError
from recrawl.store import queries
from recrawl.store.database import Store

if TYPE_CHECKING:
    from recrawl.run.engine import Engine, Result
    from recrawl.run.progress import Progress as Counts
    from recrawl.run.schedule import Job, Served

_GLANCE = 0.5
_LINE_AFTER = 60.0
_TOLD = ("new", "changed", "dead", "postponed")


class Board:
    """Told by the scheduler how it goes. Lines go to standard output: sentences, or JSON."""

    def __init__(self, store: Store, *, json: bool) -> None:
        self._store = store
        self._bar: Progress | None = None
        self._rows: dict[str, TaskID] = {}
        self._counts: dict[str, Counts] = {}
        self._json = json
        self._log = structlog.wrap_logger(
            structlog.PrintLogger(sys.stdout),
            processors=[
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
                structlog.processors.JSONRenderer(serializer=_dumped) if json else self._sentence,
            ],
        )

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """For as long as the sources are looked after."""
        console = err()
        if console.is_terminal and not self._json:
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TextColumn("{task.fields[told]}", markup=False),
                TimeElapsedColumn(),
                console=console,
                transient=True,
            )
            self._bar.start()
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            if self._bar is not None:
                self._bar.stop()

    def began(self, served: Served, job: Job, engine: Engine, progress: Counts) -> None:
        self._counts[served.name] = progress
        if self._bar is not None:
            self._rows[served.name] = self._bar.add_task(safe(served.name), total=None, told=job.name)
        self._log.msg("began", source=served.name, job=job.name)

    def ended(self, served: Served, job: Job, result: Result, following: datetime) -> None:
        self._clear(served.name)
        told = facts(served.name, result, result.progress.open_tasks)
        self._log.msg("ended", job=job.name, again=following, **told)

    def failed(self, served: Served, job: Job, error: Exception, again: datetime) -> None:
        self._clear(served.name)
        told = {"error": f"{type(error).__name__}: {error}", "place": "", "action": ""}
        if isinstance(error, RecrawlError):
            told = {"error": error.problem, "place": error.place, "action": error.action}
        self._log.msg("failed", source=served.name, job=job.name, again=again, **told)

    def ending(self) -> None:
        """Somebody asked to end."""
        self._log.msg("ending", sources=sorted(self._counts))

    def _clear(self, name: str) -> None:
        self._counts.pop(name, None)
        row = self._rows.pop(name, None)
        if self._bar is not None and row is not None:
            self._bar.remove_task(row)

    async def _watch(self) -> None:
        """Show how far each source is; where there is no terminal, say so now and then."""
        said = time.monotonic()
        while True:
            await asyncio.sleep(_GLANCE)
            if self._bar is None and time.monotonic() - said < _LINE_AFTER:
                continue
            said = time.monotonic()
            for name, counts in list(self._counts.items()):
                waiting = await asyncio.to_thread(queries.open_tasks, self._store, name)
                if self._bar is None:
                    self._log.msg("under way", source=name, looked_at=counts.looked_at, to_go=waiting)
                elif name in self._rows:
                    self._bar.update(self._rows[name], told=_so_far(counts, waiting))

    def _sentence(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        """An event as a line for people."""
        at = datetime.fromisoformat(event["at"])
        return safe(f"{_time(at)} {_words(event)}")


def _words(event: MutableMapping[str, Any]) -> str:
    match event["event"]:
        case "began":
            return f"{event['source']}: {event['job']} began"
        case "under way":
            return f"{event['source']}: {event['looked_at']:,} looked at, {event['to_go']:,} to go"
        case "ended":
            counts = event["counts"]
            told = [f"{counts[name]:,} {name}" for name in _TOLD if counts[name]]
            told = [f"{counts['looked_at']:,} looked at", *told, f"{counts['requests']:,} requests"]
            troubles = "".join(f"; {trouble['message']}" for trouble in event["troubles"][:1])
            return f"{event['source']}: {event['ending']}: {', '.join(told)}; next {_time(event['again'])}{troubles}"
        case "failed":
            place = f" ({event['place']})" if event["place"] else ""
            then = f" {event['action']}" if event["action"] else ""
            return f"{event['source']}: failed: {event['error']}{place}.{then} Again {_time(event['again'])}"
        case _:
            return "Ending: what is under way is being written. Once more to end at once."


def _so_far(counts: Counts, waiting: int) -> str:
    if counts.waiting:
        return f"{counts.looked_at:,} looked at, waiting {counts.waiting}"
    return f"{counts.looked_at:,} looked at, {waiting:,} to go"


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _dumped(event: object, **_: object) -> str:
    return orjson.dumps(event, default=str).decode()

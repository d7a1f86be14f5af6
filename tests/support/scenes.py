"""A server that plays one scenario: on pass n it gives the answer of step n, however often it is asked."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

from tests.support.scripted import Reply, ScriptedSite

PAGE = "/page"
GOOD = [f"/good/{number}" for number in range(9)]
"""Pages of the same site that are always there, beside which a missing one is known to be missing."""


class Scene(ScriptedSite):
    """Set `step` before each pass; `sent` are the conditional headers of each request for the page since then."""

    def __init__(self, scenario: Mapping[str, Any], now: Callable[[], datetime]) -> None:
        super().__init__()
        self._steps = scenario["steps"]
        self._now = now
        self.step = 0

    def begin(self, step: int) -> None:
        self.step = step
        self.forget()

    @property
    def sent(self) -> list[dict[str, str]]:
        asked = [asked.headers for asked in self.asked if asked.path == PAGE]
        names = ("If-None-Match", "If-Modified-Since")
        return [{name: headers[name] for name in names if name in headers} for headers in asked]

    def _next(self, path: str, headers: Mapping[str, str]) -> Reply:
        reply = super()._next(path, headers)
        if path in GOOD:
            return Reply(f"This is {path}.", headers={"Content-Type": "text/plain"})
        return self._played(self._steps[min(self.step, len(self._steps) - 1)]["respond"]) if path == PAGE else reply

    def _played(self, respond: Mapping[str, Any]) -> Reply:
        body = str(respond.get("body", "")).encode(respond.get("encode", "utf-8"))
        body = gzip.compress(body) if respond.get("gzip") else body
        given = {name: self._timed(value) for name, value in respond.get("headers", {}).items()}
        return Reply(body, respond["status"], {"Content-Type": "text/plain; charset=utf-8", **given})

    def _timed(self, value: str) -> str:
        if not value.startswith("<now"):
            return value
        later = timedelta(seconds=int(value.split("+")[1].split("s")[0])) if "+" in value else timedelta()
        return format_datetime(self._now() + later, usegmt=True)

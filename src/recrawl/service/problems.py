"""Errors as problem details (RFC 9457): what went wrong, where, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from recrawl.errors import Misuse, RecrawlError, StoreUnavailable, Transient

MEDIA_TYPE = "application/problem+json"
_log = structlog.get_logger("recrawl.service")


class Problem(Exception):
    """An answer that says no. `more` are further members of the problem; `headers` go with it."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        action: str = "",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        self.status, self.detail, self.action = status, detail, action
        self.headers = dict(headers or {})
        self.more = more
        super().__init__(detail)


class ProblemDetails(BaseModel):
    """RFC 9457. `action` says what the reader can do."""

    type: str = "about:blank"
    title: str = Field(examples=["Too Many Requests"])
    status: int = Field(examples=[429])
    detail: str
    action: str = ""


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These statuses for the OpenAPI document."""
    content = {MEDIA_TYPE: {"schema": ProblemDetails.model_json_schema()}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def install(app: FastAPI) -> None:
    """Answer every error as a problem, never with a traceback."""

    @app.exception_handler(Problem)
    async def _problem(_: Request, error: Problem) -> JSONResponse:
        return _answer(error.status, error.detail, error.action, error.headers, error.more)

    @app.exception_handler(RecrawlError)
    async def _told(_: Request, error: RecrawlError) -> JSONResponse:
        if isinstance(error, StoreUnavailable):
            # What the database says of itself is for the operator, not for a client.
            _log.error("store unavailable", problem=error.problem, place=error.place, action=error.action)
            return _answer(503, "the database cannot be used now", "Send it again.", {"Retry-After": "5"})
        status = 400 if isinstance(error, Misuse) else 503 if isinstance(error, Transient) else 422
        headers = {"Retry-After": "5"} if status == 503 else {}
        return _answer(status, error.problem, error.action, headers)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        return _answer(422, f"{place}: {first['msg']}", "Correct the request; /docs describes it.")

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> JSONResponse:
        return _answer(error.status_code, str(error.detail), "", dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def _fault(request: Request, error: Exception) -> JSONResponse:
        _log.error("fault", path=request.url.path, error=repr(error), exc_info=error)
        return _answer(500, "recrawl itself failed; its log says how", "Report it with that part of the log.")


def _answer(
    status: int,
    detail: str,
    action: str = "",
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> JSONResponse:
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": _plain(detail)}
    if action:
        body["action"] = _plain(action)
    return JSONResponse({**body, **(more or {})}, status, dict(headers or {}), MEDIA_TYPE)


def _plain(text: str) -> str:
    """Lone surrogates, which may be in what a client sent, are no UTF-8."""
    return text.encode("utf-8", "replace").decode()

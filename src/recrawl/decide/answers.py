"""What an HTTP answer means for a page, before its body is read.

One closed mapping from what was answered to an outcome; what is left over has content worth reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from recrawl.decide.phrases import Trouble
from recrawl.decide.retry import retry_after
from recrawl.model.fetched import Answer, Failure, FailureKind
from recrawl.model.outcome import Broken, Gone, Look, Outcome, Quarantined, Refused, Rejected, Throttled

_LOGIN = re.compile(r"/(?:log-?in|sign-?in|auth|passport|account/login|sso)(?:[/.?]|$)", re.IGNORECASE)
_PERMANENT = {FailureKind.FORBIDDEN_ADDRESS, FailureKind.BAD_REQUEST}


@dataclass(frozen=True, slots=True)
class AskAgain:
    """One more request, without validators: the answer made no sense with them."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotModified:
    """304 to our own validators, and we hold the body that they stand for."""


@dataclass(frozen=True, slots=True)
class Redirected:
    """301 or 308 to an absolute http(s) URL."""

    target: str


@dataclass(frozen=True, slots=True)
class Content:
    """200 with a body that may be the page."""


Meaning = AskAgain | NotModified | Redirected | Content | Outcome


def look_of(answer: Answer | Failure, url: str, requests: int) -> Look:
    """The look that an answer was."""
    if isinstance(answer, Failure):
        return Look(at=answer.fetched_at, url=url, elapsed=answer.elapsed, requests=requests)
    return Look(
        at=answer.fetched_at,
        url=url,
        final_url=answer.final_url,
        status=answer.status,
        validators=answer.validators,
        content_type=answer.content_type,
        elapsed=answer.elapsed,
        requests=requests,
        conditional=answer.conditional,
    )


def meaning(answer: Answer | Failure, look: Look, *, has_body: bool, now: datetime, max_wait: float) -> Meaning:
    """Map an answer to what it means. `has_body`: the store holds the body that the validators sent stand for."""
    if isinstance(answer, Failure):
        return _failure(answer, look)
    status = answer.status
    if status == 200:
        return _ok(answer, look)
    if status == 304:
        if answer.conditional and has_body:
            return NotModified()
        return AskAgain("304 to a request without validators, or for a body that is not stored")
    if status in (412, 416):
        return AskAgain(f"{status} to a conditional request")
    if status in (301, 308):
        return _moved(answer, look)
    if status in (404, 410):
        return Gone(look=look)
    if status in (401, 403):
        return Refused(look=look, reason=f"the server answers {status} for {look.url}", by_robots=False)
    if status == 429 or (status == 503 and answer.header("retry-after") is not None):
        return Throttled(look=look, until=retry_after(answer.header("retry-after"), now, max_wait))
    if 400 <= status < 500 and status not in (408, 425):
        return Rejected(look=look, kind=f"http_{status}", message=f"the server answers {status} for {look.url}")
    return Broken(look=look, kind=f"http_{status}", message=f"the server answers {status} for {look.url}")


def _failure(failure: Failure, look: Look) -> Outcome:
    if failure.kind is FailureKind.ROBOTS:
        return Refused(look=look, reason=failure.message, by_robots=True)
    if failure.kind in _PERMANENT:
        return Rejected(look=look, kind=failure.kind, message=failure.message)
    return Broken(look=look, kind=failure.kind, message=failure.message)


def _ok(answer: Answer, look: Look) -> Meaning:
    if answer.hops:
        asked, came = urlsplit(answer.url), urlsplit(answer.final_url)
        if _LOGIN.search(came.path) and not _LOGIN.search(asked.path):
            return Quarantined(
                look=look, reason=f"redirected to a login page, {answer.final_url}", name=Trouble.LOGIN, raw=answer.body
            )
        if came.path in ("", "/") and asked.path not in ("", "/") and not came.query:
            return Quarantined(
                look=look, reason=f"redirected to the home page, {answer.final_url}", name="home page", raw=answer.body
            )
    if not answer.body.strip():
        return Quarantined(look=look, reason="the page is empty", name="empty page", raw=answer.body)
    return Content()


def _moved(answer: Answer, look: Look) -> Meaning:
    target = answer.location
    if target is None:
        return Broken(look=look, kind="bad_redirect", message=f"{answer.status} without a usable Location: {look.url}")
    asked, came = urlsplit(look.url), urlsplit(target)
    if came.path in ("", "/") and not came.query and asked.path not in ("", "/"):
        return Quarantined(look=look, reason=f"moved to the home page, {target}", name="home page")
    if _LOGIN.search(came.path) and not _LOGIN.search(asked.path):
        return Quarantined(look=look, reason=f"moved to a login page, {target}", name=Trouble.LOGIN)
    return Redirected(target)

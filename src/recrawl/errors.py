"""Every error that reaches a user names the value, the place and the next action.

Two questions decide how an error is treated, so they are types: may trying again help (`Transient`) or not
(`Permanent`)?  And is it the user's own input that is wrong (`Misuse`)?
"""

from __future__ import annotations


class RecrawlError(Exception):
    """What went wrong, where, and what to do next.

    `problem` is one sentence that names the offending value; `place` says where it stands (a file and field, a URL, a
    table); `action` says what the reader can do about it. None of them ever holds a secret.
    """

    def __init__(self, problem: str, *, place: str = "", action: str = "") -> None:
        self.problem = problem
        self.place = place
        self.action = action
        super().__init__(problem)

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        then = f"\n  {self.action}" if self.action else ""
        return f"{self.problem}{where}{then}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling; parser processes send errors home.
        return _rebuild, (type(self), self.problem, self.place, self.action)


def _rebuild(kind: type[RecrawlError], problem: str, place: str, action: str) -> RecrawlError:
    return kind(problem, place=place, action=action)


class Transient(RecrawlError):
    """May go away by itself: the same request later can succeed."""


class Permanent(RecrawlError):
    """Will not go away by itself: the same request gives the same answer."""


class Misuse(RecrawlError):
    """The user's declaration, command line or settings are wrong (exit code 2)."""


class StoreUnavailable(Transient):
    """The database cannot be used now: full disk, read-only file, refused connection, other schema."""

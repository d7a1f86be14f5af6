"""The two state machines, each one table.

An event that a state does not name is illegal: it raises, and nothing changes.
"""

from __future__ import annotations

from enum import StrEnum

from recrawl.errors import Permanent
from recrawl.model.work import PageState, TaskState


class PageEvent(StrEnum):
    READ = "read"  # fetched well: changed or not
    FAIL = "fail"  # a look that ended without data
    REFUSE = "refuse"  # robots.txt forbids it
    MOVE = "move"  # 301, 308
    SUSPECT = "suspect"  # close: absent or gone often enough
    ACQUIT = "acquit"  # listed again without a Gone
    DELETE = "delete"  # close: confirmed


class TaskEvent(StrEnum):
    CLAIM = "claim"
    FINISH = "finish"
    POSTPONE = "postpone"  # a transient failure: wait for due_at
    KILL = "kill"  # a permanent failure, or too many attempts
    RELEASE = "release"  # handed back, or its lease ran out
    RIPEN = "ripen"  # due_at has come
    RETRY = "retry"  # an operator asks again
    EXPIRE = "expire"


_P, _E = PageState, PageEvent
PAGE: dict[tuple[PageState, PageEvent], PageState] = {
    (_P.NEW, _E.READ): _P.ACTIVE,
    (_P.NEW, _E.FAIL): _P.FAILING,
    (_P.NEW, _E.REFUSE): _P.REFUSED,
    (_P.NEW, _E.MOVE): _P.MOVED,
    (_P.NEW, _E.SUSPECT): _P.SUSPECTED,
    (_P.ACTIVE, _E.READ): _P.ACTIVE,
    (_P.ACTIVE, _E.FAIL): _P.FAILING,
    (_P.ACTIVE, _E.REFUSE): _P.REFUSED,
    (_P.ACTIVE, _E.MOVE): _P.MOVED,
    (_P.ACTIVE, _E.SUSPECT): _P.SUSPECTED,
    (_P.FAILING, _E.READ): _P.ACTIVE,
    (_P.FAILING, _E.FAIL): _P.FAILING,
    (_P.FAILING, _E.REFUSE): _P.REFUSED,
    (_P.FAILING, _E.MOVE): _P.MOVED,
    (_P.FAILING, _E.SUSPECT): _P.SUSPECTED,
    (_P.SUSPECTED, _E.READ): _P.ACTIVE,
    (_P.SUSPECTED, _E.FAIL): _P.SUSPECTED,
    (_P.SUSPECTED, _E.REFUSE): _P.SUSPECTED,
    (_P.SUSPECTED, _E.MOVE): _P.MOVED,
    (_P.SUSPECTED, _E.ACQUIT): _P.ACTIVE,
    (_P.SUSPECTED, _E.DELETE): _P.DELETED,
    (_P.DELETED, _E.READ): _P.ACTIVE,
    (_P.DELETED, _E.FAIL): _P.DELETED,
    (_P.DELETED, _E.REFUSE): _P.DELETED,
    (_P.DELETED, _E.MOVE): _P.MOVED,
    (_P.MOVED, _E.READ): _P.ACTIVE,
    (_P.MOVED, _E.FAIL): _P.MOVED,
    (_P.MOVED, _E.REFUSE): _P.REFUSED,
    (_P.MOVED, _E.MOVE): _P.MOVED,
    (_P.REFUSED, _E.READ): _P.ACTIVE,
    (_P.REFUSED, _E.FAIL): _P.FAILING,
    (_P.REFUSED, _E.REFUSE): _P.REFUSED,
    (_P.REFUSED, _E.MOVE): _P.MOVED,
    (_P.REFUSED, _E.SUSPECT): _P.SUSPECTED,
}

_T, _V = TaskState, TaskEvent
TASK: dict[tuple[TaskState, TaskEvent], TaskState] = {
    (_T.PENDING, _V.CLAIM): _T.RUNNING,
    (_T.PENDING, _V.EXPIRE): _T.EXPIRED,
    (_T.RUNNING, _V.FINISH): _T.DONE,
    (_T.RUNNING, _V.POSTPONE): _T.FAILED,
    (_T.RUNNING, _V.KILL): _T.DEAD,
    (_T.RUNNING, _V.RELEASE): _T.PENDING,
    (_T.FAILED, _V.RIPEN): _T.PENDING,
    (_T.FAILED, _V.RETRY): _T.PENDING,
    (_T.FAILED, _V.EXPIRE): _T.EXPIRED,
    (_T.DEAD, _V.RETRY): _T.PENDING,
}


class IllegalEvent(Permanent):
    """The state machine knows no such step: a fault in recrawl, never in the data."""


def page_after(state: PageState, event: PageEvent) -> PageState:
    """The page's next state. Raises IllegalEvent."""
    try:
        return PAGE[state, event]
    except KeyError:
        raise IllegalEvent(f"a page that is {state} cannot {event}", place="decide/lifecycle.py") from None


def task_after(state: TaskState, event: TaskEvent) -> TaskState:
    """The task's next state. Raises IllegalEvent."""
    try:
        return TASK[state, event]
    except KeyError:
        raise IllegalEvent(f"a task that is {state} cannot {event}", place="decide/lifecycle.py") from None

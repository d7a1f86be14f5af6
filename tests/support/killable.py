"""Processes that tests kill. They are forked from one that has imported all they need: a start takes milliseconds,
where a new interpreter takes longer than what it is started for."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(["tests.support.plain_source", "tests.support.push_worker"])


class Killable:
    """`work(*args)` in a process of its own, from now on."""

    def __init__(self, work: Callable[..., str], *args: str) -> None:
        self._told, theirs = _FORKED.Pipe(duplex=False)
        self._process = _FORKED.Process(target=_perform, args=(theirs, work, args))
        self._process.start()
        theirs.close()

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        """The exit code: 0, or -9 where it was killed."""
        self._process.join(100)
        code = self._process.exitcode
        assert code is not None, "it does not come to an end"
        assert code in (0, -9), self._told.recv()
        return code

    def answer(self) -> str:
        """What the work came to."""
        assert self.wait() == 0, "it was killed"
        answer: str = self._told.recv()
        return answer


def _perform(told: Connection, work: Callable[..., str], args: tuple[str, ...]) -> None:
    try:
        told.send(work(*args))
    except BaseException:
        told.send(traceback.format_exc())
        raise

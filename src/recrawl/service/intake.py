"""The intake: pushes that come at the same time share one commit, which is what taking them in costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from recrawl.model.push import Accepted, Push
from recrawl.store.accept import accept_together
from recrawl.store.database import Store

_MOST_BYTES = 4_000_000
_MOST_PUSHES = 64


class Intake:
    """Takes pushes into the store, one commit after the other."""

    def __init__(self, store: Store, now: Callable[[], datetime], most_waiting: int) -> None:
        self._store, self._now, self._most_waiting = store, now, most_waiting
        self._writer = ThreadPoolExecutor(1, "recrawl-intake")
        self._waiting: list[tuple[Push, asyncio.Future[Accepted]]] = []
        self._busy: asyncio.Task[None] | None = None

    async def accept(self, push: Push) -> Accepted:
        """Take a push in; it is kept once this returns. Raises what `store.accept.accept` raises."""
        answer: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._waiting.append((push, answer))
        if self._busy is None or self._busy.done():
            self._busy = asyncio.create_task(self._take_all())
        return await answer

    async def _take_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            taken = self._next()
            pushes = [push for push, _ in taken]
            try:
                answers = await loop.run_in_executor(self._writer, self._accept, pushes)
            except Exception as error:
                for _, answer in taken:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_, answer), found in zip(taken, answers, strict=True):
                if answer.done():  # its client has gone
                    continue
                if isinstance(found, Exception):
                    answer.set_exception(found)
                else:
                    answer.set_result(found)

    def _next(self) -> list[tuple[Push, asyncio.Future[Accepted]]]:
        size, count = 0, 0
        for push, _ in self._waiting[:_MOST_PUSHES]:
            size += sum(map(len, push.lines))
            if count and size > _MOST_BYTES:
                break
            count += 1
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def _accept(self, pushes: list[Push]) -> list[Accepted | Exception]:
        return list(accept_together(self._store, pushes, now=self._now(), most_waiting=self._most_waiting))

    def close(self) -> None:
        self._writer.shutdown()

"""Dirty records in great numbers, and clients that push them through whatever happens to the service."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from random import Random

_BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
_INVALID = [b'{"title": "no sku"}', b'{"sku": ', b"[1, 2]", b'{"sku": "x", "title": "a", "price": null}']
BATCH = 100
CLIENTS = 4


@dataclass
class Flood:
    """Lines as they are pushed, and what must stand in the table in the end: the newest title of each sku."""

    lines: list[bytes] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    renamed: set[str] = field(default_factory=set)  # skus that only records with the new name tell of
    invalid: int = 0


def flood(count: int, chance: Random) -> Flood:
    """Of 100 records 30 are the same as an earlier one, 5 are not valid, 3 are late and older; half way a field gets
    another name. A few hold NUL bytes or 3 MB of text."""
    made = Flood()
    newest: dict[str, datetime] = {}
    valid: list[tuple[bytes, str]] = []
    for number in range(count):
        renamed = number >= count // 2
        kind = chance.random()
        if kind < 0.30 and valid:
            made.lines.append(chance.choice(valid)[0])
            continue
        if kind < 0.35:
            made.invalid += 1
            made.lines.append(chance.choice(_INVALID))
            continue
        late = kind < 0.38 and bool(valid)
        sku = chance.choice(valid)[1] if late else f"sku-{number}"
        at = newest[sku] - timedelta(days=1) if late else _BEGIN + timedelta(seconds=number)
        title = f"title {number}" + ("\x00" if number % 997 == 5 else "")
        if number % (count // 3) == 7:
            made.invalid += 1  # longer than a text may be
            made.lines.append(json.dumps({"sku": sku, "title": "huge", "text": "x" * 3_000_000}).encode())
            continue
        record = {"sku": sku, "title": title, "changed": at.isoformat(), "text": "short"}
        record["salePrice" if renamed else "price"] = f"{number % 90 + 1}.50"
        line = json.dumps(record).encode()
        made.lines.append(line)
        valid.append((line, sku))
        if not late:
            newest[sku] = at
            made.titles[sku] = title.replace("\x00", "\ufffd")
            if renamed:
                made.renamed.add(sku)
    return made


class Clients:
    """Threads that push batches, each under its own key, until it is answered with 202."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        batches = [lines[start : start + BATCH] for start in range(0, len(lines), BATCH)]
        self._left = iter(list(enumerate(batches)))
        self._taking = threading.Lock()
        self._said = threading.Condition()
        self._address = ""
        self.answers: list[dict[str, int]] = []
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._work) for _ in range(CLIENTS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def serve(self, address: str) -> None:
        """The service answers here from now on; an empty address: nowhere."""
        with self._said:
            self._address = address
            self._said.notify_all()

    def wait(self, answered: int) -> None:
        """Until so many batches were taken in, or all of them."""
        with self._said:
            over = self._said.wait_for(
                lambda: len(self.answers) >= answered or bool(self.errors) or not self._alive(), timeout=120
            )
            assert over, f"{len(self.answers)} of {answered} batches were answered"

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _take(self) -> tuple[int, Sequence[bytes]] | None:
        with self._taking:
            return next(self._left, None)

    def _work(self) -> None:
        try:
            while (batch := self._take()) is not None:
                answer = self._push(*batch)
                with self._said:
                    self.answers.append(answer)
                    self._said.notify_all()
        except BaseException as error:
            self.errors.append(error)
            raise
        finally:
            with self._said:
                self._said.notify_all()

    def _push(self, number: int, lines: Sequence[bytes]) -> dict[str, int]:
        for address in self._addresses():
            request = urllib.request.Request(
                f"{address}/v1/sources/flood/records",
                data=b"\n".join(lines),
                headers={"Content-Type": "application/x-ndjson", "Idempotency-Key": f"batch-{number}"},
            )
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    answer: dict[str, int] = json.load(response)
                    return answer
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in (429, 503):
                        raise AssertionError(error.read().decode()) from error
            except (OSError, ValueError, HTTPException):
                self._lost(address)
        raise AssertionError("unreachable")

    def _addresses(self) -> Iterator[str]:
        while True:
            with self._said:
                self._said.wait_for(lambda: self._address)
                address = self._address
            yield address

    def _lost(self, address: str) -> None:
        """This one was killed: wait for the next."""
        with self._said:
            if self._address == address:
                self._address = ""

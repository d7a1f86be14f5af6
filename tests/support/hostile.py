"""An HTTP server that misbehaves byte by byte, on a loopback port.

    async with Hostile() as server:
        server.on("/cut", sends(head(200, "Content-Length: 100"), b"only this"), closes)
        ... fetch server.url + "/cut"; what arrived stands in server.got

A path has a list of acts, done one after another for each request of it. The connection stays open for the next
request unless an act closes it. A path nobody set up answers 404.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Got:
    """One request, as its bytes came."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: str) -> bytes | None:
        """The bytes of a header, or None."""
        wanted = name.lower().encode()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


Act = Callable[[Got, asyncio.StreamWriter], Awaitable[None]]


def head(status: int | str, *lines: str | bytes) -> bytes:
    """A status line and headers."""
    coded = [line if isinstance(line, bytes) else line.encode("latin-1") for line in lines]
    return b"\r\n".join([f"HTTP/1.1 {status} Whatever".encode(), *coded, b"", b""])


def answer(status: int | str, *lines: str | bytes, body: bytes = b"") -> bytes:
    """A whole and honest answer."""
    return head(status, *lines, f"Content-Length: {len(body)}") + body


def sends(*pieces: bytes) -> Act:
    """Send these bytes, each piece on its own."""

    async def act(got: Got, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return act


def drips(piece: bytes, every: float = 0.01) -> Act:
    """Send the same bytes again and again, for ever."""

    async def act(got: Got, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(every)

    return act


async def closes(got: Got, writer: asyncio.StreamWriter) -> None:
    """Close the connection in good order."""
    writer.close()


async def resets(got: Got, writer: asyncio.StreamWriter) -> None:
    """Break the connection off."""
    writer.transport.abort()


async def hangs(got: Got, writer: asyncio.StreamWriter) -> None:
    """Say nothing more, and keep the connection open."""
    await asyncio.Event().wait()


@dataclass
class Hostile:
    """The server. `got` lists what arrived, `connections` counts; `tls` makes it speak https."""

    tls: ssl.SSLContext | None = None
    got: list[Got] = field(default_factory=list)
    connections: int = 0
    _acts: dict[bytes, tuple[Act, ...]] = field(default_factory=dict)
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    def on(self, path: str, *acts: Act) -> str:
        """Say what happens at a path (with its query); the URL of it."""
        self._acts[path.encode()] = acts
        return self.url + path

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connections += 1
        try:
            while not writer.is_closing():
                got = await _read(reader)
                self.got.append(got)
                for act in self._acts.get(got.target, (sends(answer(404)),)):
                    await act(got, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            self._open.discard(task)
            writer.transport.abort() if task.cancelling() else writer.close()


async def _read(reader: asyncio.StreamReader) -> Got:
    lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    method, target, _ = lines[0].split(b" ")
    headers = [(name, value.strip(b" ")) for name, _, value in (line.partition(b":") for line in lines[1:-2])]
    length = next((int(value) for name, value in headers if name.lower() == b"content-length"), 0)
    return Got(method.decode(), target, headers, await reader.readexactly(length))

"""`recrawl serve`: the service on a port, and the worker that stores what is pushed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address

import uvicorn

from recrawl.declare import Source
from recrawl.errors import Misuse, Permanent
from recrawl.run.wire import the_clock
from recrawl.service.app import create_app
from recrawl.service.desk import Desk
from recrawl.service.intake import Intake
from recrawl.store import tokens
from recrawl.store.accept import MOST_WAITING
from recrawl.store.database import Store

DEFAULT_PORT = 8470

Worker = Callable[[asyncio.Event], Coroutine[None, None, None]]
"""Stores what is pushed until the event is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the service listens. `port` 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT

    @property
    def is_loopback(self) -> bool:
        with suppress(ValueError):
            return ip_address(self.host).is_loopback
        return self.host == "localhost"


async def serve(
    store: Store,
    sources: Mapping[str, Source],
    address: Address,
    *,
    worker: Worker | None = None,
    most_waiting: int = MOST_WAITING,
    ready: Callable[[str], None] = lambda _url: None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, or until `stop` is set; `ready` is told the URL once requests are answered.

    Raises Misuse for an address that others can reach while there is no token, and Permanent for one that is taken.
    """
    clock = the_clock()
    guarded = tokens.any_valid(store, clock.now())
    if not guarded and not address.is_loopback:
        action = "Make a token first: recrawl token create NAME --scope push --scope read. Or listen on 127.0.0.1."
        raise Misuse(f"anyone who reaches {address.host} could push", place="--host", action=action)
    intake = Intake(store, clock.now, most_waiting)
    desk = Desk(store, sources, intake, clock.now, open=not guarded)
    listening = _listen(address)
    stop = stop or asyncio.Event()
    server = _Server(_config(create_app(desk)), lambda: ready(_url(listening)))
    jobs = [asyncio.create_task(server.stop_on(stop))]
    if worker is not None:
        # A worker that ends by itself has failed: the service must not take in what nobody stores.
        working = asyncio.create_task(worker(stop))
        working.add_done_callback(lambda _: stop.set())
        jobs.append(working)
    try:
        await server.serve(sockets=[listening])
    finally:
        stop.set()
        intake.close()
        await asyncio.gather(*jobs)


def _config(app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # any ASGI application
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=20,
    )


class _Server(uvicorn.Server):
    """uvicorn, with a word when it listens and a way to stop it."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def stop_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.should_exit = True


def _listen(address: Address) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
    except OSError as error:
        action = "Choose another with --host and --port, or stop what listens there."
        problem = f"the service cannot listen on {address.host}:{address.port}: {error.strerror}"
        raise Permanent(problem, place="--host, --port", action=action) from None
    return listening


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def by_name(sources: Sequence[Source]) -> dict[str, Source]:
    return {source.name: source for source in sources}

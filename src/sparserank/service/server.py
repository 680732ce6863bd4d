"""The server process: listening sockets, one worker in this process or several others, and a clean shutdown."""

from __future__ import annotations

import asyncio
import logging.config
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from ..errors import ConfigError, SparseRankError
from ..versions import VersionRegistry
from .config import ServiceConfig
from .learning.gate import HeldOutJudgments
from .logs import logging_config
from .metrics import shared_folder
from .protocol import BoundedHttpProtocol
from .reloader import ModelReloader
from .state import Service
from .store import FeedbackStore
from .workers import Workers

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger(__name__)

BACKLOG = 2048
GRACEFUL_SHUTDOWN_S = 10
LAST_REQUESTS_S = 0.5
"""Time between the end of listening and the end of idle connections, so that a request on its way is answered."""


def listen(host: str, port: int, workers: int = 1) -> list[socket.socket]:
    """Return one listening socket per worker, all at one address; connections wait until a worker is ready."""
    exclusive = bind(host, port, shared=False)  # fails if another program listens there; sharing would not
    port = exclusive.getsockname()[1]
    if workers == 1:
        sockets = [exclusive]
    else:
        exclusive.close()
        sockets = [bind(host, port, shared=True) for _ in range(workers)]
    for listening in sockets:
        listening.listen(BACKLOG)
    return sockets


def bind(host: str, port: int, shared: bool) -> socket.socket:
    """Bind a socket that does not listen yet; `shared` lets other sockets use the same address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"{host}: {error.strerror}; choose another address with --host") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise ConfigError(f"{host}:{port}: {error.strerror}; choose another with --host and --port") from None
    return bound


def url_of(listening: socket.socket) -> str:
    """Return the URL of a socket for a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def prepare(config: ServiceConfig, workers: int = 1) -> FastAPI | ServiceConfig:
    """Check the model, the database and the held-out judgments; return what `run` takes."""
    logging.config.dictConfig(logging_config(config.log_format))
    if workers == 1:
        from .app import create_app

        app = create_app(config)
        services: dict[str, Service] = app.state.services
        try:
            for service in services.values():
                _check_judgments(service.config, service.reloader)
        except SparseRankError:
            for service in services.values():
                service.store.close()
            raise
        return app
    for one in config.by_collection.values():
        _check_judgments(one, ModelReloader(VersionRegistry.open(one.model), one.index))
        FeedbackStore(one.database).close()
    return config


def check(config: ServiceConfig) -> dict[str, tuple[int, int]]:
    """Check what `prepare` checks; return the version and the number of documents of each collection."""
    app = prepare(config, workers=1)
    assert not isinstance(app, ServiceConfig)
    services: dict[str, Service] = app.state.services
    found = {}
    for name, service in services.items():
        model = service.reloader.model()
        found[name] = model.version.number, len(model.ranker.index_)
        service.store.close()
    return found


def _check_judgments(config: ServiceConfig, reloader: ModelReloader) -> None:
    """Raise DataError for judgments of other documents now, not in a learning round an hour later."""
    if config.learn and config.held_out:
        judgments = HeldOutJudgments.load(config.held_out, config.held_out_split)
        judgments.require_documents(reloader.model().ranker)


def run(service: FastAPI | ServiceConfig, sockets: Sequence[socket.socket]) -> None:
    """Serve until SIGTERM or Ctrl-C; requests in progress are answered first."""
    if isinstance(service, ServiceConfig):
        workers = Workers(service, sockets)
        reserved = bind(service.host, sockets[0].getsockname()[1], shared=True)  # keeps the port if all workers die
        with reserved, shared_folder(), _on_signal(workers.stop), _register_on_hangup(service):
            workers.run()
    else:
        config = service.state.config
        with (
            _on_signal(lambda: None),
            _register_on_hangup(config),
        ):  # uvicorn handles the signal, and raises it again when it has stopped
            run_worker(service, sockets[0])


def run_worker(app: FastAPI, listening: socket.socket) -> None:
    """Serve in this process until a signal."""
    logging.config.dictConfig(logging_config(app.state.config.log_format))
    # the thread that stores feedback works in many short steps; it should not wait 5 ms before each of them
    sys.setswitchinterval(0.0005)
    DrainingServer(app).run(sockets=[listening])


class DrainingServer(uvicorn.Server):
    """A server that on SIGTERM first says that it is not ready, answers for a while, and then stops.

    Meanwhile load balancers find another server, and clients are told to close their connections. A second signal stops
    it at once.
    """

    def __init__(self, app: FastAPI) -> None:
        super().__init__(uvicorn_config(app))
        self._services: list[Service] = list(app.state.services.values())
        self._stop_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to drain, or stop."""
        drain = self._services[0].config.drain
        if sig == signal.SIGTERM and drain and self._stop_at is None and not self.should_exit:
            for service in self._services:
                service.is_draining = True
            self._stop_at = time.monotonic() + drain
            self._captured_signals.append(sig)
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Stop when the time is over."""
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer also the clients that have connected before the end of listening; then close all connections."""
        if self._stop_at is not None:
            waiting = [connection for listening in sockets or () for connection in _accept_all(listening)]
            for server in self.servers:
                server.close()
            for listening in sockets or ():
                listening.close()
            for connection in waiting:
                await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
            await asyncio.sleep(LAST_REQUESTS_S)
        await super().shutdown(sockets)

    def _protocol(self) -> BoundedHttpProtocol:
        return BoundedHttpProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state,
            _loop=asyncio.get_running_loop(),
        )  # fmt: skip


def _accept_all(listening: socket.socket) -> Iterator[socket.socket]:
    """Yield the connections that nobody has accepted yet; closing the socket would reset them."""
    listening.setblocking(False)
    with suppress(OSError):  # there is no other
        while True:
            yield listening.accept()[0]


def uvicorn_config(app: FastAPI) -> uvicorn.Config:
    """Return the uvicorn options: no request is logged, and no header can replace the address of a client."""
    return uvicorn.Config(
        app, http=BoundedHttpProtocol, ws="none", lifespan="on", log_config=None, access_log=False,
        proxy_headers=False, server_header=False, timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S, backlog=BACKLOG,
    )  # fmt: skip


@contextmanager
def _on_signal(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGTERM and Ctrl-C."""
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _register_on_hangup(config: ServiceConfig) -> Iterator[None]:
    """On SIGHUP, register the model file as the next version if it was trained again; the workers load it.

    A service in a terminal ends with it, as other programs do.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        yield
        return

    def register() -> None:
        for name, one in config.by_collection.items():
            where = f"{name}: " if name else ""
            try:
                version = VersionRegistry.open(one.model).current()
                log.info("SIGHUP: %sversion %d is current", where, version.number)
            except (SparseRankError, OSError) as error:
                log.error("SIGHUP: %sthe served version stays: %s", where, error)

    before = signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=register, name="register").start())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)

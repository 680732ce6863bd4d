"""The service as a process: sockets that listen, one worker here or several elsewhere, and a quiet end."""

from __future__ import annotations

import logging.config
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from ..errors import ConfigError, SparseRankError
from ..versions import VersionRegistry
from .feedback import FeedbackStore
from .learning.gate import Judgments
from .protocol import LOGGING, Bounded
from .served import Served
from .settings import Settings
from .worker_metrics import shared_figures
from .workers import Workers

if TYPE_CHECKING:
    from fastapi import FastAPI

BACKLOG = 2048


def listen(host: str, port: int, workers: int = 1) -> list[socket.socket]:
    """A socket for each worker, all at one address; connections wait in them until a worker is there."""
    alone = bound(host, port, shared=False)  # where somebody else listens there, this fails and sharing would not
    port = alone.getsockname()[1]
    if workers == 1:
        sockets = [alone]
    else:
        alone.close()
        sockets = [bound(host, port, shared=True) for _ in range(workers)]
    for one in sockets:
        one.listen(BACKLOG)
    return sockets


def bound(host: str, port: int, shared: bool) -> socket.socket:
    """A socket at this address, which others may share; nobody is let in before it listens."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"{host}: {error.strerror}; choose another with --host") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        raise ConfigError(f"{host}:{port}: {error.strerror}; choose another with --host and --port") from None
    return made


def address_of(listening: socket.socket) -> str:
    """The address to open in a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def ready(settings: Settings, workers: int = 1) -> FastAPI | Settings:
    """Refuse a model, a database or held-out judgments that cannot be used; else, what `run` runs."""
    logging.config.dictConfig(LOGGING)
    checked = settings.learn and settings.held_out
    judgments = Judgments.of(checked, settings.held_out_split) if checked else None
    if workers == 1:
        from .app import create_app

        app = create_app(settings)
        try:
            _check(judgments, app.state.service.served)
        except SparseRankError:
            app.state.service.store.close()
            raise
        return app
    _check(judgments, Served(VersionRegistry.open(settings.model), settings.index))
    FeedbackStore(settings.database).close()
    return settings


def _check(judgments: Judgments | None, served: Served) -> None:
    """Held-out judgments of other documents are refused at the start, not in a round of learning an hour later."""
    if judgments is not None:
        judgments.among(served.now().ranker)


def run(service: FastAPI | Settings, sockets: Sequence[socket.socket]) -> None:
    """Answer until this process is told to stop; requests under way are answered first."""
    if isinstance(service, Settings):
        workers = Workers(service, sockets)
        kept = bound(service.host, sockets[0].getsockname()[1], shared=True)  # nobody else's, should all workers die
        with kept, shared_figures(), _told_to_stop(workers.stop):
            workers.run()
    else:
        with _told_to_stop(lambda: None):  # uvicorn hears the signal, and sends it once more when it has stopped
            answer(service, sockets[0])


def answer(app: FastAPI, listening: socket.socket) -> None:
    """Answer in this process, until it is told to stop."""
    logging.config.dictConfig(LOGGING)
    # the thread that stores feedback works in many short steps; it shall not wait 5 ms before each
    sys.setswitchinterval(0.0005)
    uvicorn.Server(config(app)).run(sockets=[listening])


def config(app: FastAPI) -> uvicorn.Config:
    """How uvicorn is used: nothing of a request is logged, and who asks is whoever really connected."""
    return uvicorn.Config(
        app, http=Bounded, ws="none", lifespan="on", log_config=None, access_log=False, proxy_headers=False,
        server_header=False, timeout_graceful_shutdown=10, backlog=BACKLOG,
    )  # fmt: skip


@contextmanager
def _told_to_stop(stop: Callable[[], None]) -> Iterator[None]:
    """To be told to stop is no fault: SIGTERM and Ctrl-C call `stop` and nothing else."""
    before = {sign: signal.signal(sign, lambda *_: stop()) for sign in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)

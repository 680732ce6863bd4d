"""The processes of the service: one that listens, and workers that answer until it ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.supervisors import Multiprocess

from ..engine.versions import Versions
from ..errors import ConfigError
from .feedback import FeedbackStore
from .protocol import LOGGING, Bounded
from .served import Served
from .settings import ENVIRONMENT, Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

SHARED_FIGURES = "PROMETHEUS_MULTIPROC_DIR"


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on; requests wait in it until a worker is there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"{host}: {error.strerror}") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(2048)
    except OSError as error:
        made.close()
        raise ConfigError(f"{host}:{port}: {error.strerror}; choose another with --host and --port") from None
    made.set_inheritable(True)
    return made


def address_of(listening: socket.socket) -> str:
    """The address to open in a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def ready(settings: Settings, workers: int = 1) -> FastAPI | Settings:
    """Refuse, before anything listens, a model or a database that cannot be used; what `run` runs."""
    if workers == 1:
        from .app import create_app

        return create_app(settings)
    Served(Versions.open(settings.model), settings.index)
    FeedbackStore(settings.database).close()
    return replace(settings, parent=os.getpid())


def run(service: FastAPI | Settings, listening: socket.socket, workers: int = 1) -> None:
    """Answer until this process is told to stop; requests under way are answered first."""
    with _ending_quietly():
        if isinstance(service, Settings):
            _run_several(service, listening, workers)
        else:
            uvicorn.Server(_config(service)).run(sockets=[listening])


def watch_parent(parent: int, every: float = 0.5) -> None:
    """End this process when its parent has gone: the address is free again, and nobody answers unsupervised."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _run_several(settings: Settings, listening: socket.socket, workers: int) -> None:
    figures = tempfile.mkdtemp(prefix="sparserank-figures-")
    os.environ[ENVIRONMENT] = settings.to_json()
    os.environ[SHARED_FIGURES] = figures
    try:
        Multiprocess(_config("sparserank.service.app:from_environment", workers), sockets=[listening]).run()
    finally:
        del os.environ[ENVIRONMENT], os.environ[SHARED_FIGURES]
        shutil.rmtree(figures, ignore_errors=True)


def _config(app: FastAPI | str, workers: int = 1) -> uvicorn.Config:
    return uvicorn.Config(
        app, factory=isinstance(app, str), workers=workers, http=Bounded, ws="none", lifespan="on", log_config=LOGGING,
        access_log=False, proxy_headers=False, server_header=False, timeout_graceful_shutdown=10,
    )  # fmt: skip


@contextmanager
def _ending_quietly() -> Iterator[None]:
    """To be told to stop is no fault: uvicorn sends itself the signal again when it has stopped; it is not heard."""
    before = {sign: signal.signal(sign, lambda *_: None) for sign in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)

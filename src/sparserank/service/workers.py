"""Several processes that answer at one address. One that ends is started again; all end with the one that started them.

Each has a listening socket of its own on the same port, so that the system deals connections out evenly; one that all
share gives whoever wakes first all that come at once. A worker alone holds its socket: with its end the system deals
nothing more to it, and whoever waited there is cut off and may ask again. The next one listens when it can answer.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from ..errors import SparseRankError
from .settings import Settings

log = logging.getLogger(__name__)

EVERY = 0.1
"""Seconds between two looks at the workers."""
PAUSE, SLOWEST = 1.0, 30.0
"""Seconds from one start of a worker to the next: twice as many after each that could not start, but no more than that.
One that cannot start shall not take all the time there is."""
LONGEST = 20.0
"""Seconds that a worker has to end."""

_spawning = multiprocessing.get_context("spawn")


class Workers:
    """One worker a socket, until `stop`. The sockets are closed here: each is its worker's alone."""

    def __init__(self, settings: Settings, sockets: Sequence[socket.socket]) -> None:
        self._settings, self._sockets = settings, sockets
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let the workers end; what they are answering is answered."""
        self._stopped.set()

    def run(self) -> None:
        """Keep all of them running; returns when all have ended."""
        port: int = self._sockets[0].getsockname()[1]
        places = [_Place(self._settings, port, one) for one in self._sockets]
        while not self._stopped.wait(EVERY):
            for place in places:
                place.look(time.monotonic())
        running = [place.worker for place in places]
        for worker in running:
            worker.terminate()
        end = time.monotonic() + LONGEST
        for worker in running:
            worker.join(max(0.0, end - time.monotonic()))
            if worker.is_alive():
                log.warning("worker %s did not end within %.0f s and was killed", worker.pid, LONGEST)
                worker.kill()
                worker.join()


class _Place:
    """One worker after another; the first has a socket that listens already, later ones listen when they are ready."""

    def __init__(self, settings: Settings, port: int, listening: socket.socket) -> None:
        self._settings, self._port = settings, port
        self._failures = 0
        self._due: float | None = None  # when the next one is started; None while one is running
        self._start(listening)

    def _start(self, listening: socket.socket | None = None) -> None:
        self._said, saying = _spawning.Pipe(duplex=False)
        where = self._port if listening is None else listening
        self.worker: SpawnProcess = _spawning.Process(
            target=_work, args=(self._settings, where, saying, os.getpid()), daemon=True
        )
        self.worker.start()
        saying.close()
        if listening is not None:
            listening.close()
        self._started, self._due = time.monotonic(), None

    def look(self, now: float) -> None:
        """Note the end of a worker, and start the next when it is time."""
        if self._due is None and not self.worker.is_alive():
            self._ended(now)
        if self._due is not None and now >= self._due:
            self._start()

    def _ended(self, now: float) -> None:
        worker, trouble = self.worker, self._trouble()
        if trouble is None:
            self._failures, self._due = 0, self._started + PAUSE
            log.warning("worker %s ended with code %s; another is started", worker.pid, worker.exitcode)
        else:
            wait = min(PAUSE * 2**self._failures, SLOWEST)
            self._failures, self._due = self._failures + 1, now + wait
            log.error("worker %s could not start: %s; another is started in %.0f s", worker.pid, trouble, wait)

    def _trouble(self) -> str | None:
        """Why the worker could not start; None where it could."""
        with self._said:
            try:
                said: str = self._said.recv()
            except EOFError:
                return f"it ended with code {self.worker.exitcode}"
        return said or None


def _work(settings: Settings, where: socket.socket | int, saying: Connection, parent: int) -> None:
    """What a worker does. It says once why it cannot start, or nothing when it can."""
    from .app import create_app
    from .process import answer, bound

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    _watch(parent)
    with saying:
        try:
            app = create_app(settings, register=False)  # the process that starts workers has done that
            listening = bound(settings.host, where, shared=True) if isinstance(where, int) else where
        except (SparseRankError, OSError) as error:
            saying.send(str(error))
            sys.exit(1)
        saying.send("")
    answer(app, listening)  # which listens there, if nobody did


def _watch(parent: int) -> None:
    """End this process when its parent has gone: the address is free again, and nobody answers unsupervised."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(EVERY)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()

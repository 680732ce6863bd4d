"""Several processes that answer at one address. One that ends is started again; all end with the one that started them.

Each has a listening socket of its own on the same port, so that the system deals connections out evenly. The sockets
belong to the process that starts the workers: where a worker has died, whoever connects meanwhile waits for the next.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from multiprocessing.context import SpawnProcess

from .settings import Settings

log = logging.getLogger(__name__)

EVERY = 0.1
"""Seconds between two looks at the workers."""
PAUSE = 1.0
"""Seconds from one start of a worker to the next, so that one that cannot start does not take all the time there is."""
LONGEST = 20.0
"""Seconds that a worker has to end."""

_spawning = multiprocessing.get_context("spawn")


class Workers:
    """One worker a socket, until `stop`."""

    def __init__(self, settings: Settings, sockets: Sequence[socket.socket]) -> None:
        self._settings, self._sockets = settings, sockets
        self._stopped = threading.Event()
        self._started = [0.0] * len(sockets)

    def stop(self) -> None:
        """Let the workers end; what they are answering is answered."""
        self._stopped.set()

    def run(self) -> None:
        """Keep all of them running; returns when all have ended."""
        running = [self._start(number) for number in range(len(self._sockets))]
        while not self._stopped.wait(EVERY):
            for number, worker in enumerate(running):
                if not worker.is_alive() and time.monotonic() >= self._started[number] + PAUSE:
                    log.warning("worker %s ended with code %s; another is started", worker.pid, worker.exitcode)
                    running[number] = self._start(number)
        for worker in running:
            worker.terminate()
        end = time.monotonic() + LONGEST
        for worker in running:
            worker.join(max(0.0, end - time.monotonic()))
            if worker.is_alive():
                log.warning("worker %s did not end within %.0f s and was killed", worker.pid, LONGEST)
                worker.kill()
                worker.join()

    def _start(self, number: int) -> SpawnProcess:
        worker = _spawning.Process(target=_work, args=(self._settings, self._sockets[number], os.getpid()), daemon=True)
        worker.start()
        self._started[number] = time.monotonic()
        return worker


def _work(settings: Settings, listening: socket.socket, parent: int) -> None:
    """What a worker does."""
    from .app import create_app
    from .process import answer

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    _watch(parent)
    answer(create_app(settings), listening)


def _watch(parent: int) -> None:
    """End this process when its parent has gone: the address is free again, and nobody answers unsupervised."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(EVERY)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()

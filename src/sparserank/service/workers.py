"""Worker processes at one address. A worker that ends is replaced; all workers end with their parent.

Each worker has its own listening socket on the same port (SO_REUSEPORT), so that the system distributes connections
evenly. Only the worker holds its socket: when it ends, the system sends it no more connections, and its clients may
connect again. Its successor listens when it can answer.
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
from .config import ServiceConfig

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.1
RESTART_DELAY_S, MAX_RESTART_DELAY_S = 1.0, 30.0
"""Time between two starts of a worker; it doubles after each failed start."""
SHUTDOWN_TIMEOUT_S = 20.0
"""Time that a worker has to end after it has drained."""

_spawn = multiprocessing.get_context("spawn")


class Workers:
    """Runs one worker per socket until `stop`; the parent closes its copies of the sockets."""

    def __init__(self, config: ServiceConfig, sockets: Sequence[socket.socket]) -> None:
        self._config, self._sockets = config, sockets
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the workers after the requests in progress."""
        self._stopped.set()

    def run(self) -> None:
        """Keep all workers running; return when all have ended."""
        port: int = self._sockets[0].getsockname()[1]
        slots = [_WorkerSlot(self._config, port, listening) for listening in self._sockets]
        while not self._stopped.wait(POLL_INTERVAL_S):
            for slot in slots:
                slot.poll(time.monotonic())
        workers = [slot.worker for slot in slots]
        for worker in workers:
            worker.terminate()
        deadline = time.monotonic() + SHUTDOWN_TIMEOUT_S + self._config.drain
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
            if worker.is_alive():
                log.warning("killing worker %s, which did not end within %.0f s", worker.pid, SHUTDOWN_TIMEOUT_S)
                worker.kill()
                worker.join()


class _WorkerSlot:
    """One worker after another; the first has a listening socket, later ones listen when they are ready."""

    def __init__(self, config: ServiceConfig, port: int, listening: socket.socket) -> None:
        self._config, self._port = config, port
        self._failures = 0
        self._restart_at: float | None = None  # None while a worker runs
        self._start(listening)

    def _start(self, listening: socket.socket | None = None) -> None:
        self._receiver, sender = _spawn.Pipe(duplex=False)
        where = self._port if listening is None else listening
        self.worker: SpawnProcess = _spawn.Process(
            target=_run_worker, args=(self._config, where, sender, os.getpid()), daemon=True
        )
        self.worker.start()
        sender.close()
        if listening is not None:
            listening.close()
        self._started, self._restart_at = time.monotonic(), None

    def poll(self, now: float) -> None:
        """Notice the end of a worker, and start the next one when it is time."""
        if self._restart_at is None and not self.worker.is_alive():
            self._schedule_restart(now)
        if self._restart_at is not None and now >= self._restart_at:
            self._start()

    def _schedule_restart(self, now: float) -> None:
        worker, error = self.worker, self._startup_error()
        if error is None:
            self._failures, self._restart_at = 0, self._started + RESTART_DELAY_S
            log.warning("worker %s ended with code %s; starting another", worker.pid, worker.exitcode)
        else:
            delay = min(RESTART_DELAY_S * 2**self._failures, MAX_RESTART_DELAY_S)
            self._failures, self._restart_at = self._failures + 1, now + delay
            log.error("worker %s could not start: %s; starting another in %.0f s", worker.pid, error, delay)

    def _startup_error(self) -> str | None:
        """Return why the worker could not start, or None if it started."""
        with self._receiver:
            try:
                message: str = self._receiver.recv()
            except EOFError:
                return f"it ended with code {self.worker.exitcode}"
        return message or None


def _run_worker(config: ServiceConfig, where: socket.socket | int, sender: Connection, parent: int) -> None:
    """Run a worker; send why it cannot start, or an empty message when it can."""
    from .app import create_app
    from .server import bind, run_worker

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # and registers a new model
    _end_with(parent)
    with sender:
        try:
            app = create_app(config, register=False)  # the parent has registered the model
            listening = bind(config.host, where, shared=True) if isinstance(where, int) else where
        except (SparseRankError, OSError) as error:
            sender.send(str(error))
            sys.exit(1)
        sender.send("")
    run_worker(app, listening)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, so that the address becomes free."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_INTERVAL_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()

"""`sparserank serve` as a user starts it, its processes, and `kill -9` for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

TOKEN = "a-token-of-the-soak"
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 120.0
"""Seconds that a start may take."""


class Service:
    """A service of a model, in a process group of its own: all that it starts ends with it."""

    def __init__(
        self, model: Path, *words: str, workers: int = 2, database: str = "", rate: float = 1e6, log: Path | None = None
    ) -> None:
        self.model, self.words, self.workers, self.rate = model, words, workers, rate
        self.database = database or f"sqlite:///{model}.feedback.sqlite"
        self.log = log or Path(f"{model}.log")
        self.command, self.address, self._port = " ".join(words), "", 0

    def __enter__(self) -> Service:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> float:
        """Start it, at the same address as before; the seconds until its first answer."""
        began = time.monotonic()
        command = [
            sys.executable, "-m", "sparserank", "serve", str(self.model), "--json", "--port", str(self._port),
            "--workers", str(self.workers), "--rate", str(self.rate), "--unsigned-clicks", "--database", self.database,
            *self.words,
        ]  # fmt: skip
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                env={**os.environ, "SPARSERANK_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if not said:
            raise RuntimeError(f"the service did not start: {self.log.read_text()[-2000:]}")
        self.address = str(json.loads(said)["address"]).rstrip("/")
        self._port = int(self.address.rpartition(":")[2])
        self.get("/health")
        return time.monotonic() - began

    def get(self, path: str) -> Any:
        """What it answers; asked again until it does."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return httpx.get(self.address + path, timeout=10).raise_for_status().json()
            except httpx.TransportError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.02)

    def until_ready(self) -> None:
        """Until every worker is there and none is busy starting: connections made before would all be with one."""
        end, before = time.monotonic() + PATIENCE, 0.0
        while time.monotonic() < end:
            workers = self.worker_pids()
            used = sum(map(cpu_seconds, workers))
            if len(workers) == self.workers and before > 0.0 and used - before <= 0.03:
                return
            before = used if len(workers) == self.workers else 0.0
            time.sleep(0.5)
        raise RuntimeError(f"the workers did not come to rest: {self.log.read_text()[-2000:]}")

    def worker_pids(self) -> list[int]:
        """The processes that answer."""
        if self.workers == 1:
            return [self.process.pid]
        return [pid for pid in children(self.process.pid) if b"spawn_main" in _read(pid, "cmdline")]

    def pids(self) -> list[int]:
        """All of its processes."""
        return descendants(self.process.pid)

    def kill_worker(self, number: int) -> int:
        """`kill -9` of one worker; its number as a process."""
        workers = sorted(self.worker_pids())
        chosen = workers[number % len(workers)]
        os.kill(chosen, signal.SIGKILL)
        return chosen

    def kill(self) -> None:
        """`kill -9` of every process of it at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self._ended()

    def stop(self) -> None:
        """End it as a user does; by force where it does not end."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        self._ended()

    def _ended(self) -> None:
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:  # it has just ended
            continue
    return found


def descendants(pid: int) -> list[int]:
    """A process and all that it, and they, have started."""
    return [pid, *(below for child in children(pid) for below in descendants(child))]


def cpu_seconds(pid: int) -> float:
    """What a process has used of the cores; 0 where it has ended."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS if fields else 0.0


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""

"""Clients that send requests independent of earlier responses: an open loop.

Requests arrive at random times that are drawn in advance (a Poisson process of the given rate) and wait for a free
connection. Latency counts from arrival, not from sending, so it includes every queue. The clients share the machine
with the service: `lag` is the delay of the clients themselves, which is part of the latency.
"""

from __future__ import annotations

import asyncio
import gc
import random
import re
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

GOOD = (200, 201)
AGAIN = 0.05
"""Seconds until a client that was refused or cut off tries again."""
_VERSION = re.compile(rb'"version":(\d+)')
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Ask(NamedTuple):
    """A request as it is sent; `id` is that of feedback."""

    kind: str
    request: bytes
    id: str = ""


@dataclass
class Waiting:
    """A request that has arrived."""

    ask: Ask
    arrived: float


@dataclass
class Seen:
    """What became of the requests: by kind the milliseconds of those that were answered well, and the others."""

    rate: float
    seconds: float = 0.0
    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    retried: int = 0
    acknowledged: dict[str, int] = field(default_factory=dict)
    """Feedback that was, by id, and the status it was acknowledged with: 201 stored now, 200 stored before."""
    versions: dict[int, int] = field(default_factory=dict)
    """Answers by the version of the model that gave them."""


class Connection(asyncio.Protocol):
    """One connection with one request at a time."""

    def __init__(self, load: Load) -> None:
        self.load, self.current = load, None
        self._answer = bytearray()

    current: Waiting | None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self.load.freed(self)

    def ask(self, waiting: Waiting) -> None:
        self.current = waiting
        self.transport.write(waiting.ask.request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        end = self._answer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._answer, 0, end + 2)
        if len(self._answer) < end + 4 + (int(length[1]) if length else 0):
            return
        status, body = int(self._answer[9:12]), bytes(self._answer[end + 4 :])
        self._answer.clear()
        waiting, self.current = self.current, None
        if waiting is not None:
            self.load.answered(waiting, status, body)
        self.load.freed(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.load.lost(self)


class Load:
    """Some connections to one service. `retry`: what was not answered is sent again, as it was."""

    def __init__(self, address: str, connections: int = 32, retry: bool = False) -> None:
        host, _, port = address.removeprefix("http://").partition(":")
        self._host, self._port, self._n, self._retry = host, int(port), connections, retry
        self._free: deque[Connection] = deque()
        self._waiting: deque[Waiting] = deque()
        self._open: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing, self._left = False, 0
        self.seen = Seen(0.0)

    async def __aenter__(self) -> Load:
        for _ in range(self._n):
            await self._connect()
            await asyncio.sleep(0.01)  # a burst would all be taken by one worker
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        for connection in list(self._open):
            connection.transport.abort()
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def run(self, asks: Sequence[Ask], rate: float, seed: int = 0, patience: float = 60.0) -> Seen:
        """All of them, at this rate; back when all are answered, or when `patience` is at an end."""
        draw, began = random.Random(seed), time.perf_counter() + 0.05
        self.seen, self._left, arrives = Seen(rate), len(asks), began
        gc.collect()
        gc.disable()  # the garbage of the clients is none of the service's
        try:
            for ask in asks:
                arrives += draw.expovariate(rate)
                await asyncio.sleep(max(0.0, arrives - time.perf_counter()))
                self.seen.lag.append(1000.0 * max(0.0, time.perf_counter() - arrives))
                self._waiting.append(Waiting(ask, arrives))
                self._send()
            end = time.perf_counter() + patience
            while self._left and time.perf_counter() < end:
                await asyncio.sleep(0.01)
        finally:
            gc.enable()
        self.seen.seconds = time.perf_counter() - began
        self.seen.errors += [f"{self._left} were never answered"] * self._left
        self._waiting.clear()
        return self.seen

    @property
    def unanswered(self) -> int:
        """Requests that wait, or are under way."""
        return self._left

    def answered(self, waiting: Waiting, status: int, body: bytes) -> None:
        """One was; a service that is stopping asks for it again."""
        if status in GOOD:
            self._left -= 1
            took = 1000.0 * (time.perf_counter() - waiting.arrived)
            self.seen.milliseconds.setdefault(waiting.ask.kind, []).append(took)
            if waiting.ask.id:
                self.seen.acknowledged[waiting.ask.id] = status
            elif found := _VERSION.search(body):
                version = int(found[1])
                self.seen.versions[version] = self.seen.versions.get(version, 0) + 1
        elif self._retry and status == 503:
            self._later(waiting)
        else:
            self._left -= 1
            self.seen.errors.append(f"{waiting.ask.kind}: {status} {body[:200]!r}")

    def freed(self, connection: Connection) -> None:
        """This connection is free again."""
        self._open.add(connection)
        self._free.append(connection)
        self._send()

    def lost(self, connection: Connection) -> None:
        """The service has cut this one off."""
        self._open.discard(connection)
        if connection in self._free:
            self._free.remove(connection)
        if self._closing:
            return
        if connection.current is not None and self._retry:
            self.seen.retried += 1
            self._waiting.appendleft(connection.current)
        elif connection.current is not None:
            self._left -= 1
            self.seen.errors.append(f"{connection.current.ask.kind}: the connection was cut off")
        self._begin(self._connect())

    def _send(self) -> None:
        while self._waiting and self._free:
            connection = self._free.popleft()
            if not connection.transport.is_closing():
                connection.ask(self._waiting.popleft())

    def _later(self, waiting: Waiting) -> None:
        self.seen.retried += 1
        self._begin(self._back(waiting))

    async def _back(self, waiting: Waiting) -> None:
        await asyncio.sleep(AGAIN)
        self._waiting.append(waiting)
        self._send()

    async def _connect(self) -> None:
        """Until it is so: a service that was killed will be there again."""
        loop = asyncio.get_running_loop()
        while not self._closing:
            try:
                await loop.create_connection(lambda: Connection(self), self._host, self._port)
                return
            except OSError:
                await asyncio.sleep(AGAIN)

    def _begin(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

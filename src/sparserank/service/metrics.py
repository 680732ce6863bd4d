"""Prometheus metrics; workers share them in the folder $PROMETHEUS_MULTIPROC_DIR.

The folder is locked with `flock` while a service uses it. The system releases the lock of a killed service, and the
next service removes the folder.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import DataError
from .logs import request_id, requests_log

M = TypeVar("M", Counter, Gauge)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client reads this variable when a process imports it."""
FOLDER_PREFIX = "sparserank-figures-"
FILE_KINDS, FILE_BYTES = ("counter", "histogram", "gauge_mostrecent"), 1 << 20
"""The metric files of a worker and the bytes reserved for each, many times what they need."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The metrics of one process; those of several collections have the label `collection`."""

    def __init__(self, by_collection: bool = False) -> None:
        self._by_collection, label = by_collection, ["collection"] if by_collection else []
        if folder := os.environ.get(FOLDER_VARIABLE):
            reserve_files(Path(folder))
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "sparserank_requests", "Requests by route and status.", [*label, "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "sparserank_request_seconds", "Latency by route.", [*label, "route"], buckets=_BUCKETS_S, registry=registry
        )
        self._stored = Counter(
            "sparserank_feedback_stored", "Feedback that this service stored.", label, registry=registry
        )
        self._model = [
            Gauge(f"sparserank_{name}", text, label, registry=registry, multiprocess_mode="mostrecent")
            for name, text in (
                ("model_version", "The served version."),
                ("documents", "Documents in the index."),
                ("pairs", "Word pairs of the served model."),
            )
        ]

    def answered(self, collection: str, route: str, status: int, seconds: float) -> None:
        """Count and time a request."""
        self.requests.labels(*self._labels(collection), route, str(status)).inc()
        self.seconds.labels(*self._labels(collection), route).observe(seconds)

    def stored(self, collection: str) -> None:
        """Count feedback that was stored."""
        self._of(self._stored, collection).inc()

    def describe(self, collection: str, version: int, documents: int, pairs: int) -> None:
        """Note what a collection serves."""
        for gauge, value in zip(self._model, (version, documents, pairs), strict=True):
            self._of(gauge, collection).set(value)

    def _labels(self, collection: str) -> list[str]:
        return [collection] if self._by_collection else []

    def _of(self, metric: M, collection: str) -> M:
        return metric.labels(collection) if self._by_collection else metric

    def text(self) -> bytes:
        """Return the metrics of all workers in the Prometheus text format."""
        if FOLDER_VARIABLE not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


class MetricsMiddleware:
    """ASGI middleware that counts and times requests; all unknown routes count as "other"."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a request when it ends, also by an exception."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.get().encode())]
            await send(message)

        request_id.set(_request_id(scope))
        start = time.perf_counter()
        try:
            await self.app(scope, receive, send_and_note)
        finally:
            route, seconds = getattr(scope.get("route"), "path_format", "other"), time.perf_counter() - start
            collection = scope.get("collection", "")
            self._metrics.answered(collection, route, status, seconds)
            if requests_log.isEnabledFor(logging.INFO):
                fields = {"method": scope["method"], "route": route, "status": status}
                fields["milliseconds"] = round(1000.0 * seconds, 3)
                if collection:
                    fields["collection"] = collection
                requests_log.info("request", extra={"fields": fields})


def _request_id(scope: Scope) -> str:
    """Return the id that a proxy gave the request in `X-Request-ID`, or a new one."""
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def reserve_files(folder: Path) -> None:
    """Reserve disk space for the metrics of this worker: a mapped sparse file on a full disk would kill it."""
    for kind in FILE_KINDS:
        path = folder / f"{kind}_{os.getpid()}.db"
        try:
            if not path.exists():
                path.write_bytes(bytes(FILE_BYTES))
        except OSError as error:
            path.unlink(missing_ok=True)
            raise DataError(f"{path}: no space for metrics: {error.strerror}; free some, or set $TMPDIR") from None


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Provide a metrics folder for the workers that start in this context, and remove abandoned folders."""
    _remove_abandoned()
    folder, lock = _create_locked()
    os.environ[FOLDER_VARIABLE] = str(folder)
    try:
        yield folder
    finally:
        del os.environ[FOLDER_VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _create_locked() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
        lock = _lock(folder)
        if lock is not None and folder.exists():
            return folder, lock
        if lock is not None:  # another process removed the folder before it was locked
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """Return a file descriptor that locks the folder, or None if it is in use or gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with suppress(FileNotFoundError):  # another process may remove it too
            if folder.lstat().st_uid == os.getuid() and (lock := _lock(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)

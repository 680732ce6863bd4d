"""Figures for Prometheus; those of all workers together, where $PROMETHEUS_MULTIPROC_DIR names a folder they share."""

from __future__ import annotations

import os
import time
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import DataError
from .worker_metrics import SHARED

TEXT = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

KINDS, ROOM = ("counter", "histogram", "gauge_mostrecent"), 1 << 20
"""The files of figures that a worker shares, and what is set aside for each: many times what they need."""


class Metrics:
    """What is counted."""

    def __init__(self) -> None:
        if folder := os.environ.get(SHARED):
            reserve(Path(folder))
        self._own = CollectorRegistry()
        self.requests = Counter(
            "sparserank_requests", "Requests by route and status.", ["route", "status"], registry=self._own
        )
        self.seconds = Histogram(
            "sparserank_request_seconds", "Time to answer, by route.", ["route"], buckets=_BUCKETS, registry=self._own
        )
        self.stored = Counter("sparserank_feedback_stored", "Feedback that this service stored.", registry=self._own)
        self.version = self._gauge("sparserank_model_version", "The version being served.")
        self.documents = self._gauge("sparserank_documents", "Documents that can be found.")
        self.pairs = self._gauge("sparserank_pairs", "Word pairs of the model being served.")

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(name, about, registry=self._own, multiprocess_mode="mostrecent")

    def text(self) -> bytes:
        """As Prometheus reads it."""
        if SHARED not in os.environ:
            return generate_latest(self._own)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)


def reserve(folder: Path) -> None:
    """Set room aside for this worker's figures: the library maps files with holes, and on a full disk that kills."""
    for kind in KINDS:
        path = folder / f"{kind}_{os.getpid()}.db"
        try:
            if not path.exists():
                path.write_bytes(bytes(ROOM))
        except OSError as error:
            path.unlink(missing_ok=True)
            raise DataError(f"{path}: no room for figures: {error.strerror}; free some, or set $TMPDIR") from None


class Measured:
    """An ASGI application whose requests are counted; routes that are none are counted as one, 'other'."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count it when it ends, however it ends."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        began = time.perf_counter()
        try:
            await self.app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path_format", "other")
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - began)

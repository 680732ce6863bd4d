"""HTTP as uvicorn reads it, with an end to how long and how large the head of a request may be."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .guard import PATIENCE
from .settings import BODY_BYTES


class Bounded(HttpToolsProtocol):
    """A connection whose request line and headers must come within `PATIENCE` seconds and 64 KiB."""

    _timer: asyncio.TimerHandle | None = None
    _reading_head = True
    _received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Whoever connects must say something."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Read on; a head that does not end is cut off."""
        super().data_received(data)
        if self._reading_head:
            self._received += len(data)
            if self._received > BODY_BYTES:
                self.transport.close()

    def on_message_begin(self) -> None:
        """Another request on the same connection."""
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        """The head is whole; the body has limits of its own."""
        self._reading_head = False
        self._forget_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more is waited for."""
        self._forget_timer()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._forget_timer()
        self._reading_head, self._received = True, 0
        self._timer = self.loop.call_later(PATIENCE, self.transport.close)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain", "stream": "ext://sys.stderr"}},
    "loggers": {
        "sparserank": {"handlers": ["stderr"], "level": "INFO"},
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING"},
    },
}
"""What is logged, to stderr: no request, and so no query, no token."""

"""The HTTP protocol of uvicorn, with limits on the time and size of a request head, and without protocol upgrades.

A request that offers an upgrade (`Upgrade: h2c`, as Java's client does in each first request) is answered in HTTP/1.1.
The parser stops at such a head and drops the body, so it receives the same head again, without the offer. The parser
alone decides where a head ends and what its lines are, so that such a request is read like any other.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .config import MAX_BODY_BYTES
from .middleware import REQUEST_TIMEOUT_S

PART_BYTES = 2048
"""Data is parsed in parts of this size, so that the size of a head is known apart from the body before it."""
UPGRADE_HEADERS = (b"upgrade", b"http2-settings")


class _Parser(httptools.HttpRequestParser):
    """Passes what follows a head with an upgrade offer to its connection."""

    def __init__(self, connection: BoundedHttpProtocol) -> None:
        super().__init__(connection)
        self._connection = connection
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as in uvicorn

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]
        """Parse data."""
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self.get_method() == b"CONNECT":  # is an upgrade in any case
                raise
            self._connection.decline_upgrade(data[offer.args[0] :])


class BoundedHttpProtocol(HttpToolsProtocol):
    """A connection whose request heads must arrive within REQUEST_TIMEOUT_S and MAX_BODY_BYTES."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes: int | None = 0  # so far; None when the head is complete
    _completed = False  # a head or a body ended in the last part

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.parser = _Parser(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the first head."""
        super().connection_made(transport)
        self._start_head()

    def data_received(self, data: bytes) -> None:
        """Parse data; close the connection if a head is too long."""
        for start in range(0, len(data), PART_BYTES):
            if self.transport.is_closing():
                return
            part, self._completed = data[start : start + PART_BYTES], False
            super().data_received(part)
            if self._head_bytes is not None and not self._completed:
                self._head_bytes += len(part)
                if self._head_bytes > MAX_BODY_BYTES:
                    self.transport.close()

    def on_message_begin(self) -> None:
        """Start the timer of the next head."""
        super().on_message_begin()
        self._start_head()

    def on_headers_complete(self) -> None:
        """Stop the timer; the body has limits of its own."""
        self._head_bytes, self._completed = None, True
        self._stop_timer()
        if not self._is_declining():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a request; the head of the next one follows."""
        if not self._is_declining():
            self._head_bytes, self._completed = 0, True
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def decline_upgrade(self, rest: bytes) -> None:
        """Parse the last head again without its upgrade offer, and then the rest."""
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [b"%s: %s" % line for line in without_upgrade(self.headers)]
        self.parser = _Parser(self)
        self.parser.feed_data(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def _is_declining(self) -> bool:
        return bool(self.parser.should_upgrade()) and self.parser.get_method() != b"CONNECT"

    def _start_head(self) -> None:
        self._stop_timer()
        self._head_bytes = 0
        self._timer = self.loop.call_later(REQUEST_TIMEOUT_S, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def without_upgrade(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Remove the upgrade offer from headers with lower-case names.

    >>> without_upgrade([(b"host", b"a"), (b"connection", b"Upgrade, close"), (b"upgrade", b"h2c")])
    [(b'host', b'a'), (b'connection', b'close')]
    """
    remaining = []
    for name, value in headers:
        if name == b"connection":
            value = b", ".join(
                one for token in value.split(b",") if (one := token.strip()).lower() not in UPGRADE_HEADERS
            )
        if name not in UPGRADE_HEADERS and (value or name != b"connection"):
            remaining.append((name, value))
    return remaining


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
"""Logs go to stderr. No request is logged, so no query and no token."""

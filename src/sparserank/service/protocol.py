"""The HTTP protocol of uvicorn, with limits on the time and size of a request head, on the time that a client takes to
read its answer, and without protocol upgrades.

A request that offers an upgrade (`Upgrade: h2c`, as Java's client does in each first request) is answered in HTTP/1.1.
The parser stops at such a head and drops the body, so it receives the same head again, without the offer. The parser
alone decides where a head ends and what its lines are, so that such a request is read like any other.
"""

from __future__ import annotations

import asyncio
import fcntl
import termios
from array import array
from contextlib import suppress
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .config import MAX_BODY_BYTES
from .middleware import REQUEST_TIMEOUT_S

PART_BYTES = 2048
"""Data is parsed in parts of this size, so that the size of a head is known apart from the body before it."""
UPGRADE_HEADERS = (b"upgrade", b"http2-settings")
WRITE_TIMEOUT_S, MIN_WRITTEN_BYTES = 10.0, 64 * 1024
"""A client must read the rest of its answer, or so many bytes of it, within this time."""


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
    _write_timer: asyncio.TimerHandle | None = None
    _unread_bytes = 0  # when the timer started

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

    def pause_writing(self) -> None:
        """Note that the client reads more slowly than it is answered."""
        super().pause_writing()
        self._watch_writes()

    def on_response_complete(self) -> None:
        """End a response; the client may still have to read it."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():  # what the system has queued costs this process nothing
            self._watch_writes()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().connection_lost(exc)

    def decline_upgrade(self, rest: bytes) -> None:
        """Parse the last head again without its upgrade offer, and then the rest."""
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [b"%s: %s" % line for line in without_upgrade(self.headers)]
        self.parser = _Parser(self)
        self.parser.feed_data(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def _watch_writes(self) -> None:
        if self._write_timer is None:
            self._unread_bytes = self._count_unread()
            self._write_timer = self.loop.call_later(WRITE_TIMEOUT_S, self._check_writes)

    def _check_writes(self) -> None:
        """Close the connection, and free its memory, if the client has read too little."""
        self._write_timer = None
        unread = self._count_unread()
        if unread > max(0, self._unread_bytes - MIN_WRITTEN_BYTES):
            self.transport.abort()
        elif unread:
            self._watch_writes()

    def _count_unread(self) -> int:
        """Return the bytes that the client has not received: in this process and in the send queue of the system."""
        queued = array("i", [0])
        with suppress(OSError, AttributeError):
            fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)
        return self.transport.get_write_buffer_size() + queued[0]

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

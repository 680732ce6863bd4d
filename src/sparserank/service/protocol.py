"""HTTP as uvicorn reads it, with an end to how long and how large the head of a request may be, and no other protocol.

Whoever offers to speak another one (`Upgrade: h2c`, as Java's client does with every first request) is answered in this
one. The parser stops at such a head, and drops the body: it is given the same head once more, without the offer. The
parser alone says where a head ends and what its lines are, so that nothing is read differently from any other request.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .middleware import PATIENCE
from .settings import BODY_BYTES

PART = 2048
"""Bytes that are read at once: a head is counted in them, apart from the end of a body that came with it."""
OFFER = (b"upgrade", b"http2-settings")


class _Parser(httptools.HttpRequestParser):
    """Tells its connection what stands behind a head that offers another protocol."""

    def __init__(self, connection: Bounded) -> None:
        super().__init__(connection)
        self._connection = connection
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]
        """Read on."""
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self.get_method() == b"CONNECT":  # is one, whatever its head says
                raise
            self._connection.decline(data[offer.args[0] :])


class Bounded(HttpToolsProtocol):
    """A connection whose request line and headers must come within `PATIENCE` seconds and 64 KiB."""

    _timer: asyncio.TimerHandle | None = None
    _head: int | None = 0  # bytes of it so far; None: it is whole
    _turned = False  # a head or a body ended in what was read last

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.parser = _Parser(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Whoever connects must say something."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Read on; a head that does not end is cut off."""
        for start in range(0, len(data), PART):
            if self.transport.is_closing():
                return
            part, self._turned = data[start : start + PART], False
            super().data_received(part)
            if self._head is not None and not self._turned:
                self._head += len(part)
                if self._head > BODY_BYTES:
                    self.transport.close()

    def on_message_begin(self) -> None:
        """Another request on the same connection."""
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        """The head is whole; the body has limits of its own."""
        self._head, self._turned = None, True
        self._forget_timer()
        if not self._declining():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole; what follows is the head of the next."""
        if not self._declining():
            self._head, self._turned = 0, True
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more is waited for."""
        self._forget_timer()
        super().connection_lost(exc)

    def decline(self, rest: bytes) -> None:
        """Read the head just read as if it had not offered another protocol, and the rest behind it."""
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [b"%s: %s" % line for line in without_offer(self.headers)]
        self.parser = _Parser(self)
        self.parser.feed_data(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def _declining(self) -> bool:
        return bool(self.parser.should_upgrade()) and self.parser.get_method() != b"CONNECT"

    def _await_head(self) -> None:
        self._forget_timer()
        self._head = 0
        self._timer = self.loop.call_later(PATIENCE, self.transport.close)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def without_offer(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The lines of a head, named in lower case, but for those that offer another protocol.

    >>> without_offer([(b"host", b"a"), (b"connection", b"Upgrade, close"), (b"upgrade", b"h2c")])
    [(b'host', b'a'), (b'connection', b'close')]
    """
    left = []
    for name, value in headers:
        if name == b"connection":
            value = b", ".join(one for token in value.split(b",") if (one := token.strip()).lower() not in OFFER)
        if name not in OFFER and (value or name != b"connection"):
            left.append((name, value))
    return left


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

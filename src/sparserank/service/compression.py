"""Compression of answers: brotli or gzip, whichever the client prefers by the q-values of `Accept-Encoding`."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping

import brotli
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MIN_BYTES = 1400
"""Smaller answers fit into one packet anyway."""
_FAST: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda content: bytes(brotli.compress(content, quality=2)),
    "gzip": lambda content: gzip.compress(content, compresslevel=1, mtime=0),
}
_SMALL: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda content: bytes(brotli.compress(content, quality=11)),
    "gzip": lambda content: gzip.compress(content, compresslevel=9, mtime=0),
}


def choose_encoding(accept_encoding: str) -> str:
    """Return the encoding that a client prefers: "br", "gzip", or "" for none. Of equals, brotli is smaller.

    >>> choose_encoding("gzip, deflate, br;q=0.9, zstd"), choose_encoding("gzip, br"), choose_encoding("*;q=0.1")
    ('gzip', 'br', 'br')
    >>> choose_encoding(""), choose_encoding("br;q=0, gzip;q=0.000"), choose_encoding("identity, gzip;q=0.5")
    ('', '', '')
    """
    weights: dict[str, float] = {}
    for entry in accept_encoding.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        weights[name] = next((_weight(one[2:]) for one in parameters if one.startswith("q=")), 1.0)
    others = weights.get("*", 0.0)
    best = max(("br", "gzip"), key=lambda name: weights.get(name, others))  # the first of equals
    weight = weights.get(best, others)
    return best if weight > 0.0 and weight >= weights.get("identity", 0.0) else ""


def _weight(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def accept_encoding(scope: Scope) -> str:
    """Return the `Accept-Encoding` header of a request."""
    return ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"accept-encoding")


def smallest(content: bytes, encoding: str) -> bytes:
    """Compress content once for many answers."""
    return _SMALL[encoding](content)


class CompressionMiddleware:
    """Compresses answers of at least MIN_BYTES that come in one piece, unless their route has chosen an encoding."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in the encoding that the client prefers."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start: Message | None = None

        async def send_compressed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start is not None:
                head, start = start, None
                body = message.get("body", b"")
                is_whole = not message.get("more_body", False)
                if is_whole and len(body) >= MIN_BYTES and not _is_chosen(head):
                    head, message = _compress(head, message, choose_encoding(accept_encoding(scope)))
                await send(head)
            await send(message)

        await self.app(scope, receive, send_compressed)


def _is_chosen(head: Message) -> bool:
    """Return whether the route has chosen the encoding itself."""
    return any(name == b"vary" for name, _ in head["headers"])


def _compress(head: Message, message: Message, encoding: str) -> tuple[Message, Message]:
    headers = [*head["headers"], (b"vary", b"Accept-Encoding")]
    body = message["body"]
    if encoding:
        body = _FAST[encoding](body)
        headers = [(name, value) for name, value in headers if name != b"content-length"]
        headers += [(b"content-encoding", encoding.encode()), (b"content-length", str(len(body)).encode())]
    return {**head, "headers": headers}, {**message, "body": body}

"""What every request must pass before it is answered: host, rate, token, size; and what every answer carries."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .settings import BODY_BYTES, Settings, is_loopback

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds within which the body of a request must have come."""

MOST_CLIENTS = 10_000
"""Addresses whose rate is remembered."""

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""On every answer."""

WRITES = frozenset({"/feedback", "/model/rollback"})
"""What needs the token wherever the service listens."""

_RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Refused(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, detail: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, tuple(headers)


class Guard:
    """An ASGI application around another one.

    Pages and /health are open to whoever can connect; they hold nothing of the documents.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._token = settings.token.encode()
        self._loopback = settings.loopback
        self._reads_need_token = settings.reads_need_token
        self._rates = Rates(settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with the whole body at hand."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        begun = False

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", ()), *_RAW]
            await send(message)

        try:
            self._judge(scope, headers := dict(scope["headers"]))
            body = await _body(headers, receive)
            await self.app(scope, _replay(body, receive), with_headers)
        except Refused as refused:
            await _answer(refused, with_headers)
        except Exception:
            if begun:
                raise
            log.exception("%s %s failed", scope["method"], getattr(scope.get("route"), "path", ""))
            await _answer(Refused(500, "this is a fault of the service; its log says more"), with_headers)

    def _judge(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        wait = self._rates.take((scope.get("client") or ("",))[0])
        if wait > 0.0:
            again = max(1, round(wait + 0.5))
            raise Refused(
                429, f"too many requests from this address; try again in {again} s", [("retry-after", str(again))]
            )
        if self._loopback and not _local(headers.get(b"host", b"")):
            raise Refused(
                421, "this service answers to localhost only; open it as http://127.0.0.1 or http://localhost"
            )
        if self._needs_token(scope["path"]) and not self._has_token(headers.get(b"authorization", b"")):
            raise Refused(
                401, "this needs the token: send it as `Authorization: Bearer TOKEN`", [("www-authenticate", "Bearer")]
            )

    def _needs_token(self, path: str) -> bool:
        if path in WRITES:
            return True
        return self._reads_need_token and not (path in ("/", "/health", "/openapi.json") or path.startswith("/page/"))

    def _has_token(self, given: bytes) -> bool:
        scheme, _, token = given.partition(b" ")
        # the comparison takes as long whatever was given
        return hmac.compare_digest(token.strip(), self._token) and scheme.lower() == b"bearer"


class Rates:
    """How much each address may still ask: a second's worth at once, refilled as time goes by.

    >>> rates = Rates(2)
    >>> [rates.take("a", now=0.0) for _ in range(3)]
    [0.0, 0.0, 0.5]
    >>> rates.take("a", now=0.5), rates.take("b", now=0.5)
    (0.0, 0.0)
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(rate, 1.0)
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, client: str, now: float | None = None) -> float:
        """0 where the client may go on, else the seconds to wait."""
        now = time.monotonic() if now is None else now
        left, then = self._left.get(client, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        if client not in self._left and len(self._left) >= MOST_CLIENTS:
            self._forget(now)
        self._left[client] = (left - 1.0 if left >= 1.0 else left, now)
        return 0.0 if left >= 1.0 else (1.0 - left) / self._rate

    def _forget(self, now: float) -> None:
        """Those that have all of their share again; where none has, the one that was heard of longest ago."""
        full = [c for c, (left, then) in self._left.items() if left + (now - then) * self._rate >= self._most]
        for client in full or [min(self._left, key=lambda c: self._left[c][1])]:
            del self._left[client]


def _local(host: bytes) -> bool:
    """Whether the Host header names this machine: a page elsewhere whose name was pointed here is not answered."""
    name = host.decode("latin-1")
    name = name[: name.find("]") + 1] if name.startswith("[") else name.partition(":")[0]
    return is_loopback(name)


async def _body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """All of the body; too much of it, or too slow, is refused."""
    told = headers.get(b"content-length", b"0")
    if not told.isdigit() or int(told[:20]) > BODY_BYTES:
        raise Refused(413, f"a request may hold {BODY_BYTES // 1024} KiB; send less", [("connection", "close")])
    if told == b"0" and b"transfer-encoding" not in headers:
        return b""
    try:
        async with asyncio.timeout(PATIENCE):
            return await _gathered(receive)
    except TimeoutError:
        raise Refused(
            408, f"the body did not come within {PATIENCE:.0f} s; send it again", [("connection", "close")]
        ) from None


async def _gathered(receive: Receive) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the request ended before its body did")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_BYTES:
            raise Refused(413, f"a request may hold {BODY_BYTES // 1024} KiB; send less", [("connection", "close")])
        more = message.get("more_body", False)
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body at once, and then what really comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _answer(refused: Refused, send: Send) -> None:
    body = json.dumps({"detail": refused.detail}).encode()
    headers: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in refused.headers]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

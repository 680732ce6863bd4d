"""ASGI middleware that checks every request (rate, host, token, size) and adds security headers to every response."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .access import METRICS, Access, may
from .config import MAX_BODY_BYTES, ServiceConfig, is_loopback

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 10.0
"""Time within which the head of a request must arrive, and then its body."""
MAX_DEBT_S = 5.0
"""The longest time that a client waits after expensive requests."""
MAX_CLIENTS = 10_000
"""Addresses whose rate is remembered."""
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
WRITE_ROLES = {
    "/feedback": "click", "/judgments": "judge", "/model/rollback": "admin", "/model/promote": "admin",
    "/model/withdraw": "admin",
}  # fmt: skip
"""The role that each of these needs on every host; judgments have queries of other people."""
OPEN_PATHS = frozenset({"/", "/health", "/ready", "/openapi.json"})
"""These and the page never need it; they contain nothing of the documents."""

UNIQUE_HEADERS = frozenset({b"host", b"authorization"})

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


class RequestError(Exception):
    """A request that is answered with an error status."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


class SecurityMiddleware:
    """Checks requests, reads their bodies, and answers errors in one sentence."""

    def __init__(self, app: ASGIApp, config: ServiceConfig, is_draining: Callable[[], bool] = lambda: False) -> None:
        self.app, self._is_draining = app, is_draining
        self._access = Access(config.token, config.tokens)
        self._proxies = config.proxy_networks()
        self._loopback = config.loopback
        self._reads_need_token = config.reads_need_token
        self._rate_limiter = RateLimiter(config.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with an error, or pass the request on with its whole body."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                closing = [(b"connection", b"close")] if self._is_draining() else []
                message["headers"] = [*message.get("headers", ()), *_RAW_HEADERS, *closing]
            await send(message)

        try:
            headers = unique_headers(scope["headers"])
            if self._proxies:
                scope["client"] = (forwarded_client(client_address(scope), headers, self._proxies), 0)
            self._check(scope, headers)
            body = await _read_body(headers, receive)
            try:
                await self.app(scope, _replay(body, receive), send_with_headers)
            finally:
                if "work" in scope:
                    self._rate_limiter.charge(client_address(scope), scope["work"].units())
        except RequestError as error:
            await _send_error(error, send_with_headers)
        except Exception:
            if started:
                raise
            log.exception("%s %s failed", scope["method"], getattr(scope.get("route"), "path", ""))
            await _send_error(RequestError(500, "internal error; see the log of the service"), send_with_headers)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise RequestError unless rate, host and token are fine."""
        wait = self._rate_limiter.take(client_address(scope))
        if wait > 0.0:
            seconds = str(max(1, round(wait + 0.5)))
            detail = f"too many requests from this address; try again in {seconds} s"
            raise RequestError(429, detail, **{"retry-after": seconds})
        if self._loopback and not _is_local_host(headers.get(b"host", b"")):
            raise RequestError(421, "this service answers to localhost only; use http://127.0.0.1 or http://localhost")
        role = scope["role"] = self._access.role(headers.get(b"authorization", b""))
        needed = self._needed_role(scope["path"].removeprefix(scope.get("root_path", "")))
        if needed is None or may(role, needed) or (needed == METRICS and may(role, "admin")):
            return
        if role is None:
            detail = "this request needs the token; send it as `Authorization: Bearer TOKEN`"
            raise RequestError(401, detail, **{"www-authenticate": "Bearer"})
        raise RequestError(403, f"the token of the role {role!r} is not enough; use the token of the role {needed!r}")

    def _needed_role(self, path: str) -> str | None:
        """Return the role that a path needs, or None if it is open."""
        if path in WRITE_ROLES:
            return WRITE_ROLES[path]
        if path == "/metrics" and self._access.has_metrics_token:
            return METRICS
        is_open = not self._reads_need_token or path in OPEN_PATHS or path.startswith("/page/")
        return None if is_open else "read"


def client_address(scope: Scope) -> str:
    """Return the address of the client, or of its proxy."""
    address: str = (scope.get("client") or ("",))[0]
    return address


def unique_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return headers by name; a second Host or Authorization raises RequestError: a proxy may have read the other one.

    >>> unique_headers([(b"host", b"a"), (b"accept", b"x"), (b"accept", b"y")])
    {b'host': b'a', b'accept': b'y'}
    """
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in UNIQUE_HEADERS and name in found:
            raise RequestError(400, f"the header {name.decode().title()!r} was sent twice; send it once")
        found[name] = value
    return found


def forwarded_client(peer: str, headers: dict[bytes, bytes], proxies: Sequence[Network]) -> str:
    """Return the client that trusted proxies name: the last address of X-Forwarded-For that is not one of them.

    >>> proxies = [ipaddress.ip_network("10.0.0.0/8")]
    >>> forwarded_client("10.0.0.1", {b"x-forwarded-for": b"1.1.1.1, 2.2.2.2, 10.9.9.9"}, proxies)
    '2.2.2.2'
    >>> forwarded_client("3.3.3.3", {b"x-forwarded-for": b"1.1.1.1"}, proxies)
    '3.3.3.3'
    """
    client = peer
    for text in reversed(headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")):
        try:
            if not any(ipaddress.ip_address(client) in network for network in proxies):
                return client
            client = str(ipaddress.ip_address(text.strip()))
        except ValueError:
            return client
    return client


class RateLimiter:
    """A token bucket per address that holds the cost of one second.

    >>> limiter = RateLimiter(2)
    >>> [limiter.take("a", now=0.0) for _ in range(3)]
    [0.0, 0.0, 0.5]
    >>> limiter.take("a", now=0.5), limiter.take("b", now=0.5)
    (0.0, 0.0)
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._capacity = rate, max(rate, 1.0)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, client: str, now: float | None = None) -> float:
        """Return 0 if the client may continue, else the seconds to wait."""
        now = time.monotonic() if now is None else now
        level, then = self._buckets.get(client, (self._capacity, now))
        level = min(self._capacity, level + (now - then) * self._rate)
        if client not in self._buckets and len(self._buckets) >= MAX_CLIENTS:
            self._evict(now)
        self._buckets[client] = (level - 1.0 if level >= 1.0 else level, now)
        return 0.0 if level >= 1.0 else (1.0 - level) / self._rate

    def charge(self, client: str, cost: float) -> None:
        """Take the cost of a request that was let through; a client that owes something waits longer."""
        if client in self._buckets:
            level, then = self._buckets[client]
            self._buckets[client] = (max(level - cost, -MAX_DEBT_S * self._rate), then)

    def _evict(self, now: float) -> None:
        """Forget the clients with full buckets; if there is none, the client that was idle longest."""
        buckets = self._buckets.items()
        full = [c for c, (level, then) in buckets if level + (now - then) * self._rate >= self._capacity]
        for client in full or [min(self._buckets, key=lambda c: self._buckets[c][1])]:
            del self._buckets[client]


def _is_local_host(host: bytes) -> bool:
    """Return whether a Host header names this machine; protects against DNS rebinding."""
    name = host.decode("latin-1")
    name = name[: name.find("]") + 1] if name.startswith("[") else name.partition(":")[0]
    return is_loopback(name)


def _too_large() -> RequestError:
    detail = f"a request may have {MAX_BODY_BYTES // 1024} KiB; send less"
    return RequestError(413, detail, connection="close")


async def _read_body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """Return the whole body; raise RequestError if it is too large or too slow."""
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length[:20]) > MAX_BODY_BYTES:
        raise _too_large()
    if length == b"0" and b"transfer-encoding" not in headers:
        return b""
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            return await _receive_all(receive)
    except TimeoutError:
        detail = f"the body did not arrive within {REQUEST_TIMEOUT_S:.0f} s; send it again"
        raise RequestError(408, detail, connection="close") from None


async def _receive_all(receive: Receive) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError(400, "the connection ended before the body")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            raise _too_large()
        more = message.get("more_body", False)
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that yields the body first."""
    sent = False

    async def receive_again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


async def _send_error(error: RequestError, send: Send) -> None:
    body = json.dumps({"detail": error.detail}).encode()
    headers: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in error.headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""Invalid requests as bytes: valid ones that have been truncated, duplicated, swapped and corrupted."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .service import TOKEN

PATHS = (
    *[b"/search", b"/explain", b"/feedback"] * 4, b"/compare", b"/model", b"/model/rollback", b"/model/promote",
    b"/model/withdraw", b"/health", b"/ready",
    b"/metrics", b"/",
    b"/related/red", b"/related/%ff%00", b"/changes?days=1e309", b"/page/../../etc/passwd", b"/page/%2e%2e%2fapp.py",
    b"*", b"http://elsewhere/search", b"//search", b"/search?" + b"a" * 5000,
)  # fmt: skip
METHODS = (*[b"POST"] * 20, *[b"GET"] * 6, b"HEAD", b"PUT", b"OPTIONS", b"CONNECT", b"TRACE", b"post", b"X" * 300, b"")
HEADERS = (
    b"Authorization: Bearer " + TOKEN.encode(),
    b"Content-Type: application/json", b"Content-Type: \xff\xfe", b"Host: elsewhere", b"Host:",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked", b"Content-Length: 5", b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Content-Length: 0x10", b"Expect: 100-continue", b"Upgrade: websocket\r\nConnection: Upgrade",
    b"Connection: close",
    b"Authorization: Bearer \x00", b"Cookie: " + b"a=b; " * 2000,
    b"X-Forwarded-For: 127.0.0.1", b"Range: bytes=0-", b" folded: header", b"no colon", b"Content-Encoding: gzip",
)  # fmt: skip
BODIES = (
    b'{"query": "red car"}', b'{"query": "red", "document": "automobile-red"}', b'{"query": "\\ud800"}',
    b'{"query": "\\u0000"}',
    b'{"query": "red", "k": 1e400}', b'{"query": "red", "k": NaN}', b"[" * 20000, b'{"a":' * 5000,
    b"null", b"\xff" * 100,
    b'{"query": "' + b"x" * 70000 + b'"}', b'{"query": "red", "query": "blue"}', b'{"to": 99999999999999999999999}',
    b'{"id": "x", "kind": "click", "query": "red", "document": "automobile-red", "shown": ["automobile-red"]}', b"",
    b"5\r\nhello\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFF\r\nx", b"-1\r\n\r\n",
    b"5;" + b"x" * 9000 + b"\r\nhello\r\n0\r\n\r\n",
)  # fmt: skip


def _put_together(method: bytes, path: bytes, version: bytes, headers: list[bytes], length: bool, body: bytes) -> bytes:
    lines = [method + b" " + path + b" " + version, b"Host: 127.0.0.1", *headers]
    if length:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _spoil(draw: Any, request: bytes) -> bytes:
    """One change of one kind at one place."""
    at = draw(st.integers(0, len(request)))
    kind = draw(st.sampled_from(("cut", "insert", "replace", "double", "twice", "line feeds")))
    noise = draw(st.binary(min_size=1, max_size=20))
    match kind:
        case "cut":
            return request[:at]
        case "insert":
            return request[:at] + noise + request[at:]
        case "replace":
            return request[:at] + noise + request[at + len(noise) :]
        case "double":
            return request[:at] + request[max(0, at - 200) :]
        case "twice":
            return request + request
        case _:
            return request.replace(b"\r\n", b"\n")


@st.composite
def requests(draw: Any) -> bytes:
    """A request put together from odd parts, with up to four changes; or mere noise."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=2000))
    request = _put_together(
        draw(st.sampled_from(METHODS)),
        draw(st.sampled_from(PATHS)),
        draw(st.sampled_from((*[b"HTTP/1.1"] * 12, b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9", b""))),
        [*HEADERS[:2], *draw(st.lists(st.sampled_from(HEADERS), max_size=3))],
        draw(st.integers(0, 3)) > 0,
        draw(st.sampled_from(BODIES)),
    )
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2, 4)))):
        request = _spoil(draw, request)
    return request

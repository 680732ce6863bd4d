"""Requests as bytes: those who offer another protocol are answered in this one, and only heads count as heads."""

from __future__ import annotations

import json
import re
import socket
import time
from contextlib import suppress

import pytest

BODY = json.dumps({"query": "red car", "k": 1}).encode()
JAVA = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\nUpgrade: h2c\r\n"
END = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def search(*lines: bytes, body: bytes = BODY) -> bytes:
    """A request that searches, with more lines in its head."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head + b"".join(lines) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def statuses(running, *parts: bytes) -> list[int]:
    """What is answered to bytes that arrive in these parts, until the connection ends."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer = b""
        with suppress(ConnectionError):  # who is cut off may learn it so
            for part in parts:
                connection.sendall(part)
                time.sleep(0.01 if len(parts) > 1 else 0)
            while part := connection.recv(65536):
                answer += part
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


@pytest.mark.parametrize("offer", [JAVA, b"Upgrade: websocket\r\nconnection: keep-alive,  UPGRADE\r\n"])
def test_who_offers_another_protocol_is_answered_in_this_one(service, offer):
    assert statuses(service, search(offer) + END) == [200, 200]
    assert statuses(service, search(offer) + search(offer) + END) == [200, 200, 200]
    chunked = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + offer
    chunked += b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
    assert statuses(service, chunked + END) == [200, 200]


@pytest.mark.parametrize("size", [1, 7, 64])
def test_an_offer_is_declined_however_its_head_is_cut(service, size):
    sent = search(JAVA) + END
    assert statuses(service, *(sent[i : i + size] for i in range(0, len(sent), size))) == [200, 200]


def test_an_offer_does_not_change_where_a_body_ends(service):
    hidden = b"POST /search HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert statuses(service, search(JAVA, body=hidden) + END) == [422, 200]
    both = search(JAVA, b"Transfer-Encoding: chunked\r\n")
    assert statuses(service, both + END) == statuses(service, both.replace(JAVA, b"") + END) == [400]


def test_close_beside_an_offer_is_heard(service):
    assert statuses(service, search(JAVA.replace(b"Upgrade,", b"Upgrade, close,")) + END) == [200]


def test_the_beginning_of_the_next_request_may_come_with_a_long_one(service):
    long = search(body=json.dumps({"query": "red car", "document": "x" * 60_000}).encode())
    assert len(long) < 65_536 < len(long) + 6_000
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: " + b"x" * 6_000
    assert statuses(service, long + head, b"x\r\n\r\n") == [422, 200]


def test_a_long_head_is_cut_off_wherever_it_begins(service):
    endless = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 70_000
    assert statuses(service, search() + endless) in ([200], [])
    assert statuses(service, endless) == []

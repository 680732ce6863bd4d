"""SIGTERM: readiness flips first, requests are answered for a while, and none is cut."""

from __future__ import annotations

import os
import signal
import threading
import time

import httpx
import pytest

from .conftest import wait_until


class Client(threading.Thread):
    """Searches one after another until the service refuses connections."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address, self.answered, self.cut, self.closing = address, 0, [], 0

    def run(self) -> None:
        with httpx.Client(base_url=self._address, timeout=30) as client:
            while True:
                try:
                    answer = client.post("/search", json={"query": "red car", "explain": True})
                except httpx.ConnectError:
                    return
                except httpx.TransportError as error:
                    self.cut.append(repr(error))
                    return
                assert answer.status_code == 200
                self.answered += 1
                self.closing += answer.headers.get("connection") == "close"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_request_is_cut_and_readiness_flips_first(run, workers):
    service = run("--no-learn", "--workers", workers, "--drain", "3")
    address = str(service.client.base_url)
    assert service.client.get("/ready").json() == {"status": "ready", "version": 1}
    clients = [Client(address) for _ in range(6)]
    for client in clients:
        client.start()
    wait_until(lambda: all(client.answered > 5 for client in clients))
    os.kill(service.pid, signal.SIGTERM)
    seen, end = [], time.monotonic() + 20
    while time.monotonic() < end:
        try:
            answer = httpx.get(f"{address}ready", timeout=5)
            seen.append(answer.status_code)
            health = httpx.get(f"{address}health", timeout=5)
        except httpx.TransportError:
            break
        if answer.status_code == 503:
            assert "stopping" in answer.json()["detail"]
            assert health.status_code == 200, "it still answers"
        time.sleep(0.05)
    assert service._process.wait(60) == 0
    for client in clients:
        client.join(30)
    assert [client.cut for client in clients] == [[]] * 6
    assert all(client.closing for client in clients), "clients are told to go elsewhere"
    assert 503 in seen
    assert 200 not in seen[seen.index(503) :], "not ready again"
    assert "Traceback" not in service.said.read_text()


def test_a_second_signal_ends_it_at_once(run):
    service = run("--no-learn", "--drain", "60")
    assert service.search().status_code == 200
    os.kill(service.pid, signal.SIGTERM)
    wait_until(lambda: service.client.get("/ready").status_code == 503)
    os.kill(service.pid, signal.SIGTERM)
    assert service._process.wait(30) == 0


def test_malformed_requests_are_logged_once_in_a_while(run):
    import socket

    service = run("--no-learn")
    port = service.client.base_url.port
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"\0\1\2\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert service.said.read_text().count("Invalid HTTP request") == 1

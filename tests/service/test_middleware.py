"""What every request must pass: token, host, rate, size and time; and what every answer carries."""

from __future__ import annotations

import http.client
import json
import logging
import socket

import pytest

from sparserank.errors import ConfigError
from sparserank.service import middleware, protocol
from sparserank.service.config import ServiceConfig
from sparserank.service.middleware import MAX_CLIENTS, SECURITY_HEADERS, RateLimiter

from .conftest import TOKEN

JUDGED = {"id": "g1", "kind": "judgment", "query": "red car", "document": "automobile-red"}


def raw(running, request: bytes) -> bytes:
    """What is answered to these bytes until the connection ends."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


@pytest.mark.parametrize("path", ["/feedback", "/model/rollback"])
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
    ],
)
def test_writes_need_the_token(service, path, authorization):
    headers = {} if authorization is None else {"Authorization": authorization}
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    connection.request("POST", path, json.dumps(JUDGED), {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "Authorization: Bearer" in json.load(answer)["detail"]
    connection.close()
    assert service.client.get("/health").json()["feedback"] == 0


def test_the_token_opens_writes_and_reads_need_none_on_this_machine(serve):
    running = serve()
    assert running.client.post("/feedback", json=JUDGED).status_code == 201
    assert (
        running.client.post("/feedback", json=JUDGED, headers={"Authorization": f"bearer  {TOKEN}"}).status_code == 200
    )
    no_token = {"Authorization": ""}
    for path in ("/health", "/model", "/metrics", "/changes", "/related/car", "/openapi.json", "/"):
        assert running.client.get(path, headers=no_token).status_code == 200, path
    assert running.client.post("/search", json={"query": "red"}, headers=no_token).status_code == 200


def test_reads_need_the_token_where_other_machines_can_connect(serve):
    running = serve(host="0.0.0.0")
    no_token = {"Authorization": "", "Host": "search.example.org"}
    for path in ("/model", "/metrics", "/changes", "/related/car"):
        assert running.client.get(path, headers=no_token).status_code == 401, path
        assert running.client.get(path, headers={"Host": "search.example.org"}).status_code == 200, path
    for path in ("/search", "/explain", "/compare", "/nothing"):
        assert running.client.post(path, json={}, headers=no_token).status_code == 401, path
    for path in ("/", "/page/index.html", "/health", "/openapi.json"):
        assert running.client.get(path, headers=no_token).status_code == 200, path
    document = running.client.get("/openapi.json").json()
    assert document["paths"]["/search"]["post"]["security"] == [{"token": []}]
    assert "security" not in document["paths"]["/health"]["get"]


def test_reads_may_be_opened_to_other_machines_on_purpose(serve):
    running = serve(host="0.0.0.0", open_reads=True)
    no_token = {"Authorization": "", "Host": "search.example.org"}
    assert running.client.post("/search", json={"query": "red"}, headers=no_token).status_code == 200
    assert running.client.post("/feedback", json=JUDGED, headers=no_token).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::2]", "10.0.0.1"]
)
def test_another_host_name_that_points_here_is_not_answered(service, host):
    answer = service.client.get("/health", headers={"Host": host})
    assert answer.status_code == 421
    assert "localhost" in answer.json()["detail"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "[::1]", "127.8.9.1"])
def test_every_name_of_this_machine_is_answered(service, host):
    assert service.client.get("/health", headers={"Host": host}).status_code == 200


def test_every_answer_carries_the_headers_that_keep_a_page_safe(serve, monkeypatch):
    running = serve()
    monkeypatch.setattr(running.app.state.service.reloader, "changes_since", lambda *_: 1 / 0)
    asked = [("GET", "/"), ("GET", "/health"), ("GET", "/nothing"), ("PUT", "/search"), ("POST", "/search")]
    asked += [("GET", "/page/index.html"), ("GET", "/changes"), ("GET", "/related/x?k=0")]
    statuses = set()
    for method, path in asked:
        answer = running.client.request(method, path)
        statuses.add(answer.status_code)
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers.get_list(name) == [value], (path, name)
        assert "server" not in answer.headers
    assert statuses == {200, 404, 405, 422, 500}
    assert "'unsafe" not in SECURITY_HEADERS["content-security-policy"]
    assert running.client.get("/health", headers={"Host": "x"}).headers.get_list("x-content-type-options") == [
        "nosniff"
    ]


def test_a_fault_of_ours_is_a_sentence_that_tells_nothing_of_our_inside(serve, monkeypatch, caplog):
    running = serve()
    monkeypatch.setattr(running.app.state.service.reloader, "changes_since", lambda *_: 1 / 0)
    answer = running.client.get("/changes")
    assert answer.status_code == 500
    assert answer.json() == {"detail": "internal error; see the log of the service"}


def test_a_body_may_hold_64_kib(service):
    asked = json.dumps({"query": "red"})
    exactly = asked + " " * (64 * 1024 - len(asked))
    headers = {"Content-Type": "application/json"}
    assert service.client.post("/search", content=exactly, headers=headers).status_code == 200
    answer = service.client.post("/search", content=exactly + " ", headers=headers)
    assert answer.status_code == 413
    assert answer.json()["detail"] == "a request may have 64 KiB; send less"

    def chunks():
        yield exactly.encode()
        yield b" "

    answer = service.client.post("/search", content=chunks(), headers=headers)
    assert answer.request.headers["transfer-encoding"] == "chunked"
    assert answer.status_code == 413
    small = service.client.post("/search", content=iter([asked[:5].encode(), asked[5:].encode()]), headers=headers)
    assert small.status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(service, monkeypatch):
    monkeypatch.setattr(middleware, "REQUEST_TIMEOUT_S", 0.1)
    answer = raw(service, b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"send it again" in answer


def test_a_head_that_does_not_end_is_cut_off(service, monkeypatch):
    for endless in (b"x" * 70_000, b"\r\nA: b" * 20_000):
        assert raw(service, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + endless) == b""
    monkeypatch.setattr(protocol, "REQUEST_TIMEOUT_S", 0.1)
    assert raw(service, b"GET /health HTTP/1.1\r\nHost: loc") == b""
    assert raw(service, b"") == b""
    monkeypatch.undo()
    assert service.client.get("/health").status_code == 200


@pytest.mark.parametrize(
    "request_",
    [
        b"\0\1\2\3\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET\r\n\r\n",
    ],
)
def test_what_is_no_http_is_400_and_harms_nobody(service, request_):
    assert raw(service, request_).startswith(b"HTTP/1.1 400 ")
    assert service.client.get("/health").status_code == 200


def test_a_connection_that_breaks_in_the_middle_of_a_body_harms_nobody(service):
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
    assert service.client.get("/health").status_code == 200


def test_who_asks_too_often_is_told_when_to_come_back(serve):
    running = serve(rate=5)
    answers = [running.client.get("/related/car") for _ in range(20)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert [answer.status_code for answer in answers[:5]] == [200] * 5
    assert refused
    assert refused[0].headers["retry-after"] == "1"
    assert refused[0].json()["detail"] == "too many requests from this address; try again in 1 s"


def test_a_share_refills_with_time_and_every_address_has_its_own():
    rates = RateLimiter(10)
    assert [rates.take("a", 0.0) for _ in range(10)] == [0.0] * 10
    assert rates.take("a", 0.0) == pytest.approx(0.1)
    assert rates.take("b", 0.0) == 0.0
    assert [rates.take("a", 0.5) > 0 for _ in range(6)] == [False] * 5 + [True]


def test_a_rate_below_one_a_second_lets_one_through():
    rates = RateLimiter(0.1)
    assert rates.take("a", 0.0) == 0.0
    assert rates.take("a", 0.0) == pytest.approx(10.0)
    assert rates.take("a", 11.0) == 0.0


def test_no_number_of_addresses_fills_the_memory_or_frees_who_asks_too_often():
    rates = RateLimiter(1)
    for number in range(MAX_CLIENTS):
        rates.take(str(number), 0.0)
    assert rates.take("one more", 0.1) == 0.0
    assert len(rates._buckets) == MAX_CLIENTS
    assert rates.take(str(MAX_CLIENTS - 1), 0.1) > 0.0
    assert rates.take("much later", 100.0) == 0.0
    assert len(rates._buckets) == 1


def test_the_token_is_never_logged(serve, caplog, capfd):
    with caplog.at_level(logging.DEBUG):
        running = serve()
        running.client.post("/feedback", json=JUDGED)
        running.client.get(f"/page/{TOKEN[:3]}")
        raw(running, b"GET /x HTTP/1.1\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n broken\0\r\n\r\n")
    out, err = capfd.readouterr()
    assert TOKEN not in caplog.text + out + err
    assert TOKEN not in repr(ServiceConfig("m", TOKEN))


@pytest.mark.parametrize("token", ["", "two words", "ключ", "a\nb"])
def test_a_token_that_no_header_can_carry_is_rejected(token):
    with pytest.raises(ConfigError, match="printable ASCII"):
        ServiceConfig("m", token)

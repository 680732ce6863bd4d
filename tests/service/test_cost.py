"""What one request may cost: bounded work, bounded answers, readers that do not read, and rates in units of work."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

import sparserank as sr
from sparserank.service import cost, protocol
from sparserank.service.middleware import RateLimiter

from .conftest import TOKEN, wait_until, world

WORDS = [f"word{number}" for number in range(90)]
ATTACK = {"query": " ".join(WORDS), "k": 100, "explain": True}


@pytest.fixture(scope="module")
def dense_model(tmp_path_factory):
    """90 common words with a hundred pairs each, in 400 documents: the attack of 1 KB that returned 23 MB."""
    draw = np.random.default_rng(0)
    docs, queries, qrels = world()
    for number in range(400):
        docs[f"d{number}"] = {"title": f"title {number}", "text": " ".join(draw.choice(WORDS, 60))}
    for number in range(0, 90, 10):  # the words of queries are known by training
        queries[f"w{number}"] = " ".join([*WORDS[number : number + 10], "red car"])
        qrels[f"w{number}"] = {"automobile-red": 1}
    ranker = sr.TextRanker(max_pairs=200).fit(docs, queries, qrels)
    pinned = {(asked, found): 0.1 for asked in WORDS for found in WORDS}
    ranker.model_ = ranker.model_.with_constraints(sr.Constraints(pinned=pinned))
    path = tmp_path_factory.mktemp("dense") / "model.safetensors"
    ranker.save(path)
    return path


def test_the_attack_is_rejected_in_one_line_before_it_costs_anything(run, dense_model):
    service = run("--no-learn", at=dense_model)
    answer = service.client.post("/search", json=ATTACK)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("the query has ")
    assert "ask for fewer results (k) or use fewer words" in answer.json()["detail"]
    few = service.client.post("/search", json=ATTACK | {"k": 10, "pairs": 20})
    assert few.status_code == 200
    assert len(few.content) < 100_000
    many = service.client.post("/search", json=ATTACK | {"k": 10})
    assert many.status_code == 422
    assert many.json()["detail"] == "the answer would have more than 20,000 pairs; limit `pairs`, or lower `k`"


def test_an_answer_has_a_largest_size(service, monkeypatch):
    monkeypatch.setattr(cost, "MAX_ANSWER_BYTES", 500)
    answer = service.client.post("/search", json={"query": "red", "k": 24, "explain": True})
    assert answer.status_code == 422
    assert "more than 500; ask for fewer results" in answer.json()["detail"]


def test_a_rate_is_one_of_work():
    rates = RateLimiter(10)
    assert rates.take("a", 0.0) == 0.0
    rates.charge("a", 20.0)
    assert rates.take("a", 0.0) == pytest.approx(1.2), "it owes 11 and needs 1"
    assert rates.take("b", 0.0) == 0.0
    assert rates.take("a", 1.3) == 0.0


def test_heavy_requests_run_one_after_another_and_leave_time_to_others():
    order: list[str] = []

    async def heavy(name: str, turns: asyncio.Semaphore) -> None:
        work = cost.Work()
        async with work.turn(turns, True):
            order.append(f"{name} begins")
            end = time.thread_time() + 0.02
            while time.thread_time() < end:
                await work.pause()
            async with work.turn(turns, True):  # it has its turn already
                order.append(f"{name} ends")
        assert work.units() == pytest.approx(0.02 / cost.UNIT_S, rel=0.5), "what others computed is not its cost"

    async def all_of_them() -> float:
        turns, began = asyncio.Semaphore(1), time.monotonic()
        await asyncio.gather(heavy("a", turns), heavy("b", turns))
        return time.monotonic() - began

    seconds = asyncio.run(all_of_them())
    assert order == ["a begins", "a ends", "b begins", "b ends"]
    assert seconds >= 0.02 / cost.HEAVY_SHARE + 0.02


def test_expensive_requests_use_up_a_rate_sooner(serve, monkeypatch):
    running = serve(rate=40)

    def accepted(body) -> int:
        answers = [running.client.post("/search", json=body).status_code for _ in range(30)]
        time.sleep(1.5)
        return answers.count(200)

    cheap = accepted({"query": "red"})
    monkeypatch.setattr(cost, "UNIT_S", 0.00005)  # as if each took ten times longer
    dear = accepted({"query": "red car", "k": 24, "explain": True})
    assert dear < cheap / 2


def test_answers_are_compressed_for_clients_that_can_read_it(service):
    body = {"query": "red car", "k": 24, "explain": True}
    plain = service.client.post("/search", json=body, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with service.client.stream("POST", "/search", json=body, headers={"Accept-Encoding": "gzip"}) as packed:
        content = b"".join(packed.iter_raw())
    assert packed.headers["content-encoding"] == "gzip"
    assert len(content) < len(plain.content) / 3
    assert json.loads(gzip.decompress(content))["results"] == plain.json()["results"]
    small = service.client.get("/ready", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_clients_that_never_read_take_no_memory_and_are_cut_off(serve, monkeypatch, dense_model):
    """The real fault: sockets that send requests with large answers and read nothing."""
    monkeypatch.setattr(protocol, "WRITE_TIMEOUT_S", 1.0)
    running = serve(model=str(dense_model), rate=1e9)
    body = json.dumps({"query": " ".join(WORDS[:20]), "k": 100, "explain": True, "pairs": 150}).encode()
    request = (
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + TOKEN.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body)
    ) + body
    whole = running.client.post("/search", content=body, headers={"Content-Type": "application/json"})
    assert whole.status_code == 200
    assert len(whole.content) > 1_000_000
    before, readers = _resident_bytes(os.getpid()), []
    for _ in range(30):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", running.port))
        reader.sendall(request * 5)
        readers.append(reader)
    state = running._server.server_state
    wait_until(lambda: len(state.connections) >= 20)
    wait_until(lambda: len(state.connections) <= 1, seconds=120)
    grown = _resident_bytes(os.getpid()) - before
    assert grown < 30 * 2.5 * len(whole.content), "at most two answers for each"
    assert running.client.get("/health").status_code == 200
    for reader in readers:
        reader.close()


def test_a_slow_client_that_does_read_gets_its_answer(serve, monkeypatch):
    monkeypatch.setattr(protocol, "WRITE_TIMEOUT_S", 2.0)
    monkeypatch.setattr(protocol, "MIN_WRITTEN_BYTES", 100)
    running = serve()
    content = running.app.state.service.reloader.model()
    monkeypatch.setattr(cost, "MAX_TEXT_CHARACTERS", 4_000_000)
    monkeypatch.setattr(type(content.ranker.index_), "text_of", lambda self, id: "red " * 1_000_000)
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", running.port))
        reader.sendall(b"GET /documents/boat-red HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer, end = b"", time.monotonic() + 6.0
        while part := reader.recv(65536):
            answer += part
            if time.monotonic() < end:
                time.sleep(0.05)
    assert answer.endswith(b"}")
    assert len(answer) > 4_000_000


def test_attackers_let_others_run(run, dense_model):
    """Six clients with the most expensive requests that are allowed are told to wait, and the service answers."""
    service = run("--no-learn", "--rate", "30", at=dense_model)
    address, stopped = str(service.client.base_url), threading.Event()
    attack = {"query": " ".join(WORDS), "k": 50, "explain": True, "pairs": 20}
    statuses: list[int] = []

    def keep_asking() -> None:
        with httpx.Client(base_url=address, timeout=60) as client:
            while not stopped.is_set():
                statuses.append(client.post("/search", json=attack).status_code)

    attackers = [threading.Thread(target=keep_asking, daemon=True) for _ in range(6)]
    for attacker in attackers:
        attacker.start()
    wait_until(lambda: statuses.count(429) > 3)
    stopped.set()
    for attacker in attackers:
        attacker.join(60)
    assert set(statuses) == {200, 429}, "the rate of an address is one of work"
    wait_until(lambda: service.search().status_code == 200)

"""`sparserank serve` as a process: starts, says where, answers, outlives its workers, ends quietly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from sparserank.service.config import ServiceConfig
from sparserank.service.server import listen, url_of
from sparserank.service.store import FeedbackStore
from sparserank.service.workers import Workers

from ..cli.calling import call
from .conftest import TOKEN, wait_until

pytestmark = pytest.mark.usefixtures("logging_as_it_was")
JUDGED = {"kind": "judgment", "query": "red car", "document": "automobile-red"}


class Process:
    """The command, in a process of its own."""

    def __init__(self, *words, env=None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sparserank", "serve", *map(str, words), "--port", "0", "--json", "--no-learn"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})},
            start_new_session=True,
        )  # fmt: skip
        line = self._process.stdout.readline()
        assert line, self._process.stderr.read()
        self.told = json.loads(line)
        token = self.told.get("token", TOKEN)
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=self.told["address"], headers=headers, timeout=60)
        assert self.client.get("/health").json()["status"] == "ok"

    def workers(self) -> list[int]:
        """The processes that answer."""
        children = subprocess.run(
            ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(self._process.pid)], capture_output=True, text=True
        ).stdout
        return [int(line.split()[0]) for line in children.splitlines() if "spawn_main" in line]

    def end(self, how=signal.SIGTERM) -> tuple[int, str]:
        """(exit code, what was logged)"""
        self.client.close()
        self._process.send_signal(how)
        _, log = self._process.communicate(timeout=60)
        return self._process.returncode, log


@pytest.fixture
def process():
    started: list[Process] = []

    def start(*words, **options) -> Process:
        started.append(Process(*words, **options))
        return started[-1]

    yield start
    for one in started:
        one.client.close()
        with suppress(ProcessLookupError):
            os.killpg(one._process.pid, signal.SIGKILL)
        one._process.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_answers_and_ends_with_code_0(model, process, how):
    service = process(model)
    assert service.told["address"].startswith("http://127.0.0.1:")
    assert service.told["workers"] == 1
    assert len(service.told["token"]) == 32
    assert service.client.post("/feedback", json=JUDGED | {"id": "s1"}).status_code == 201
    assert service.end(how) == (0, "")
    store = FeedbackStore(f"sqlite:///{model}.feedback.sqlite")
    assert [one.id for one in store.since(0)] == ["s1"]
    store.close()


def test_a_token_that_was_given_is_not_printed(model, process, tmp_path):
    service = process(model, env={"SPARSERANK_TOKEN": TOKEN})
    assert "token" not in service.told
    assert service.client.post("/feedback", json=JUDGED | {"id": "s1"}).status_code == 201
    assert service.end()[0] == 0
    (tmp_path / "token").write_text(TOKEN + "\n")
    service = process(model, "--token-file", tmp_path / "token")
    assert "token" not in service.told
    assert service.client.post("/feedback", json=JUDGED | {"id": "s1"}).status_code == 200


def test_several_workers_answer_together_and_one_that_dies_is_replaced(model, process):
    service = process(model, "--workers", "2")
    wait_until(lambda: len(service.workers()) == 2)
    before = service.workers()
    for number in range(20):  # a connection each: both workers get some
        answer = httpx.post(
            f"{service.told['address']}feedback", json=JUDGED | {"id": f"s{number}"}, timeout=60,
            headers={"Authorization": f"Bearer {service.told['token']}"},
        )  # fmt: skip
        assert answer.status_code == 201
    lines = service.client.get("/metrics").text.splitlines()
    assert "sparserank_feedback_stored_total 20.0" in lines, "of both workers"

    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: len(service.workers()) == 2 and before[0] not in service.workers())
    for _ in range(20):
        health = httpx.get(f"{service.told['address']}health", timeout=60)
        assert (health.status_code, health.json()["feedback"]) == (200, 20)
    code, log = service.end()
    assert code == 0
    assert f"worker {before[0]} ended with code -9; starting another" in log
    assert service.told["token"] not in log


def test_where_a_worker_cannot_be_replaced_the_others_answer_all_and_it_is_tried_ever_later(model, process):
    service = process(model, "--workers", "2")
    answer_all(service, 20)
    for path in (f"{model}.index", f"{model}.versions/000001.index"):  # the user's file, and the copy that is served
        Path(path).unlink()  # those who run have it mapped
        Path(path).write_bytes(b"damaged")
    killed = service.workers()[0]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: has_ended(killed))
    answer_all(service, 40)
    tried: set[int] = set()
    wait_until(lambda: tried.update(service.workers()) or len(tried) >= 4, 120)  # the one that answers, and three tries
    answer_all(service, 40)
    code, log = service.end()
    assert code == 0
    assert "Traceback" not in log
    assert "starting another" in log
    tries = [line for line in log.splitlines() if f"could not start: {model}." in line]
    assert [line.rpartition(" in ")[2] for line in tries][:2] == ["1 s", "2 s"]


def has_ended(pid: int) -> bool:
    """Whether a process has closed its sockets: it is a zombie, or gone."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return not state or state.startswith("Z")


def answer_all(service: Process, many: int) -> None:
    """A connection each, which nobody waits for long."""
    for _ in range(many):
        assert httpx.get(f"{service.told['address']}health", timeout=30).status_code == 200


def test_workers_end_with_the_process_that_started_them(model, process):
    service = process(model, "--workers", "2")
    wait_until(lambda: len(service.workers()) == 2)
    workers = service.workers()
    service.end(signal.SIGKILL)
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))  # noqa: PTH110
    (again,) = listen("127.0.0.1", int(service.told["address"].rstrip("/").rpartition(":")[2]))
    again.close()


def test_a_request_under_way_is_answered_before_the_end(model, process):
    service = process(model)
    port = int(service.told["address"].rstrip("/").rpartition(":")[2])
    body = json.dumps(JUDGED | {"id": "late"}).encode()
    head = (
        f"POST /feedback HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.told['token']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.encode() + body[:5])
        service.client.get("/health")  # so the beginning has been read
        service._process.send_signal(signal.SIGTERM)
        connection.sendall(body[5:])
        assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")
    assert service._process.wait(60) == 0


def test_workers_run_until_they_are_stopped(model):
    sockets = listen("127.0.0.1", 0, workers=2)
    assert len({one.getsockname() for one in sockets}) == 1
    address = url_of(sockets[0])
    workers = Workers(ServiceConfig(str(model), TOKEN, learn=False), sockets)
    running = threading.Thread(target=workers.run)
    running.start()
    assert httpx.get(f"{address}health", timeout=60).status_code == 200
    workers.stop()
    running.join(60)
    assert not running.is_alive()
    for one in sockets:
        one.close()


def ask_once(capsys, found) -> None:
    """Wait for the address that is printed, ask there, and tell this process to stop."""

    def told() -> bool:
        found["told"] += capsys.readouterr().out
        return "Ctrl-C" in found["told"]

    try:
        wait_until(told)
        address = next(word for word in found["told"].split() if word.startswith("http")).partition("#")[0]
        found["health"] = httpx.get(f"{address}health", timeout=60).json()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("workers", [1, 2])
def test_it_is_told_to_people_where_to_open_it(model, capsys, workers):
    found: dict = {"told": ""}
    asking = threading.Thread(target=ask_once, args=(capsys, found))
    asking.start()
    assert call("serve", model, "--port", 0, "--workers", workers, "--no-learn") == 0
    asking.join()
    told = found["told"]
    assert found["health"]["documents"] == 24
    assert f"SparseRank serves {model}" in told
    assert "/#token=" in told
    assert "open to this machine; writes by token" in told
    assert f"workers   {workers}" in told


def test_addresses_are_written_as_a_browser_takes_them():
    try:
        (listening,) = listen("::1", 0)
    except Exception:
        pytest.skip("this machine has no IPv6")
    assert url_of(listening) == f"http://[::1]:{listening.getsockname()[1]}/"
    listening.close()


def test_help_imports_nothing_of_the_service():
    code = (
        "import sys; from sparserank.cli import main\n"
        "try: main(['serve', '--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('fastapi', 'sqlalchemy', 'uvicorn', 'numba', 'scipy', 'polars') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--held-out" in done.stdout

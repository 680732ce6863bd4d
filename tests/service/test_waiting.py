"""A database that lets others wait: a request ends with a sentence, and the service stops as it should."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from sparserank.service import database, store
from sparserank.service.server import uvicorn_config
from sparserank.service.workers import SHUTDOWN_TIMEOUT_S

from .conftest import new_postgres_database, wait_until
from .process import said, stored


def test_who_waits_for_the_database_is_answered_before_the_service_must_stop():
    stopping = uvicorn_config(lambda: None).timeout_graceful_shutdown
    assert 2 * database.LOCK_TIMEOUT_S < store.DATABASE_TIMEOUT_S < stopping
    assert stopping + store.DATABASE_TIMEOUT_S < SHUTDOWN_TIMEOUT_S


def test_stopping_while_the_database_is_locked_answers_everyone_with_a_sentence(model, run):
    path = Path(f"{model}.feedback.sqlite")
    service = run("--no-learn")
    assert service.give(0).status_code == 201
    with closing(sqlite3.connect(path, isolation_level=None)) as holder, ThreadPoolExecutor(3) as pool:
        holder.execute("BEGIN IMMEDIATE")
        waiting = [pool.submit(service.give, number) for number in (1, 2, 3)]
        time.sleep(1.0)  # they are on their way
        os.kill(service.pid, signal.SIGTERM)
        answers = [one.result(60) for one in waiting]
    assert [answer.status_code for answer in answers] == [503] * 3
    assert {answer.json()["detail"] for answer in answers} == {
        "not stored: database is locked; send it again later with the same id"
    }
    assert service._process.wait(60) == 0
    assert "Traceback" not in service.said.read_text()
    assert stored(path) == ["id-0"]


@pytest.fixture
def hung(postgres, serve, monkeypatch):
    """A service whose connection to PostgreSQL leads to a process that has been stopped."""
    monkeypatch.setattr(store, "DATABASE_TIMEOUT_S", 2.0)
    service = serve(database=new_postgres_database(postgres))
    with service.app.state.service.store._database.reading() as connection:
        (pid,) = connection.execute(sa.text("SELECT pg_backend_pid()")).one()
    os.kill(pid, signal.SIGSTOP)
    yield service, pid
    os.kill(pid, signal.SIGCONT)


def test_a_postgresql_that_hangs_is_503_and_what_waited_is_stored_when_it_goes_on(hung):
    service, pid = hung
    for number in (1, 2):
        answer = service.client.post("/feedback", json=said(number))
        assert answer.status_code == 503
        assert answer.json()["detail"].startswith("the database does not answer; send it again")
    assert service.client.post("/search", json={"query": "red car"}).status_code == 200
    os.kill(pid, signal.SIGCONT)
    store = service.app.state.service.store
    wait_until(lambda: store.last() == 2)
    assert service.client.post("/feedback", json=said(1)).status_code == 200


def test_a_service_stops_even_where_its_postgresql_hangs(hung):
    service, _ = hung
    assert service.client.post("/feedback", json=said(1)).status_code == 503
    service.stop()  # within half a minute, or it fails


def test_health_is_503_where_a_postgresql_hangs_and_holds_up_nothing_else(hung):
    service, _ = hung
    assert [service.client.get("/health").status_code for _ in range(3)] == [503] * 3
    assert service.client.get("/changes").status_code == 200

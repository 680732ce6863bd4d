"""Real faults: files that are damaged, and processes that are killed."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from benchmarks.soak.service import descendants

from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.versions import VersionRegistry

from .conftest import wait_until, world
from .process import refused, said, stored, taught

# ---- files that are damaged


def spoil(path: Path) -> None:
    """Some bytes in the middle are others."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 64] = b"\x5a" * 64
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("damage", [spoil, cut])
def test_a_damaged_version_is_named_and_the_last_good_one_is_served(model, run, damage):
    damage(taught(model).path(2))
    service = run("--no-learn")
    assert service.search().json()["version"] == 1
    assert "000002.safetensors: damaged" in service.said.read_text()
    assert "serving version 1 instead of 2" in service.said.read_text()


def test_a_cut_model_is_rejected_by_name_and_where_versions_are_there_the_last_is_served(model, run):
    whole = model.read_bytes()
    cut(model)
    assert str(model) in refused(model)
    model.write_bytes(whole)
    taught(model)
    cut(model)
    service = run("--no-learn")
    assert service.search().json()["version"] == 2
    assert str(model) in service.said.read_text()


def test_a_cut_index_is_rejected_by_name(model):
    index = Path(f"{model}.index")
    cut(index)
    assert str(index) in refused(model)
    index.write_bytes(b"nonsense")
    assert str(index) in refused(model)


def test_a_damaged_list_of_versions_is_rejected_by_name_and_a_running_service_goes_on(model, run):
    pointer = taught(model).folder / "versions.json"
    service = run("--no-learn")
    pointer.write_text(pointer.read_text()[:-50])
    time.sleep(1.2)  # longer than it takes to look
    assert service.search().json()["version"] == 2
    told = refused(model)
    assert str(pointer) in told
    assert "move it away" in told


def test_a_damaged_database_is_rejected_by_name_and_left_alone(model, run):
    database = Path(f"{model}.feedback.sqlite")
    service = run("--no-learn")
    for number in range(60):
        assert service.give(number, query="red car " + "x" * 900).status_code == 201
    service.end()
    spoil_pages(database)
    before = database.read_bytes()
    told = refused(model)
    assert str(database) in told
    assert "damaged" in told
    assert database.read_bytes() == before


def test_a_database_that_is_damaged_meanwhile_is_503_and_searches_go_on(serve, model):
    running = serve()
    assert running.client.post("/feedback", json=said(1)).status_code == 201
    database = Path(f"{model}.feedback.sqlite")
    running.app.state.service.store._database.close()  # as when connections have been idle
    for path in model.parent.glob(f"{database.name}*"):
        path.write_bytes(b"\x5a" * 20_000)
    for answer in (running.client.post("/feedback", json=said(2)), running.client.get("/health")):
        assert answer.status_code == 503
        assert "file is not a database" in answer.json()["detail"]
    assert running.client.post("/search", json={"query": "red car"}).status_code == 200


def spoil_pages(database: Path) -> None:
    content = bytearray(database.read_bytes())
    content[8192:20480] = b"\x5a" * 12288
    database.write_bytes(content)


# ---- processes that are killed


def test_what_was_acknowledged_is_stored_once_however_often_the_service_is_killed(model, run):
    """Clients send what was not acknowledged again, under the same id."""
    database, acknowledged, number = Path(f"{model}.feedback.sqlite"), [], 0
    for turn in range(3):
        service = run("--no-learn", "--workers", "2")
        if turn:
            again = [service.give(one) for one in range(number)]  # all of them, to be sure
            assert {answer.status_code for answer in again} <= {200, 201}
            assert [answer.status_code for answer in again[: len(acknowledged)]] == [200] * len(acknowledged)
        until = number + 60
        with suppress(httpx.TransportError):
            while number < until:
                number += 1
                assert service.give(number - 1).status_code == 201
                acknowledged.append(f"id-{number - 1}")
                if number == until - 30:
                    victims = descendants(service.pid)
                    os.kill(victims[-1] if turn == 0 else service.pid, signal.SIGKILL)
        service.kill()
        found = stored(database)
        assert set(acknowledged) <= set(found)
        assert len(found) == len(set(found)), "none twice"
        assert VersionRegistry.open(model).load().search("red car")
        acknowledged = [f"id-{one}" for one in range(number) if f"id-{one}" in found]
        number = len(acknowledged)


def test_a_round_that_is_killed_leaves_no_half_version_in_use(model, run):
    docs, queries, qrels = world()
    judged = model.parent / "judged"
    write_beir(judged, Collection("judged", Documents.of(docs), queries, {"dev": qrels}))
    service = run("--held-out", str(judged), "--learn-every", "0.2")
    assert service.give(1, query="red car of wood").status_code == 201
    wait_until(lambda: len(descendants(service.pid)) > 1)
    for pid in descendants(service.pid)[1:]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    versions = VersionRegistry.open(model)
    assert [versions.load(one.number) is not None for one in versions.list()]
    assert service.search().status_code == 200
    wait_until(lambda: service.client.get("/model").json()["learner"]["last"]["seen"] == 1)
    for one in VersionRegistry.open(model).list():
        assert versions.load(one.number).search("red car")

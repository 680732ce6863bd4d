"""`cp new.index MODEL.index` over a served index, and truncation: no worker dies, and the service answers as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path

import httpx
import pytest
from benchmarks.soak.service import descendants

import sparserank as sr
from sparserank.versions import VersionRegistry

from .conftest import wait_until, world


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Path:
    """Another model: its index is larger and belongs to other documents."""
    docs = {f"other-{number}": f"violet plane {number} over mountain number{number}" for number in range(200)}
    path = tmp_path_factory.mktemp("other") / "other.safetensors"
    sr.TextRanker("bm25").fit(docs).save(path)
    return path


class Searches(threading.Thread):
    """Searches for many words, so that every part of the index is read, until `stop`."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address, self._stopped, self.answers, self.lost = address, threading.Event(), [], []

    def run(self) -> None:
        queries = list(world()[1].values())
        with httpx.Client(base_url=self._address, timeout=60) as client:
            while not self._stopped.is_set():
                query = queries[len(self.answers) % len(queries)]
                try:
                    answer = client.post("/search", json={"query": query, "k": 24, "explain": True})
                    self.answers.append((query, answer.status_code, [hit["id"] for hit in answer.json()["results"]]))
                except httpx.TransportError as error:
                    self.lost.append(repr(error))
                    return

    def stop(self) -> None:
        self._stopped.set()
        self.join(60)


def overwrite(index: Path, other: Path) -> None:
    """As a person does it: the bytes of the served file change under the same name."""
    subprocess.run(["cp", f"{other}.index", index], check=True)


def truncate(index: Path, other: Path) -> None:
    os.truncate(index, 0)


@pytest.mark.parametrize("fault", [overwrite, truncate])
def test_an_index_that_is_overwritten_while_it_is_served_ends_no_process(run, model, other, fault):
    service = run("--no-learn", "--workers", "2")
    index, workers = Path(f"{model}.index"), descendants(service.pid)
    searches = Searches(str(service.client.base_url))
    searches.start()
    wait_until(lambda: len(searches.answers) >= 24)
    inode = index.stat().st_ino
    fault(index, other)
    assert index.stat().st_ino == inode, "the same file, in place"
    so_far = len(searches.answers)
    wait_until(lambda: len(searches.answers) >= so_far + 48 or not searches.is_alive())
    searches.stop()
    assert searches.lost == []
    assert {status for _, status, _ in searches.answers} == {200}
    assert len({(query, tuple(found)) for query, _, found in searches.answers}) == 24, "the same answers all the time"
    assert descendants(service.pid) == workers
    if fault is truncate:
        wait_until(lambda: f"{index}: " in service.said.read_text())
        assert "the last intact copy of the index stays" in service.said.read_text()
    service.kill()
    again = run("--no-learn")
    assert again.search().json()["results"][0]["id"] == "automobile-red", "and after a restart"


def test_rollback_works_after_the_index_was_overwritten(model, other):
    versions = VersionRegistry.open(model)
    versions.add(versions.load().set_pair("car", "boat", 50.0), "taught by hand")
    before = versions.load(1).search("red car")
    overwrite(Path(f"{model}.index"), other)
    assert versions.rollback(1).number == 1
    assert versions.load().search("red car") == before


def test_an_index_of_the_same_model_is_taken_up_when_it_is_complete(serve, model):
    """`sparserank index` writes a whole file; a copy by hand grows for a while."""
    running = serve()
    docs = {**world()[0], "x": {"title": "red plane", "text": "It flies over mountains."}}
    beside = model.parent / "beside.index"
    sr.load(model).over(docs).index_.save(beside)
    content = beside.read_bytes()
    with Path(f"{model}.index").open("r+b") as file:
        for start in range(0, len(content), 10_000):
            file.write(content[start : start + 10_000])
            file.flush()
            assert running.client.get("/health").json()["documents"] == 24
    wait_until(lambda: running.client.get("/health").json()["documents"] == 25)
    assert "x" in [hit["id"] for hit in running.client.post("/search", json={"query": "red"}).json()["results"]]


def test_an_index_that_is_named_is_copied_too(run, model, other, tmp_path):
    elsewhere = tmp_path / "elsewhere.index"
    shutil.copy(f"{model}.index", elsewhere)
    Path(f"{model}.index").unlink()
    service = run("--no-learn", "--index", str(elsewhere))
    assert service.search().status_code == 200
    overwrite(elsewhere, other)
    os.truncate(elsewhere, 10)
    assert [service.search().status_code for _ in range(20)] == [200] * 20

"""Real faults: disks that are full, folders that can only be read, damaged files, processes that are killed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest
from benchmarks.soak.service import descendants

from sparserank.data.beir import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.engine.versions import Versions
from sparserank.errors import DataError
from sparserank.service.feedback import FeedbackStore

from .conftest import TOKEN, wait_until, world


class Process:
    """`sparserank serve` in a process group of its own, reached over HTTP."""

    def __init__(self, model: Path, *words: str, said: Path, env: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "sparserank", "serve", str(model), "--port", "0", "--json", *words]
        self.said = said
        with self.said.open("w") as errors:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
                env={**os.environ, "SPARSERANK_TOKEN": TOKEN, **(env or {})},
            )  # fmt: skip
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.said.read_text()
        self.client = httpx.Client(
            base_url=json.loads(line)["address"], headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60
        )
        self.pid = self._process.pid

    def give(self, number: int, **other) -> httpx.Response:
        return self.client.post("/feedback", json=said(number) | other)

    def search(self) -> httpx.Response:
        return self.client.post("/search", json={"query": "red car"})

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def end(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, sign: int) -> None:
        self.client.close()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, sign)
        try:
            self._process.wait(30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.stdout.close()


@pytest.fixture
def run(model, tmp_path) -> Iterator[Callable[..., Process]]:
    """Start a service of the test's model, or of another; it ends with the test."""
    started: list[Process] = []

    def start(*words: str, at: Path = model, **options) -> Process:
        started.append(Process(at, *words, said=tmp_path / f"said-{len(started)}", **options))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def said(number: int, query: str = "red car") -> dict:
    return {"id": f"id-{number}", "kind": "judgment", "query": query, "document": "boat-red", "grade": 1}


def refused(model: Path, *words: str) -> str:
    """What a service that does not start says; one sentence, and code 2."""
    command = [sys.executable, "-m", "sparserank", "serve", str(model), "--port", "0", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("sparserank: ")
    assert "Traceback" not in ended.stderr
    return last


def stored(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [one for (one,) in connection.execute("SELECT id FROM sparserank_feedback ORDER BY number")]


def taught(model: Path) -> Versions:
    """A second version."""
    versions = Versions.open(model)
    versions.add(versions.load().set_pair("car", "boat", 50.0), "taught by hand")
    return versions


# ---- disks that are full


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A disk of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=777", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip("no small disk can be mounted here: that takes the superuser (Linux)")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> Path:
    """Until nothing more can be written."""
    filling = disk / "filling"
    with filling.open("wb", buffering=0) as file:
        try:
            for size in (1 << 16, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"x" * size)
            file.write(b"x")
        except OSError as error:
            assert error.errno == errno.ENOSPC
            return filling
    raise AssertionError("the disk is not full")


@pytest.mark.parametrize("workers", [1, 2])
def test_on_a_full_disk_feedback_is_refused_in_a_sentence_searches_go_on_and_nothing_is_lost(
    model, small_disk, run, workers
):
    """The folder that holds the figures of workers is on that disk too."""
    database = small_disk / "f.sqlite"
    service = run(
        "--database", f"sqlite:///{database}", "--no-learn", "--workers", str(workers), env={"TMPDIR": str(small_disk)}
    )
    assert [service.give(number).status_code for number in range(3)] == [201, 201, 201]
    filling = fill(small_disk)
    acknowledged, full = ["id-0", "id-1", "id-2"], None
    for number in range(3, 400):  # what SQLite has set aside may take some more
        full = service.give(number, query=f"red car {'x' * 900}")
        if full.status_code != 201:
            break
        acknowledged.append(f"id-{number}")
    assert full.status_code == 503
    assert "disk is full" in full.json()["detail"] or "disk I/O error" in full.json()["detail"]
    assert full.headers["retry-after"] == "5"
    for _ in range(20):
        assert service.search().status_code == 200
    explained = service.client.post("/explain", json={"query": "red car", "document": "boat-red"})
    assert explained.status_code == 200
    assert [service.client.get(path).status_code for path in ("/health", "/model", "/metrics", "/nowhere")] == [
        200, 200, 200, 404,
    ]  # fmt: skip
    filling.unlink()
    assert service.give(1000).status_code == 201, "it works again once there is room"
    service.kill()
    assert stored(database) == [*acknowledged, "id-1000"]


def test_a_version_that_finds_no_room_is_not_served_and_leaves_nothing_behind(model, small_disk):
    for ending in ("", ".index"):
        shutil.copy(f"{model}{ending}", small_disk)
    versions = Versions.open(small_disk / model.name)
    ranker = versions.load()
    filling = fill(small_disk)
    before = sorted(versions.folder.iterdir())
    with pytest.raises(DataError, match=r"000002\.safetensors: cannot be written: No space left on device"):
        versions.add(ranker.set_pair("car", "boat", 50.0), "no room")
    assert sorted(versions.folder.iterdir()) == before
    assert Versions.open(small_disk / model.name).current().number == 1
    filling.unlink()
    assert versions.add(ranker, "room").number == 2


def test_a_model_on_a_full_disk_is_served_without_learning(model, small_disk, run):
    for ending in ("", ".index"):
        shutil.copy(f"{model}{ending}", small_disk)
    fill(small_disk)
    database = model.parent / "f.sqlite"
    service = run("--database", f"sqlite:///{database}", at=small_disk / model.name)
    assert service.search().status_code == 200
    assert service.give(1).status_code == 201
    assert service.client.get("/model").json()["learner"] == {"learning": False}


# ---- folders that can only be read


@pytest.fixture
def lock() -> Iterator[Callable[[Path], None]]:
    """Make a file or a folder one that can only be read, even by the superuser; for the test."""
    locked: list[Path] = []

    def only_read(path: Path) -> None:
        if os.getuid():
            path.chmod(0o555 if path.is_dir() else 0o444)
            return
        for command in (["mount", "--bind", path, path], ["mount", "-o", "remount,ro,bind", path]):
            if subprocess.run(command, capture_output=True).returncode:
                pytest.skip("nothing can be mounted here, and the superuser may write everywhere")
            locked.append(path)

    yield only_read
    for path in set(locked):
        subprocess.run(["umount", "--lazy", path], check=True)


@pytest.fixture
def placed(model, tmp_path) -> Path:
    """The model in a folder of its own."""
    folder = tmp_path / "models"
    folder.mkdir()
    for ending in ("", ".index"):
        shutil.copy(f"{model}{ending}", folder)
    return folder / model.name


def test_a_database_in_a_folder_that_cannot_be_written_is_refused_by_name(placed, lock):
    lock(placed.parent)
    told = refused(placed, "--no-learn")
    assert f"{placed}.feedback.sqlite: unable to open database file" in told
    assert sorted(path.name for path in placed.parent.iterdir()) == [placed.name, f"{placed.name}.index"]


def test_a_model_that_can_only_be_read_is_served_and_feedback_is_kept_elsewhere(placed, lock, run, tmp_path):
    lock(placed.parent)
    service = run("--database", f"sqlite:///{tmp_path}/f.sqlite", at=placed)
    assert service.search().status_code == 200
    assert service.give(1).status_code == 201
    assert "no version can be added: " in service.said.read_text()
    assert service.client.get("/model").json()["learner"] == {"learning": False}
    back = service.client.post("/model/rollback", json={"to": 1})
    assert back.status_code == 409
    assert "cannot be written" in back.json()["detail"]


def test_a_database_that_can_only_be_read_is_503_for_feedback_and_searches_go_on(model, lock, run):
    database = Path(f"{model}.feedback.sqlite")
    FeedbackStore(f"sqlite:///{database}").close()
    lock(database)
    service = run("--no-learn")
    answer = service.give(1)
    assert answer.status_code == 503
    assert "readonly database" in answer.json()["detail"]
    assert service.search().status_code == 200
    assert stored(database) == []


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
    assert "version 1 is served instead of 2" in service.said.read_text()


def test_a_cut_model_is_refused_by_name_and_where_versions_are_there_the_last_is_served(model, run):
    whole = model.read_bytes()
    cut(model)
    assert str(model) in refused(model)
    model.write_bytes(whole)
    taught(model)
    cut(model)
    service = run("--no-learn")
    assert service.search().json()["version"] == 2
    assert str(model) in service.said.read_text()


def test_a_cut_index_is_refused_by_name(model):
    index = Path(f"{model}.index")
    cut(index)
    assert str(index) in refused(model)
    index.write_bytes(b"nonsense")
    assert str(index) in refused(model)


def test_a_damaged_list_of_versions_is_refused_by_name_and_a_running_service_goes_on(model, run):
    pointer = taught(model).folder / "versions.json"
    service = run("--no-learn")
    pointer.write_text(pointer.read_text()[:-50])
    time.sleep(1.2)  # longer than it takes to look
    assert service.search().json()["version"] == 2
    told = refused(model)
    assert str(pointer) in told
    assert "move it away" in told


def test_a_damaged_database_is_refused_by_name_and_left_alone(model, run):
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
        until = number + 150
        with suppress(httpx.TransportError):
            while number < until:
                number += 1
                assert service.give(number - 1).status_code == 201
                acknowledged.append(f"id-{number - 1}")
                if number == until - 75:
                    victims = descendants(service.pid)
                    os.kill(victims[-1] if turn == 0 else service.pid, signal.SIGKILL)
        service.kill()
        found = stored(database)
        assert set(acknowledged) <= set(found)
        assert len(found) == len(set(found)), "none twice"
        assert Versions.open(model).load().search("red car")
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
    versions = Versions.open(model)
    assert [versions.load(one.number) is not None for one in versions.list()]
    assert service.search().status_code == 200
    wait_until(lambda: service.client.get("/model").json()["learner"]["last"]["seen"] == 1)
    for one in Versions.open(model).list():
        assert versions.load(one.number).search("red car")

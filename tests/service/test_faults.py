"""Real faults: disks that are full, and folders and files that can only be read."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sparserank.errors import DataError
from sparserank.service.store import FeedbackStore
from sparserank.versions import VersionRegistry

from .process import refused, stored

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
def test_on_a_full_disk_feedback_is_rejected_in_a_sentence_searches_go_on_and_nothing_is_lost(
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
    versions = VersionRegistry.open(small_disk / model.name)
    ranker = versions.load()
    filling = fill(small_disk)
    before = sorted(versions.folder.iterdir())
    with pytest.raises(DataError, match=r"000002\.safetensors: cannot be written: No space left on device"):
        versions.add(ranker.set_pair("car", "boat", 50.0), "no room")
    assert sorted(versions.folder.iterdir()) == before
    assert VersionRegistry.open(small_disk / model.name).current().number == 1
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


# ---- a database that is gone


@pytest.mark.parametrize("workers", [1, 2])
def test_feedback_is_503_while_the_database_is_gone_and_none_that_was_acknowledged_is_lost(model, run, workers):
    database, away = Path(f"{model}.feedback.sqlite"), model.parent / "away"
    service = run("--workers", str(workers), "--learn-every", "0.2")
    assert service.give(1).status_code == 201
    away.mkdir()
    for path in model.parent.glob(f"{database.name}*"):
        path.rename(away / path.name)
    gone = [service.give(number) for number in range(2, 8)]
    assert {answer.status_code for answer in gone} == {503}
    assert "database file" in gone[-1].json()["detail"] or "was removed" in gone[-1].json()["detail"]
    assert service.client.get("/health").status_code == 503
    assert service.search().status_code == 200
    assert not database.exists()
    for path in away.iterdir():
        path.rename(model.parent / path.name)
    for _ in range(workers):  # a worker that has not looked since finds the very file that it had
        assert service.give(8).status_code in (200, 201)
    service.kill()
    assert stored(database) == ["id-1", "id-8"]


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


def test_a_database_in_a_folder_that_cannot_be_written_is_rejected_by_name(placed, lock):
    lock(placed.parent)
    told = refused(placed, "--no-learn")
    assert f"{placed}.feedback.sqlite: unable to open database file" in told
    assert sorted(path.name for path in placed.parent.iterdir()) == [placed.name, f"{placed.name}.index"]


def test_a_model_that_can_only_be_read_is_served_and_feedback_is_kept_elsewhere(placed, lock, run, tmp_path):
    lock(placed.parent)
    service = run("--database", f"sqlite:///{tmp_path}/f.sqlite", at=placed)
    assert service.search().status_code == 200
    assert service.give(1).status_code == 201
    assert "versions cannot be added: " in service.said.read_text()
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

"""How a service ends, and what it leaves behind: nothing is said that is no trouble."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents

from .conftest import wait_until, world
from .process import Process


def rounds(pid: int) -> list[int]:
    """The processes in which a service learns."""
    children = [child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
    return [int(child) for child in children if b"learning.learner" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_ctrl_c_in_the_middle_of_a_round_of_learning_is_no_trouble(run, tmp_path):
    docs, queries, qrels = world()
    write_beir(tmp_path / "judged", Collection("judged", Documents.of(docs), queries, {"dev": qrels}))
    service = run("--held-out", str(tmp_path / "judged"), "--learn-every", "0.2")
    assert service.give(1, query="red car of wood").status_code == 201
    wait_until(lambda: bool(rounds(service.pid)))
    learning = rounds(service.pid)
    os.killpg(service.pid, signal.SIGINT)  # as a terminal does
    assert service._process.wait(60) == 0
    said = service.said.read_text()
    assert "Traceback" not in said
    assert "without an outcome" not in said
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in learning))


def test_the_figures_of_a_service_that_was_killed_are_removed_by_the_next_and_those_of_others_stay(run, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def folders() -> set[Path]:
        return set(temporary.glob("sparserank-figures-*"))

    def started() -> tuple[Process, set[Path]]:
        before = folders()
        made = run("--workers", "2", "--no-learn", env={"TMPDIR": str(temporary)})
        wait_until(lambda: bool(folders() - before))
        return made, folders() - before

    killed, left = started()
    others, kept = started()
    killed.kill()
    assert left <= folders()
    last, own = started()
    assert folders() == kept | own
    assert others.client.get("/metrics").status_code == 200
    last.end()
    others.end()
    assert folders() == set()

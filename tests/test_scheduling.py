"""Which worker runs what: one builds the module fixtures of a file and runs all of its tests; one runs all of Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from .conftest import pytest_xdist_make_scheduler

IDS = [
    "src/sparserank/spark/session.py::sparserank.spark.session.session", "tests/spark/test_clicks.py::test_a",
    "tests/spark/test_text.py::test_a", "tests/data/test_files.py::test_a", "tests/data/test_files.py::test_b[x@y::z]",
    "README.md::README.md", "tests/data/test_files.py::test_c", "docs/spark.md::spark.md",
]  # fmt: skip


class Worker:
    """What a scheduler knows of a worker."""

    shutting_down = False

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.started: list[str] = []

    def send_runtest_some(self, positions: list[int]) -> None:
        self.started += [IDS[position] for position in positions]

    def shutdown(self) -> None:
        self.shutting_down = True


def test_one_worker_runs_the_tests_of_a_file_and_one_runs_all_of_spark(request, monkeypatch):
    pytest.importorskip("xdist", reason="workers need an extra: pip install 'sparserank[dev]'")
    monkeypatch.setattr(request.config.option, "tx", ["popen", "popen"])
    monkeypatch.setattr(request.config.option, "loadscopereorder", True)
    scheduler = pytest_xdist_make_scheduler(request.config, None)
    first, second = workers = Worker("gw0"), Worker("gw1")
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, IDS)
    scheduler.schedule()
    assert first.started == IDS[:3]
    assert second.started == [IDS[3], IDS[4], IDS[6]]
    assert [list(tests) for tests in scheduler.workqueue.values()] == [[IDS[5]], [IDS[7]]]

"""`/model` answers the same in every worker, also while one of them learns."""

from __future__ import annotations

import fcntl
from pathlib import Path

import httpx

from .conftest import wait_until


def test_every_worker_says_the_same_about_the_model(run, model):
    service = run("--workers", "2", "--learn-every", "0.2")
    service.search()

    def answers() -> list[dict]:
        return [httpx.get(f"{service.client.base_url}model", timeout=60).json() for _ in range(12)]

    wait_until(lambda: (Path(f"{model}.versions") / "learner.lock").exists())
    found = answers()
    assert all(answer == found[0] for answer in found)
    assert found[0]["learner"]["working"] is False
    with (Path(f"{model}.versions") / "round.lock").open("a") as working:
        fcntl.flock(working, fcntl.LOCK_EX)
        assert [answer["learner"]["working"] for answer in answers()] == [True] * 12

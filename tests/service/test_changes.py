"""GET /changes: what was compared once is kept, and comparing costs what it computes."""

from __future__ import annotations

import threading
import time

import pytest

from sparserank.service import reloader
from sparserank.versions import VersionRegistry

from .conftest import wait_until


@pytest.fixture
def versions(model) -> VersionRegistry:
    """Four versions, each with one more pair than its parent."""
    made = VersionRegistry.open(model)
    for number, thing in enumerate(("boat", "bicycle", "automobile"), start=2):
        made.add(made.load().set_pair("car", thing, 10.0 * number), "taught by hand")
    return made


def changes(running, number: int):
    return running.client.get("/changes", params={"version": number})


def test_each_two_versions_are_compared_once(serve, versions, monkeypatch):
    compared, compute = [], reloader.diff
    monkeypatch.setattr(reloader, "diff", lambda *args: compared.append(args) or compute(*args))
    running = serve(model=str(versions.model))
    first = {number: changes(running, number).json() for number in (2, 3, 4)}
    assert [one["changes"][0]["document"] for one in first.values()] == ["boat", "bicycl", "automobil"]
    assert {number: changes(running, number).json() for number in (4, 2, 3)} == first
    assert len(compared) == 3
    itself = running.client.get("/changes", params={"days": 0}).json()
    assert (itself["before"], itself["after"], itself["changes"]) == (4, 4, [])
    assert len(compared) == 3


def test_only_so_many_comparisons_are_kept(serve, versions, monkeypatch):
    monkeypatch.setattr(reloader, "MAX_COMPARISONS", 2)
    running = serve(model=str(versions.model))
    for number in (2, 3, 4):
        changes(running, number)
    assert list(running.app.state.service.reloader._changes) == [(2, 3), (3, 4)]


def test_a_comparison_beside_another_gets_429_and_what_is_known_is_answered(serve, versions, monkeypatch):
    compute, entered, go_on = reloader.diff, threading.Event(), threading.Event()
    running = serve(model=str(versions.model))
    known = changes(running, 2).json()

    def slow(*args):
        entered.set()
        assert go_on.wait(30)
        return compute(*args)

    monkeypatch.setattr(reloader, "diff", slow)
    found = []
    first = threading.Thread(target=lambda: found.append(changes(running, 3)))
    first.start()
    assert entered.wait(30)
    for number in (3, 4):
        answer = changes(running, number)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert answer.json() == {"detail": "two other versions are being compared; try again in a moment"}
    assert changes(running, 2).json() == known
    go_on.set()
    first.join(30)
    assert found[0].status_code == 200
    assert changes(running, 4).status_code == 200


def test_a_comparison_is_charged_for_the_time_of_its_thread(serve, versions, monkeypatch):
    compute = reloader.diff

    def busy(*args):
        end = time.thread_time() + 0.3
        while time.thread_time() < end:
            pass
        return compute(*args)

    monkeypatch.setattr(reloader, "diff", busy)
    running = serve(model=str(versions.model), rate=100)
    assert changes(running, 2).status_code == 200
    refused = changes(running, 2)
    assert refused.status_code == 429, "0.3 s are 600 units, and the rate is 100 a second"
    assert int(refused.headers["retry-after"]) >= 4
    wait_until(lambda: changes(running, 2).status_code == 200)

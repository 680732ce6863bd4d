"""A model, services, and visits to them. What needs an extra is imported where it is used."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sparserank as sr

from .world import world

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from .browsing import Running, Visits


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "world.safetensors"
    sr.TextRanker(max_pairs=300).fit(*world()).save(path)
    return path


@pytest.fixture
def run(model: Path, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """run(**settings) starts a service over a copy of the model; all are stopped at the end."""
    from .browsing import Running, ServiceConfig

    started: list[Running] = []

    def start(**settings: object) -> Running:
        own = tmp_path / "own"
        if not own.exists():
            shutil.copytree(model.parent, own)
        made = ServiceConfig(str(own / model.name), **{"token": "secret", "learn": False, **settings})
        started.append(Running(made).start())
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="module")
def service(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for all tests that change nothing in it."""
    from .browsing import Running, ServiceConfig

    own = tmp_path_factory.mktemp("service")
    for file in model.parent.iterdir():
        shutil.copy(file, own)
    running = Running(ServiceConfig(str(own / model.name), token="secret", learn=False)).start()
    yield running
    running.stop()


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    from .browsing import Visits

    made = Visits(browser)
    yield made
    made.close()
    assert made.unexpected() == []

"""A small model, services that really listen, and databases that are really there."""

from __future__ import annotations

import itertools
import logging
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from benchmarks.soak.postgres import missing, new_database, postgresql

import sparserank as sr
from sparserank.service.app import create_app
from sparserank.service.config import ServiceConfig
from sparserank.service.server import listen, url_of, uvicorn_config

from .process import TOKEN, Process

COLOURS = ("red", "green", "blue", "white", "black", "brown", "grey", "pink")


def world():
    """Who asks for a car wants the automobile of that colour, which no document calls a car."""
    docs, queries, qrels = {}, {}, {}
    for number, colour in enumerate(COLOURS):
        for thing, other in (("automobile", "wheel"), ("bicycle", "chain"), ("boat", "sail")):
            text, metadata = f"It has a {other} number{number}.", {"thing": thing, "number": number}
            docs[f"{thing}-{colour}"] = {"title": f"{colour} {thing}", "text": text, "metadata": metadata}
        for asked, thing in (("car", "automobile"), ("bike", "bicycle"), ("ship", "boat")):
            queries[f"{asked}-{colour}"] = f"{colour} {asked}"
            qrels[f"{asked}-{colour}"] = {f"{thing}-{colour}": 1}
    return docs, queries, qrels


@pytest.fixture(scope="session")
def small_model(tmp_path_factory) -> Path:
    """A model file that nobody changes."""
    path = tmp_path_factory.mktemp("small") / "model.safetensors"
    sr.TextRanker(max_pairs=200).fit(*world()).save(path)
    return path


@pytest.fixture
def model(small_model, tmp_path) -> Path:
    """A model file of one test."""
    for ending in ("", ".index"):
        shutil.copy(f"{small_model}{ending}", tmp_path)
    return tmp_path / small_model.name


@pytest.fixture
def run(model, tmp_path) -> Iterator[Callable[..., Process]]:
    """Start a service, as a process, of the test's model or of another; it ends with the test."""
    started: list[Process] = []

    def start(*words: str, at: Path = model, **options) -> Process:
        started.append(Process(at, *words, said=tmp_path / f"said-{len(started)}", **options))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def logging_as_it_was() -> Iterator[None]:
    """`serve` in this process says how it logs; that is undone."""
    loggers = [logging.getLogger(name) for name in ("sparserank", "uvicorn")]
    before = [(list(one.handlers), one.level) for one in loggers]
    yield
    for one, (handlers, level) in zip(loggers, before, strict=True):
        one.handlers, one.level = handlers, level


class Running:
    """A service in a thread of this process, reached over HTTP."""

    def __init__(self, settings: ServiceConfig) -> None:
        self.app = create_app(settings)
        (self._listening,) = listen("127.0.0.1", 0)
        self.address = url_of(self._listening)
        self._server = uvicorn.Server(uvicorn_config(self.app))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]}, daemon=True)
        self._thread.start()
        wait_until(lambda: self._server.started)
        self.client = httpx.Client(base_url=self.address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
        self.port = int(self.address.rstrip("/").rpartition(":")[2])

    def stop(self) -> None:
        self.client.close()
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.fixture
def serve(model) -> Iterator[Callable[..., Running]]:
    """Start a service of the test's model with some settings; it ends with the test."""
    running: list[Running] = []

    def start(**options) -> Running:
        options = {"model": str(model), "token": TOKEN, "learn": False} | options
        running.append(Running(ServiceConfig(**options)))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture(scope="module")
def service(small_model, tmp_path_factory) -> Iterator[Running]:
    """A service that the tests of a file share."""
    folder = tmp_path_factory.mktemp("shared")
    for ending in ("", ".index"):
        shutil.copy(f"{small_model}{ending}", folder)
    running = Running(ServiceConfig(str(folder / small_model.name), TOKEN, learn=False, rate=1e9))
    yield running
    running.stop()


def wait_until(so: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something that will be so soon."""
    end = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < end, "it did not come to be so"
        time.sleep(0.02)


def python(code: str, *words: str, **options) -> subprocess.Popen[str]:
    """Another process of the same Python."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server that is thrown away afterwards: the URL of its first database, reached by a socket file."""
    if why := missing():
        pytest.skip(why)
    with postgresql("fsync=off") as url:
        yield url


_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path) -> str:
    """The URL of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/feedback.sqlite"
    return new_postgres_database(request.getfixturevalue("postgres"))


def new_postgres_database(url: str) -> str:
    return new_database(url, f"one_{next(_numbers)}")

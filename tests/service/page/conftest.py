"""A real Chromium on a real service over a small world, for the tests of the page."""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import sparserank as sr

pytest.importorskip("playwright", reason="the page is tested with playwright: pip install 'sparserank[dev]'")
pytest.importorskip("fastapi", reason="the service is an extra: pip install 'sparserank[service]'")

import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from sparserank.service.app import create_app
from sparserank.service.settings import Settings

COLOURS = ("red", "green", "blue", "white", "black", "brown", "grey", "pink", "gold", "teal")
THINGS = (("car", "automobile", "wheels"), ("bike", "bicycle", "chain"), ("ship", "boat", "sails"))


def world() -> tuple[dict[str, dict[str, str]], dict[str, str], dict[str, dict[str, int]]]:
    """Who asks for a car wants the automobile of that colour, which no document calls a car."""
    docs, queries, qrels = {}, {}, {}
    for number, colour in enumerate(COLOURS):
        for asked, thing, part in THINGS:
            text = f"A {colour} {thing} with {part}. It is number {number} of its kind, and the {thing} is kept dry."
            docs[f"{thing}-{colour}"] = {"title": f"The {colour} {thing}", "text": text}
            queries[f"{asked}-{colour}"] = f"{colour} {asked}"
            qrels[f"{asked}-{colour}"] = {f"{thing}-{colour}": 1}
    return docs, queries, qrels


def write_world(folder: Path) -> Path:
    """The judged queries as a BEIR folder; the split dev has one in three of them."""
    docs, queries, qrels = world()
    (folder / "qrels").mkdir(parents=True)
    corpus = [json.dumps({"_id": name, **fields}) for name, fields in docs.items()]
    (folder / "corpus.jsonl").write_text("\n".join(corpus) + "\n")
    asked = [json.dumps({"_id": name, "text": text}) for name, text in queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(asked) + "\n")
    rows = [f"{query}\t{doc}\t{grade}" for query in list(qrels)[::3] for doc, grade in qrels[query].items()]
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(rows) + "\n")
    return folder


@dataclass
class Running:
    """A service in a thread of this process: it can be stopped, and started again at the same address."""

    settings: Settings
    port: int = 0
    server: uvicorn.Server | None = None
    thread: threading.Thread | None = None

    def start(self) -> Running:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(create_app(self.settings), log_level="error", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def store(self):
        assert self.server is not None
        return self.server.config.app.state.service.store

    def stop(self) -> None:
        if self.server is None or self.thread is None:
            return
        self.server.should_exit = True
        self.thread.join()
        self.server = self.thread = None


@dataclass
class Visits:
    """Pages opened by a test; whatever the browser complained of, and the test did not expect, fails it at its end."""

    browser: Browser
    expected: str = "^$"
    complaints: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def open(self, url: str, width: int = 1280, height: int = 860, scheme: str = "light") -> Page:
        context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(15_000)
        context.add_init_script(
            "addEventListener('securitypolicyviolation', e => console.error('CSP', e.violatedDirective, e.blockedURI))"
        )
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"thrown: {error}"))
        page.goto(url if "#" in url else f"{url}#token=secret")
        return page

    def close(self) -> None:
        for context in self.contexts:
            context.close()
        assert [said for said in self.complaints if not re.search(self.expected, said)] == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on the path: install it with the system's packages (apt install chromium)")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "world.safetensors"
    sr.TextRanker(max_pairs=300).fit(*world()).save(path)
    return path


@pytest.fixture
def run(model: Path, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """run(**settings) starts a service over a copy of the model; all are stopped at the end."""
    started: list[Running] = []

    def start(**settings: object) -> Running:
        own = tmp_path / "own"
        if not own.exists():
            shutil.copytree(model.parent, own)
        made = Settings(str(own / model.name), **{"token": "secret", "learn": False, **settings})
        started.append(Running(made).start())
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="module")
def service(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for all tests that change nothing in it."""
    own = tmp_path_factory.mktemp("service")
    for file in model.parent.iterdir():
        shutil.copy(file, own)
    running = Running(Settings(str(own / model.name), token="secret", learn=False)).start()
    yield running
    running.stop()


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    made = Visits(browser)
    yield made
    made.close()

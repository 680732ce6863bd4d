"""A real Chromium on a real service, for the tests of the page; where either is missing, they are skipped."""

from __future__ import annotations

import re
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the page is tested with playwright: pip install 'sparserank[dev]'")
pytest.importorskip("fastapi", reason="the service is an extra: pip install 'sparserank[service]'")

import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, expect

from sparserank.service.app import create_app
from sparserank.service.config import ServiceConfig

expect.set_options(timeout=20_000)  # the first search of a page may wait for other tests
__all__ = ["Running", "Visits", "expect", "number", "picture", "search"]

SCREENSHOTS = Path(__file__).parent.parent.parent.parent / "reports" / "screenshots"


@dataclass
class Running:
    """A service in a thread of this process: it can be stopped, and started again at the same address."""

    settings: ServiceConfig
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
    """Pages opened by a test; what the browser complains of, and the test does not expect, fails it at its end."""

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

    def unexpected(self) -> list[str]:
        """What the page complained about; a test may type before Chromium gives the first field the focus."""
        expected = f"{self.expected}|Autofocus processing was blocked"
        return [said for said in self.complaints if not re.search(expected, said)]


def picture(page: Page, name: str, full: bool = False) -> None:
    """Kept as an artefact."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=full)


def search(page: Page, query: str) -> None:
    """Type, and wait for the results of this query."""
    page.fill("#query", query)
    expect(page.locator("#results")).to_have_attribute("data-query", query)


def number(text: str) -> float:
    """A number as the page writes it."""
    return float(re.sub("[<+]", "", text).replace("−", "-"))

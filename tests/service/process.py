"""`sparserank serve` as a process that can be killed, and what it leaves on the disk."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import httpx

from sparserank.versions import VersionRegistry

TOKEN = "a-token-of-the-tests"


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


def taught(model: Path) -> VersionRegistry:
    """A second version."""
    versions = VersionRegistry.open(model)
    versions.add(versions.load().set_pair("car", "boat", 50.0), "taught by hand")
    return versions

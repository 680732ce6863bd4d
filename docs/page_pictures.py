"""Photograph every view of the search page, for the gallery and the guide of the page.

Where playwright or Chromium is missing, the pictures of docs/pictures are taken; `python docs/page_pictures.py` makes
those again.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import sparserank as sr
from sparserank.versions import VersionRegistry
from sparserank.versions.trials import start_trial

COMMITTED = Path(__file__).parent / "pictures"
QUERY, TOKEN = "eigenvalues of a symmetric matrix", "a-token-of-the-gallery"
COLOURS = 96
"""A page of text and bars needs few colours, and the files are small."""


def welcome(page: Any) -> None:
    """Example queries."""
    page.locator(".examples").wait_for()


def results(page: Any) -> None:
    """A search with filters."""
    page.fill("#query", QUERY)
    page.locator("#filters").wait_for()
    page.locator(".card").first.wait_for()


def why(page: Any) -> None:
    """Same words, and the groups of learned pairs that matter."""
    results(page)
    page.locator(".why").first.click()


def compare(page: Any) -> None:
    """Two results in one sentence."""
    why(page)
    page.get_by_text("Compare with another result").click()
    page.locator("#compare .verdict").wait_for()


def words(page: Any) -> None:
    """What a word looks for."""
    page.click("#open-words")
    page.fill("#word", "eigenvalues")
    page.keyboard.press("Enter")
    page.locator("#words .picture svg").wait_for()


def bm25(page: Any) -> None:
    """The ranking by BM25 beside the learned one."""
    results(page)
    page.click("#toggle-bm25")
    page.locator("#bm25").wait_for()


def document(page: Any) -> None:
    """The text of a document."""
    results(page)
    page.locator(".title").first.click()
    page.locator(".full-text").wait_for()


def judge(page: Any) -> None:
    """Queries and grades."""
    page.click("nav >> text=Judge")
    page.fill("#new-queries", f"{QUERY}\nread a csv file\nsmooth a noisy signal")
    page.click(".add-queries button")
    page.locator(".grades").first.wait_for()
    page.click("label[for='grade-0-3']")
    page.click("label[for='grade-1-2']")


def model(page: Any) -> None:
    """Versions and what they changed."""
    page.click("nav >> text=Model")
    page.get_by_text("What it changed").click()
    page.locator(".changes li").first.wait_for()


def trial(page: Any) -> None:
    """A candidate that answers together with the served version."""
    page.click("nav >> text=Model")
    page.locator(".trial").get_by_text("Users preferred it").wait_for()


def narrow(page: Any) -> None:
    """A telephone."""
    page.set_viewport_size({"width": 390, "height": 780})
    why(page)


VIEWS: dict[str, tuple[Callable[[Any], None], str]] = {
    "search.png": (results, "light"),
    "page-welcome.png": (welcome, "light"),
    "page-why.png": (why, "light"),
    "page-compare.png": (compare, "light"),
    "page-words.png": (words, "light"),
    "page-bm25.png": (bm25, "dark"),
    "page-document.png": (document, "light"),
    "page-judge.png": (judge, "light"),
    "page-model.png": (model, "light"),
    "page-narrow.png": (narrow, "dark"),
    "page-trial.png": (trial, "light"),
}
"""The last one is taken while a candidate is on trial, which would change the others."""
VISITS = 40


def ranker_with_metadata(lexical: bool = False) -> sr.TextRanker:
    """A ranker of the docstrings, whose packages and modules can be filtered."""
    pydocs = sr.data.load("pydocs")
    docs = {}
    for name, title, text in zip(pydocs.documents.ids, pydocs.documents.titles, pydocs.documents.texts, strict=True):
        package, *modules = name.split(".")[:-1]
        metadata = {"package": package, "module": ".".join(modules) or "(top)"}
        docs[name] = {"title": title, "text": text, "metadata": metadata}
    if lexical:
        return sr.TextRanker("bm25").fit(docs)
    ranker = sr.TextRanker(max_pairs=200_000, loss="squared", random_state=0)
    return ranker.fit(docs, pydocs.queries, pydocs.qrels["train"], exclude_self=True)


def try_bm25(registry: VersionRegistry, folder: Path, address: str) -> None:
    """Put BM25 on trial beside the served version; people of the dev split click on what their judgments name."""
    ranker_with_metadata(lexical=True).save(folder / "bm25.safetensors")
    start_trial(registry, folder / "bm25.safetensors", share=1.0)
    pydocs = sr.data.load("pydocs")

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        request = urllib.request.Request(f"{address}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    end = time.monotonic() + 30
    while "version" not in post("search", {"query": QUERY})["results"][0]:
        assert time.monotonic() < end, "the candidate takes no part"
        time.sleep(0.2)
    for number, (query, grades) in enumerate(list(pydocs.qrels["dev"].items())[:VISITS]):
        found = post("search", {"query": pydocs.queries[query]})
        shown = [result["id"] for result in found["results"]]
        relevant = next((one for one in shown if one in grades and one != query), None)
        if relevant is not None:
            click = {"id": f"visit-{number}", "kind": "click", "visitor": f"visitor-{number}", "shown": shown}
            text = {"query": pydocs.queries[query], "document": relevant, "impression": found["impression"]}
            post("feedback", click | text)


@cache
def photograph(folder: Path) -> None:
    """Make the pictures of all views in a folder, or copy those of docs/pictures."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ModuleNotFoundError:
        return _copy(folder)
    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        except Error:
            return _copy(folder)
        path = Path(work, "pydocs.safetensors")
        ranker_with_metadata().save(path)
        registry = VersionRegistry.open(path)
        registry.add(registry.load().set_pair("eigenvalues", "spectrum", 4.0), "a pair was fixed by hand")
        with _serve(path) as address:
            for name, (view, scheme) in VIEWS.items():
                if view is trial:
                    try_bm25(registry, Path(work), address)
                context = browser.new_context(viewport={"width": 1280, "height": 840}, color_scheme=scheme)
                page = context.new_page()
                page.goto(f"{address}#token={TOKEN}")
                page.locator(".examples").wait_for()
                view(page)
                page.wait_for_timeout(300)
                page.screenshot(path=folder / name)
                context.close()
                _shrink(folder / name)
    return None


def _copy(folder: Path) -> None:
    for name in VIEWS:
        shutil.copy(COMMITTED / name, folder / name)


def _shrink(path: Path) -> None:
    """Write a picture with fewer colours."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


@contextmanager
def _serve(model: Path) -> Iterator[str]:
    """Run `sparserank serve`; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = model.with_name("token")
    token.write_text(TOKEN)
    command = [sys.executable, "-m", "sparserank", "serve", str(model), "--port", str(port), "--no-learn"]
    service = subprocess.Popen([*command, "--token-file", str(token)], stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/"
    finally:
        service.terminate()
        service.wait()


def _wait_for(port: int) -> None:
    """Return when the service answers, within a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as caller:
            if caller.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the service did not start within a minute")


def draw(path: Path) -> None:
    """Make a picture of the page, together with all the others."""
    photograph(path.parent)


if __name__ == "__main__":
    photograph(Path(sys.argv[1]) if len(sys.argv) > 1 else COMMITTED)

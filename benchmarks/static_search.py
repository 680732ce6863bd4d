"""Search in the browser: size, time and nDCG@10 of our static bundle, beside Pagefind, lunr and the search of MkDocs.

    pip install 'pagefind[bin]' lunr && python -m benchmarks.static_search

Each search answers held-out queries in Chromium, from files on this machine. Ours learned from the train split;
Pagefind, lunr and MkDocs have their own settings. Sizes are those of the files after gzip: of all of them, of those
that the first search loads, and on average of those that a later search loads. Milliseconds are those of the first
search, with all that it loads, and the median of the later ones. Every search returns ten results with address and
title; ours and Pagefind's also have excerpts.

Pagefind finds the pages that have all words of a query. lunr reads operators such as `:` in a query, so only words are
sent to it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread
from typing import Any

import sparserank as sr
from sparserank.data.records import Collection
from sparserank.export import export

K = 11
"""Results of each search: ten and the page of the query itself, which is left out."""
OURS = """async (base) => {
  const { open } = await import(base + "search.js");
  const search = await open(base);
  window.find = async (query, k) => (await search(query, { k })).results.map((one) => one.id);
}"""
PAGEFIND = """async (base) => {
  const pagefind = await import(base + "pagefind.js");
  await pagefind.init();
  window.find = async (query, k) => {
    const found = await pagefind.search(query);
    const pages = await Promise.all(found.results.slice(0, k).map((one) => one.data()));
    return pages.map((one) => one.url.match(/([0-9]+)[.]html/)[1]);
  };
}"""
LUNR = """async (base) => {
  const load = async (name) => (await fetch(base + name)).text();
  (0, eval)(await load("lunr.js"));
  const data = JSON.parse(await load("search_index.json"));
  const index = data.index ? lunr.Index.load(data.index) : lunr(function () {
    this.field("title"); this.field("text"); this.ref("location");
    for (const doc of data.docs) this.add(doc);
  });
  const titles = new Map(data.docs.map((doc) => [doc.location, doc.title]));
  window.find = async (query, k) => {
    const words = (query.match(/[\\p{L}\\p{N}_]+/gu) ?? []).join(" ");
    return index.search(words).slice(0, k).map((one) => (titles.get(one.ref), one.ref));
  };
}"""


def run(quick: bool = False) -> dict[str, Any]:
    """Return one row for each search."""
    from playwright.sync_api import sync_playwright

    peers = _versions()
    data = sr.data.load("pydocs")
    if quick:
        data = _part(data, 200)
    queries = {query: data.queries[query] for query in list(data.qrels["dev"])[: 5 if quick else None]}
    qrels = {query: data.qrels["dev"][query] for query in queries}
    rows = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        bundles = _bundles(data, Path(folder), 1000 if quick else 300_000)  # sync_playwright keeps an event loop
        playwright = stack.enter_context(sync_playwright())
        executable = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for name, (place, script, ids) in bundles.items():
            found, figures = _measure(browser, place, script, list(queries.values()))
            ranked = {query: [ids.get(one, one) for one in own] for query, own in zip(queries, found, strict=True)}
            scores = {
                query: {one: float(K - i) for i, one in enumerate([one for one in own if one != query][:10])}
                for query, own in ranked.items()
            }
            ndcg = sr.evaluation.evaluate_run(scores, qrels, "nDCG@10").mean()
            rows.append({"name": name, "nDCG@10": round(float(ndcg), 4), **figures})
        browser.close()
    return {
        "case": "static search",
        "size": f"pydocs, {len(data.documents):,} documents, {len(queries)} held-out queries",
        "peer": ", ".join(f"{name} {number}" for name, number in peers.items()),
        "rows": rows,
    }


def _versions() -> dict[str, str]:
    try:
        return {name: version(name) for name in ("pagefind", "lunr", "mkdocs")}
    except PackageNotFoundError as error:
        raise SystemExit(f"{error.name} is missing: pip install 'pagefind[bin]' lunr mkdocs") from None


def _part(data: Collection, documents: int) -> Collection:
    """Return the collection with fewer documents, and the judgments of these."""
    columns = (column[:documents] for column in (data.documents.ids, data.documents.titles, data.documents.texts))
    kept = type(data.documents)(*map(tuple, columns))
    known = set(kept.ids)
    qrels = {
        split: {
            query: own for query, grades in judged.items() if (own := {d: g for d, g in grades.items() if d in known})
        }
        for split, judged in data.qrels.items()
    }
    return replace(data, documents=kept, qrels=qrels)


Bundle = tuple[Path, str, Mapping[str, str]]


def _bundles(data: Collection, folder: Path, max_pairs: int) -> dict[str, Bundle]:
    """Write the files of each search; the mapping is from its ids to those of documents."""
    bundles: dict[str, Bundle] = {}
    for pairs in (0, max_pairs // 10, max_pairs):
        ranker = sr.TextRanker("bm25") if pairs == 0 else sr.TextRanker(max_pairs=pairs, random_state=0)
        judged = () if pairs == 0 else (data.queries, data.qrels["train"])
        ranker.fit(data.documents, *judged, **({"exclude_self": data.exclude_self} if judged else {}))
        place = folder / f"ours-{pairs}"
        export(ranker, "static", place)
        name = f"SparseRank, {pairs:,} pairs" if pairs else "SparseRank, BM25"
        bundles[name] = place, OURS, {}
    numbered = {str(i): doc for i, doc in enumerate(data.documents.ids)}
    asyncio.run(_write_pagefind(data, folder / "pagefind"))
    bundles["Pagefind"] = folder / "pagefind", PAGEFIND, numbered
    docs = [
        {"location": str(i), "title": title, "text": text}
        for i, (title, text) in enumerate(zip(data.documents.titles, data.documents.texts, strict=True))
    ]
    bundles["MkDocs"] = _write_lunr(folder / "mkdocs", {"docs": docs}), LUNR, numbered
    import lunr

    index = lunr.lunr(ref="location", fields=("title", "text"), documents=docs).serialize()
    titles = [{"location": doc["location"], "title": doc["title"]} for doc in docs]
    bundles["lunr, index built before"] = _write_lunr(folder / "lunr", {"index": index, "docs": titles}), LUNR, numbered
    return bundles


async def _write_pagefind(data: Collection, place: Path) -> None:
    from html import escape

    from pagefind.index import IndexConfig, PagefindIndex

    async with PagefindIndex(config=IndexConfig(output_path=str(place))) as index:
        for i, (title, text) in enumerate(zip(data.documents.titles, data.documents.texts, strict=True)):
            content = f"<html lang=en><body><h1>{escape(title)}</h1><p>{escape(text)}</p></body></html>"
            await index.add_html_file(content=content, source_path=f"{i}.html")


def _write_lunr(place: Path, content: Mapping[str, Any]) -> Path:
    import mkdocs.contrib.search

    place.mkdir()
    own = Path(mkdocs.contrib.search.__file__).parent / "templates" / "search" / "lunr.js"
    shutil.copy(own, place / "lunr.js")
    (place / "search_index.json").write_text(json.dumps(content, separators=(",", ":")))
    return place


class _Handler(SimpleHTTPRequestHandler):
    """Serves files, and remembers which."""

    def __init__(self, *words: Any, sent: list[Path], **options: Any) -> None:
        self._sent = sent
        super().__init__(*words, **options)

    def do_GET(self) -> None:
        """Send a file."""
        self._sent.append(Path(self.translate_path(self.path)))
        super().do_GET()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def _measure(browser: Any, place: Path, script: str, queries: list[str]) -> tuple[list[list[str]], dict[str, Any]]:
    """Return the ids of the results of each query, and the sizes and times."""
    sent: list[Path] = []
    (place / "blank.html").write_text("<!doctype html><title>search</title>")
    with serve(place, sent) as base:
        found, times, first_files = _ask(browser, base, script, queries, sent)
    (place / "blank.html").unlink()
    loaded = [_gzipped(path) for path in sent]
    everything = [_gzipped(path) for path in place.rglob("*") if path.is_file()]
    return found, {
        "all_kB": round(sum(everything) / 1000),
        "first_search_kB": round(sum(loaded[:first_files]) / 1000),
        "first_search_files": first_files,
        "later_search_kB": round(sum(loaded[first_files:]) / 1000 / max(len(queries) - 1, 1), 1),
        "first_ms": round(times[0]),
        "later_ms": round(statistics.median(times[1:]), 1),
    }


@contextmanager
def serve(place: Path, sent: list[Path]) -> Iterator[str]:
    """Serve the files of a folder and list those that are sent; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, sent=sent, directory=str(place)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def _ask(
    browser: Any, base: str, script: str, queries: list[str], sent: list[Path]
) -> tuple[list[list[str]], list[float], int]:
    """Return the results of each query, the times, and the number of files that the first search loaded."""
    page = browser.new_page()
    page.goto(f"{base}blank.html")
    sent.clear()
    first = """async ([script, base, query, k]) => {
      const began = performance.now();
      await eval(script)(base);
      return [await window.find(query, k), performance.now() - began];
    }"""
    later = """async ([query, k]) => {
      const began = performance.now();
      return [await window.find(query, k), performance.now() - began];
    }"""
    found: list[list[str]] = []
    times: list[float] = []
    first_files = 0
    for query in queries:
        words = [script, base, query, K] if not found else [query, K]
        ids, milliseconds = page.evaluate(later if found else first, words)
        found.append(ids)
        times.append(milliseconds)
        first_files = first_files or len(sent)
    page.close()
    return found, times, first_files


def _gzipped(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), 6)) if path.is_file() else 0


if __name__ == "__main__":
    from .markdown import section

    print(section({"about": __doc__, **run()}))

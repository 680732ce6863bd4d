"""Search in the browser: the exported folder gives Chromium the results, scores and explanations of the package."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import Stemmer

import sparserank as sr
from sparserank.errors import ConfigError, ModelError
from sparserank.export import export, query_body, static_site

from .worlds import with_pairs, world

SEARCH = """async ([base, queries]) => {
  const { open } = await import(base + "search.js");
  const search = await open(base);
  return Promise.all(queries.map((query) => search(query)));
}"""
MAX_SCRIPT_BYTES = 15_000


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """serve(folder) is the address of a server of its files."""
    servers: list[ThreadingHTTPServer] = []

    def start(folder: Path) -> str:
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))))
        Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def searched(browser, serve, tmp_path):
    """searched(ranker, queries) are the answers of Chromium to queries."""

    def search(ranker: sr.TextRanker, queries: list[str]) -> list[dict[str, Any]]:
        export(ranker, "static", tmp_path / "site")
        address = serve(tmp_path / "site")
        page = browser.new_page()
        page.goto(address)
        found = page.evaluate(SEARCH, [address, queries])
        page.close()
        return found

    return search


def check_equal(ranker: sr.TextRanker, queries: list[str], answers: list[dict[str, Any]]) -> None:
    """The same ten documents, scores to 32 bits, and contributions that add up to them."""
    found = 0
    for query, answer in zip(queries, answers, strict=True):
        hits = ranker.search(query, 10)
        assert [result["id"] for result in answer["results"]] == [hit.id for hit in hits], query
        np.testing.assert_allclose(
            [r["score"] for r in answer["results"]], [h.score for h in hits], rtol=2e-6, atol=1e-6
        )
        for result in answer["results"]:
            assert sum(pair["contribution"] for pair in result["pairs"]) == pytest.approx(result["score"], abs=1e-5)
        found += len(hits)
    assert found >= len(queries)


@pytest.mark.slow
def test_200_queries_of_pydocs_have_the_same_top_10_as_in_python(searched):
    docs = sr.data.load("pydocs")
    train = {query: docs.queries[query] for query in docs.qrels["train"]}
    ranker = sr.TextRanker(max_pairs=30_000, random_state=0)
    ranker.fit(docs.documents, train, docs.qrels["train"], exclude_self=True)
    assert ranker.model_.n_pairs == 30_000
    queries = [docs.queries[query] for query in list(docs.qrels["test"])[:200]] + list(docs.documents.titles[::50])
    assert sum(ranker.model_.names.shares(ranker.lexical_.features, queries) > 0) > 10
    check_equal(ranker, queries, searched(ranker, queries))


def test_pairs_of_both_signs_and_unknown_words(searched):
    ranker, queries = world(documents=9)
    texts = list(queries.values())
    answers = searched(ranker, texts)
    assert any(result["score"] < 0 for answer in answers for result in answer["results"])
    assert answers[-1]["results"] == []
    check_equal(ranker, texts, answers)


@pytest.mark.parametrize(
    ("language", "documents", "queries"),
    [
        ("german", ["Die Häuser am Straßenrand", "ein kleines Haus", "Straßen und Bäume"], ["Häuser HAUS", "strassen"]),
        ("japanese", ["日本語の検索 ＣＳＳ", "検索エンジンの設計", "日本の本"], ["日本語", "css 検索", "本"]),
        ("french", ["Les élèves étudient", "une école élémentaire"], ["eleves étudient", "ecole"]),
        (None, ["Un deux TROIS", "deux"], ["deux trois"]),
    ],
)
def test_languages(language, documents, queries, searched):
    ranker = sr.TextRanker(analyzer=sr.Analyzer(language)).fit({f"d{i}": text for i, text in enumerate(documents)})
    with_pairs(ranker, queries, density=0.5)
    check_equal(ranker, queries, searched(ranker, queries))


def test_fields_with_weights_of_their_own(searched):
    documents = {
        f"d{i}": {"title": f"red {i}", "body": "green apples " * (i + 1), "tags": ["fruit", "sweet"]} for i in range(5)
    }
    ranker = sr.TextRanker(lexical=sr.BM25(field_weights={"title": 3.0})).fit(documents)
    check_equal(ranker, ["red apples", "sweet 3"], searched(ranker, ["red apples", "sweet 3"]))


def test_stems_are_those_of_snowball(browser, serve):
    docs = sr.data.load("pydocs").documents
    words = sorted({word for text in docs.texts for word in re.findall(r"\w+", text.lower())})
    address = serve(Path(static_site.__file__).parent / "templates/static")
    page = browser.new_page()
    page.goto(address)
    script = "async ([base, words]) => { const { stem } = await import(base); return words.map((one) => stem(one)); }"
    assert page.evaluate(script, [f"{address}stemmer.js", words]) == Stemmer.Stemmer("english").stemWords(words)
    page.close()


def test_the_page_searches_as_one_types_marks_words_and_explains(browser, serve, tmp_path):
    documents = {
        "a": {"title": "Apples", "text": "Sweet <b>apples</b> are red", "metadata": {"url": "https://example.org/a"}},
        "b": {"title": "Pears", "text": "pears are green", "metadata": {"url": "javascript:alert(1)"}},
    }
    export(sr.TextRanker().fit(documents), "static", tmp_path / "site")
    page = browser.new_page()
    page.goto(serve(tmp_path / "site"))
    page.get_by_role("searchbox").fill("an apple")
    link = page.get_by_role("link", name="Apples")
    link.wait_for()
    assert link.get_attribute("href") == "https://example.org/a"
    assert page.locator("mark").all_text_contents() == ["apples"]
    assert "<b>apples</b>" in page.locator("li p").inner_text()
    page.get_by_text("Why?").click()
    assert page.locator("td").first.inner_text() == "apple → apples"
    page.get_by_role("searchbox").fill("pear")
    page.get_by_text("pears are green").wait_for()
    assert page.locator("li a").get_attribute("href") is None  # a script is no link
    page.context.set_offline(True)
    page.get_by_role("searchbox").fill("apples")
    page.get_by_role("link", name="Apples").wait_for()  # what was loaded once is searched without the server
    page.close()


def test_after_a_visit_a_reload_without_a_network_searches_and_a_new_export_replaces_the_old(browser, tmp_path):
    site = tmp_path / "site"
    export(sr.TextRanker().fit({f"d{i}": f"word{i} common text" for i in range(300)}), "static", site)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.server_port}/")
    page.evaluate("async () => { await navigator.serviceWorker.ready }")
    (first,) = page.evaluate("caches.keys()")
    export(sr.TextRanker().fit({f"d{i}": f"other{i} common text" for i in range(300)}), "static", site)
    os.utime(site / "export.json", (2e9, 2e9))
    page.reload()
    page.wait_for_function(
        "(first) => caches.keys().then((names) => names.length === 1 && names[0] !== first)", arg=first
    )
    server.shutdown()
    server.server_close()
    page.context.set_offline(True)
    page.reload()
    for text, wanted in (("other250", "1 result"), ("word250", "Nothing found")):  # words that no search has loaded
        page.get_by_role("searchbox").fill(text)
        page.get_by_text(wanted, exact=True).wait_for()
    page.close()


def test_a_missing_file_is_said_on_the_page(browser, serve, tmp_path):
    export(sr.TextRanker().fit({"a": "red apples"}), "static", tmp_path / "site")
    (tmp_path / "site/postings/0.json").unlink()
    page = browser.new_page()
    page.goto(serve(tmp_path / "site"))
    page.get_by_role("searchbox").fill("apple")
    page.get_by_text("The search files cannot be loaded: postings/0.json: the server answered 404").wait_for()
    page.close()


def test_the_scripts_are_small():
    folder = Path(static_site.__file__).parent / "templates/static"
    assert sum(len(gzip.compress((folder / name).read_bytes())) for name in static_site.SCRIPTS) <= MAX_SCRIPT_BYTES


def test_shards_are_small_and_cover_all_documents(tmp_path):
    texts = {f"d{i:05d}": f"word{i} common text {'x' * 500}" for i in range(300)}
    export(sr.TextRanker().fit(texts), "static", tmp_path / "site")
    sizes = [file.stat().st_size for file in (tmp_path / "site/documents").iterdir()]
    assert len(sizes) > 1
    assert max(sizes) <= static_site.SHARD_BYTES + 1_000


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (sr.TextRanker(lexical="cosine"), "BM25"),
        (sr.TextRanker(analyzer=sr.Analyzer("english", ngrams=2)), "n-grams"),
        (sr.TextRanker(analyzer=sr.Analyzer("german", compounds=True)), "compounds"),
    ],
)
def test_what_the_browser_cannot_compute(ranker, message, tmp_path):
    ranker.fit({"a": "red apples", "b": "green pears"})
    with pytest.raises(ModelError, match=message):
        export(ranker, "static", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_there_is_no_request_to_print():
    with pytest.raises(ConfigError, match="search by themselves"):
        query_body(sr.TextRanker().fit({"a": "red apples"}), "static", "apple")

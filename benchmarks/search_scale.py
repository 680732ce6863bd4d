"""Top 10 of collections of 10⁴, 10⁵ and 10⁶ documents and of winapi, against bm25s, from raw text and from split words.

Synthetic documents have words by Zipf's law and words of one of 500 topics, and lengths as of short web pages (mean 60
words, log-normal); their ids are in random order of topics, which is hard for block maxima. A query is 2 to 8 words of
a document. The 300,000 pairs of the synthetic model are words that occur together, rare ones first, with random signed
weights; those of winapi are ridge regression in closed form on the 4,000 heaviest words of each side. bm25s searches
the same weights, so its scores must be ours, and the pruned search must give the bits of the exhaustive one; both are
checked before the measurement. Times are milliseconds of one core per query, the best of three rounds; `ratio` is bm25s
to our lexical search. Every index is built some documents at a time in a process of its own; its peak memory is shown.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from sparserank import TextRanker
from sparserank.data.datasets.load import beir_folders
from sparserank.data.open import open_collection, stream_documents
from sparserank.data.records import Documents
from sparserank.search.encoded_query import EncodedQuery
from sparserank.text_ranker import load_model, load_text
from sparserank.text_ranker.lexical import LexicalModel
from sparserank.text_ranker.model import TextModel
from sparserank.text_ranker.persistence import write_index
from sparserank.text_ranker.query_vocabulary import QueryVocabulary, document_rows

from .measure import peak_megabytes

K, PAIRS, QUERIES, PART, SAMPLE = 10, 300_000, 500, 10_000, 100_000
SIZES = (10_000, 100_000, 1_000_000)
VOCABULARY, TOPICS, TOPIC_WORDS, HEAVIEST = 200_000, 500, 3_000, 4_000


def zipf(n: int, exponent: float) -> Any:
    """Cumulative probabilities of ranks."""
    p = 1.0 / (np.arange(n) + 2.7) ** exponent
    return np.cumsum(p / p.sum())


def synthetic_parts(n_docs: int) -> Iterator[Documents]:
    """Yield the documents, PART at a time."""
    letters = "bcdfgklmnprstvz"
    syllables = [a + b for a, b in product(letters, "aeiou")]
    words = np.array([f"{x}{y}{z}"[:6] for x, y, z in product(syllables, repeat=3)])[:VOCABULARY]
    rng = np.random.default_rng(7)
    rng.shuffle(words)
    topic_words = (100 + (VOCABULARY - 100) * rng.random((TOPICS, TOPIC_WORDS)) ** 3).astype(np.int64)
    common, special = zipf(VOCABULARY, 1.07), zipf(TOPIC_WORDS, 0.9)
    for first in range(0, n_docs, PART):
        rng, n = np.random.default_rng([11, first]), min(PART, n_docs - first)
        lengths = np.clip(np.exp(rng.normal(np.log(50), 0.6, n)), 5, 2000).astype(np.int64)
        drawn = np.searchsorted(common, rng.random(lengths.sum()))
        topic = np.repeat(rng.integers(TOPICS, size=n), lengths)
        special_words = topic_words[topic, np.searchsorted(special, rng.random(len(drawn)))]
        tokens = words[np.where(rng.random(len(drawn)) < 0.4, special_words, drawn)].tolist()
        ends = np.cumsum(lengths).tolist()
        texts = tuple(" ".join(tokens[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True))
        yield Documents(tuple(f"d{first + i:07d}" for i in range(n)), ("",) * n, texts)


def synthetic_model(n_docs: int) -> tuple[TextModel, list[str]]:
    """A model with the vocabulary of the first SAMPLE documents and random pairs, and queries."""
    parts = list(synthetic_parts(min(n_docs, SAMPLE)))
    documents = Documents(*(sum((getattr(p, name) for p in parts), ()) for name in ("ids", "titles", "texts")))
    lexical = LexicalModel()
    rows, rng = lexical.fit(documents), np.random.default_rng(5)
    at = rng.integers(len(documents), size=4 * PAIRS)
    begin, length = rows.indptr[at], np.diff(rows.indptr)[at]
    query, document = (rows.indices[begin + (rng.random(len(at)) * length).astype(np.int64)] for _ in range(2))
    rarity = lexical.features.idf_ / lexical.features.idf_.max()
    kept = rng.random(len(at)) < rarity[query] * rarity[document] ** 2
    n = rows.shape[1]
    pairs = np.unique(query[kept].astype(np.int64) * n + document[kept])
    pairs = rng.choice(pairs, min(PAIRS, len(pairs)), replace=False)
    W = csr_array((rng.laplace(0.25, 1.0, len(pairs)).astype(np.float32), (pairs // n, pairs % n)), shape=(n, n))
    W.sort_indices()
    texts = [documents.texts[i].split() for i in rng.integers(len(documents), size=QUERIES)]
    queries = [" ".join(rng.choice(words, min(len(words), int(rng.integers(2, 9))), replace=False)) for words in texts]
    return TextModel(lexical, QueryVocabulary(lexical.features), W, 2.0), queries


def winapi_model() -> tuple[TextModel, list[str]]:
    """A model with pairs of the heaviest words, learned in closed form, and dev queries."""
    collection = open_collection("winapi")
    ranker = TextRanker()
    lexical = ranker.lexical_model()
    rows, train = lexical.fit(collection.documents), collection.qrels["train"]
    vocabulary = QueryVocabulary.from_texts(lexical.features, [collection.queries[q] for q in train])
    Q, D = vocabulary.encode([collection.queries[q] for q in train]), document_rows(lexical.features, rows)
    position = {doc_id: i for i, doc_id in enumerate(collection.documents.ids)}
    judged = [(i, position[d]) for i, q in enumerate(train) for d, grade in train[q].items() if grade > 0]
    Y = csr_array((np.ones(len(judged), np.float32), tuple(zip(*judged, strict=True))), shape=(Q.shape[0], D.shape[0]))
    q, d = (np.argsort(-np.bincount(M.indices, M.data**2, M.shape[1]))[:HEAVIEST] for M in (Q, D))
    Q, D, shape = Q[:, q], D[:, d], (Q.shape[1], D.shape[1])
    eye = np.eye(HEAVIEST, dtype=np.float32)
    W = np.linalg.solve((Q.T @ Q).toarray() + eye, (Q.T @ (Y @ D)).toarray())
    W = np.linalg.solve((D.T @ D).toarray() + eye, W.T).T
    W[np.abs(W) < np.partition(np.abs(W).ravel(), -PAIRS)[-PAIRS]] = 0.0
    kept = coo_array(W.astype(np.float32))
    pairs = csr_array((kept.data, (q[kept.row], d[kept.col])), shape=shape)
    pairs.sort_indices()
    dev = [collection.queries[i] for i in collection.qrels["dev"]]
    return TextModel(lexical, vocabulary, pairs, 300.0), dev[:: max(1, len(dev) // QUERIES)][:QUERIES]


def build(model: str, index: str, n_docs: int) -> None:
    """Build an index file and print the seconds and the peak memory; n_docs = 0 is winapi."""
    parts = synthetic_parts(n_docs) if n_docs else stream_documents(beir_folders()["winapi"], PART)
    started = perf_counter()
    write_index(load_model(model), index, parts)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    # the maximum that getrusage gives includes what the parent process held when it started this one
    print(perf_counter() - started, int(status["VmHWM"].split()[0]) / 1024)


def bm25s_engine(ranker: TextRanker) -> tuple[Callable[..., Any], Callable[[list[str]], Any]]:
    """bm25s over our lexical weights: its retrieval, and its tokenizer with our stop words and stems."""
    import bm25s
    import Stemmer

    segment, lexical = ranker.index_.segments[0], ranker.lexical_
    n = len(lexical.words)
    engine, end = bm25s.BM25(backend="numba"), int(segment.starts[n])
    engine.scores = {
        "data": np.array(segment.weights[:end]), "indices": np.array(segment.docs[:end]),
        "indptr": segment.starts[: n + 1].astype(np.int32), "num_docs": len(segment),
    }  # fmt: skip
    engine.vocab_dict = {word: column for column, word in enumerate(lexical.words)}
    engine.unique_token_ids_set, engine.nonoccurrence_array = set(range(n)), None
    analyzer = lexical.analyzer
    stemmer = None if analyzer.stemmer is None else Stemmer.Stemmer(analyzer.stemmer)

    def tokenize(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords=sorted(analyzer.stop_word_set), stemmer=stemmer, show_progress=False)

    def retrieve(tokens: Any, **options: Any) -> Any:
        return engine.retrieve(tokens, k=K, show_progress=False, n_threads=1, **options)

    return retrieve, tokenize


def best_milliseconds(contestants: dict[str, Callable[[], Any]], n_queries: int, rounds: int) -> dict[str, float]:
    """Milliseconds of CPU per query, the best of some rounds in which the contestants take turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for number in range(rounds + 1):
        for name, call in contestants.items():
            started = process_time()
            call()
            best[name] = min(best[name], process_time() - started) if number else best[name]
    return {name: 1e3 * seconds / n_queries for name, seconds in best.items()}


def compare(name: str, ranker: TextRanker, queries: list[str], rounds: int) -> list[dict[str, Any]]:
    """Check the results of all engines and measure them."""
    model, index, n = ranker.model_, ranker.index_, len(queries)
    retrieve, tokenize = bm25s_engine(ranker)
    learned, tokens = model.encode_queries(queries), tokenize(queries)
    lexical = EncodedQuery(learned.terms)
    for encoded in (lexical, learned):
        plans = [index.top(encoded, K, n_jobs=1, plan=plan) for plan in ("query", "exhaustive")]
        if not all(np.array_equal(a, b) for a, b in zip(*plans, strict=True)):
            raise AssertionError("pruning changes the results")
    _, scores, counts = index.top(lexical, K)
    if not np.allclose(scores[counts == K], retrieve(tokens).scores[counts == K], rtol=1e-4):
        raise AssertionError("bm25s finds other scores")
    ones = [(lexical.take([i]), learned.take([i]), tokenize([text])) for i, text in enumerate(queries)]

    def top(encoded: EncodedQuery, plan: str = "query") -> Any:
        return index.top(encoded, K, n_jobs=1, plan=plan)

    def lexical_rows() -> csr_array:
        rows = model.lexical.queries(queries)
        rows.resize((n, model.n_terms))
        return rows

    jobs: dict[str, dict[str, Callable[[], Any]]] = {
        "raw text, one at a time": {
            "lexical": lambda: [top(model.encode_lexical_query(text)) for text in queries],
            "learned": lambda: [top(model.encode_queries([text])) for text in queries],
            "bm25s": lambda: [retrieve(tokenize([text])) for text in queries],
        },
        "split words, one at a time": {
            "lexical": lambda: [top(one) for one, _, _ in ones],
            "learned": lambda: [top(one) for _, one, _ in ones],
            "bm25s": lambda: [retrieve(one) for _, _, one in ones],
        },
        "raw text, all at once": {
            "lexical": lambda: top(EncodedQuery(lexical_rows())),
            "learned": lambda: top(model.encode_queries(queries)),
            "bm25s": lambda: retrieve(tokenize(queries)),
        },
        "split words, all at once": {
            "lexical": lambda: top(lexical),
            "learned": lambda: top(learned),
            "bm25s": lambda: retrieve(tokens),
            "exhaustive_lexical": lambda: top(lexical, "exhaustive"),
            "exhaustive_learned": lambda: top(learned, "exhaustive"),
        },
    }

    rows = []
    for job, contestants in jobs.items():
        ms = best_milliseconds(contestants, n, rounds)
        row = {"name": f"{name}, {job}", "ratio": round(ms["bm25s"] / ms["lexical"], 2)}
        row["learned_of_lexical"] = round(ms["learned"] / ms["lexical"], 2)
        rows.append(row | {f"{key}_ms": round(value, 4) for key, value in ms.items()})
    return rows


def measure(folder: Path, name: str, n_docs: int, rounds: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Make, build and search one collection; n_docs = 0 is winapi."""
    made = synthetic_model(n_docs) if n_docs else winapi_model()
    maker, path, index = TextRanker(), folder / "model", folder / "index"
    maker.model_, queries = made
    maker.save(path)
    code = f"from benchmarks.search_scale import build; build({str(path)!r}, {str(index)!r}, {n_docs})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    build_s, peak_mb = map(float, done.stdout.split())
    started = perf_counter()
    ranker = load_text(path, index)
    opened = perf_counter() - started
    started = perf_counter()
    load_model(path)
    segment, encoded = ranker.index_.segments[0], maker.model_.encode_queries(queries)
    blocks = {} if segment.blocks is None else segment.blocks.arrays("")
    lengths, expanded = np.diff(segment.starts), encoded.expand()
    about = {
        "documents": len(ranker.index_), "index_mb": round(index.stat().st_size / 1e6),
        "blocks_mb": round(sum(array.nbytes for array in blocks.values()) / 1e6),
        "postings_mb": round(8 * ranker.index_.postings / 1e6),
        "open_s": round(max(opened - (perf_counter() - started), 0.0), 3),
        "build_s": round(build_s, 1), "build_peak_mb": round(peak_mb),
        "lexical_terms": round(encoded.terms.nnz / len(queries), 1),
        "lexical_postings": round(int(lengths[encoded.terms.indices].sum()) / len(queries)),
        "learned_terms": round(expanded.nnz / len(queries), 1),
        "learned_postings": round(int(lengths[expanded.indices].sum()) / len(queries)),
    }  # fmt: skip
    return compare(name, ranker, queries, rounds), about


def run(quick: bool = False) -> dict[str, Any]:
    """Milliseconds per query and the cost of the index, by collection."""
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    rows, collections = [], {}
    for n_docs in SIZES[:1] if quick else (*SIZES, 0):
        name = f"{n_docs:,} documents" if n_docs else "winapi"
        with tempfile.TemporaryDirectory() as folder:
            measured, collections[name] = measure(Path(folder), name, n_docs, 1 if quick else 3)
        rows += measured
    return {
        "case": "search at scale",
        "size": f"top {K}, {PAIRS} pairs, {QUERIES} queries, one thread, CPU time",
        "peer": "bm25s, numba backend",
        "rows": rows,
        "collections": collections,
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(json.dumps(run("--quick" in sys.argv), indent=2))

"""Top 10 of collections of 10⁴, 10⁵ and 10⁶ documents and of winapi, against bm25s, from raw text and from split words.

Synthetic documents have words by Zipf's law and words of one of 500 topics, and lengths as of short web pages (mean 60
words, log-normal); their ids are in random order of topics, which is hard for block maxima. A query is 2 to 8 words of
a document. W is trained: for winapi with the defaults of `sparserank train` and at most 300,000 pairs, on 6,000 of its
43,129 training queries; for synthetic documents likewise, on the first 10,000 of them and 2,000 queries for which the
other documents of the same topic are relevant, and the same W for every size. Trained models are kept in
reports/search_scale. bm25s searches the same weights, so its scores must be ours, and the pruned search must give the
bits of the exhaustive one; both are checked before the measurement. Times are milliseconds of one core per query, the
best of three rounds; `ratio` is bm25s to our lexical search. Every index is built some documents at a time in a process
of its own; its peak memory is shown.

`python -m benchmarks.search_scale 100000 winapi` measures some of the collections.
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
from scipy.sparse import csr_array

from sparserank import TextRanker
from sparserank.data.datasets.load import beir_folders
from sparserank.data.open import open_collection, stream_documents
from sparserank.data.records import Documents
from sparserank.search.encoded_query import EncodedQuery
from sparserank.text_ranker import load_model, load_text
from sparserank.text_ranker.lexical import LexicalModel
from sparserank.text_ranker.model import TextModel
from sparserank.text_ranker.persistence import write_index
from sparserank.text_ranker.query_vocabulary import QueryVocabulary

from .measure import peak_megabytes

K, PAIRS, QUERIES, PART, SAMPLE = 10, 300_000, 500, 10_000, 100_000
SIZES = (10_000, 100_000, 1_000_000)
VOCABULARY, TOPICS, TOPIC_WORDS = 200_000, 500, 3_000
TRAINING_DOCUMENTS, TRAINING_QUERIES, WINAPI_QUERIES = 10_000, 2_000, 6_000
FOLDER = Path("reports/search_scale")


def zipf(n: int, exponent: float) -> Any:
    """Cumulative probabilities of ranks."""
    p = 1.0 / (np.arange(n) + 2.7) ** exponent
    return np.cumsum(p / p.sum())


def synthetic_parts(n_docs: int) -> Iterator[Documents]:
    """Yield the documents, PART at a time."""
    return (documents for documents, _ in synthetic_parts_and_topics(n_docs))


def synthetic_parts_and_topics(n_docs: int) -> Iterator[tuple[Documents, Any]]:
    """Yield the documents and their topics, PART at a time."""
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
        topics = rng.integers(TOPICS, size=n)
        special_words = topic_words[np.repeat(topics, lengths), np.searchsorted(special, rng.random(len(drawn)))]
        tokens = words[np.where(rng.random(len(drawn)) < 0.4, special_words, drawn)].tolist()
        ends = np.cumsum(lengths).tolist()
        texts = tuple(" ".join(tokens[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True))
        yield Documents(tuple(f"d{first + i:07d}" for i in range(n)), ("",) * n, texts), topics


def synthetic_sample(n_docs: int) -> Documents:
    """The first n_docs documents at once."""
    parts = list(synthetic_parts(n_docs))
    return Documents(*(sum((getattr(p, name) for p in parts), ()) for name in ("ids", "titles", "texts")))


def synthetic_queries(documents: Documents, n: int, seed: int) -> tuple[list[str], list[int]]:
    """Queries of 2 to 8 words of a document, and the documents they are from."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(documents), size=n).tolist()
    texts = [documents.texts[i].split() for i in chosen]
    return [
        " ".join(rng.choice(words, min(len(words), int(rng.integers(2, 9))), replace=False)) for words in texts
    ], chosen


def kept_model(name: str, train: Callable[[], TextRanker]) -> TextModel:
    """The model of a ranker: from its file, or trained."""
    path = FOLDER / f"{name}.safetensors"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        train().save(path)
    model = load_model(path).model_
    if model.W is None:
        raise AssertionError("no pairs were learned")
    return model


def train_synthetic_pairs() -> TextRanker:
    """A ranker of TRAINING_DOCUMENTS documents that learned which words share a topic from TRAINING_QUERIES queries.

    A training query is a few words of a document; the other documents of its topic are relevant.
    """
    documents = synthetic_sample(TRAINING_DOCUMENTS)
    topics = np.concatenate([topics for _, topics in synthetic_parts_and_topics(TRAINING_DOCUMENTS)])
    texts, sources = synthetic_queries(documents, TRAINING_QUERIES, seed=13)
    queries, qrels = {}, {}
    for number, (text, source) in enumerate(zip(texts, sources, strict=True)):
        others = np.setdiff1d(np.flatnonzero(topics == topics[source]), [source])
        if len(others):
            queries[f"q{number}"] = text
            qrels[f"q{number}"] = {documents.ids[i]: 1 for i in others.tolist()}
    return TextRanker(max_pairs=PAIRS, random_state=0).fit(documents, queries, qrels)


def synthetic_model(n_docs: int) -> tuple[TextModel, list[str]]:
    """The lexical model of the first SAMPLE documents with the trained pairs, and queries."""
    documents, trained = synthetic_sample(min(n_docs, SAMPLE)), kept_model("synthetic", train_synthetic_pairs)
    assert trained.vocabulary is not None
    assert trained.W is not None
    lexical = LexicalModel(trained.lexical.scoring, trained.lexical.analyzer)
    lexical.fit(documents)
    columns = lexical.features.vocabulary_
    only_in_queries = tuple(word for word in trained.vocabulary.extra if word not in columns)
    vocabulary = QueryVocabulary(lexical.features, only_in_queries)
    query = np.array([vocabulary.column(word) for word in trained.vocabulary.words])
    document = np.array([columns[word] for word in trained.lexical.words])
    W = trained.W.tocoo()
    pairs = csr_array((W.data, (query[W.row], document[W.col])), shape=(len(vocabulary.words), len(columns)))
    pairs.sort_indices()
    return TextModel(lexical, vocabulary, pairs, trained.pair_weight), synthetic_queries(documents, QUERIES, seed=5)[0]


def train_winapi_pairs() -> TextRanker:
    """A ranker of winapi that learned from WINAPI_QUERIES of the training queries."""
    collection = open_collection("winapi")
    train = list(collection.qrels["train"].items())
    qrels = dict(train[:: len(train) // WINAPI_QUERIES][:WINAPI_QUERIES])
    queries = {query: collection.queries[query] for query in qrels}
    return TextRanker(max_pairs=PAIRS, random_state=0).fit(collection.documents, queries, qrels, exclude_self=True)


def winapi_model() -> tuple[TextModel, list[str]]:
    """The trained model, and dev queries."""
    collection = open_collection("winapi")
    dev = [collection.queries[query] for query in collection.qrels["dev"]]
    return kept_model("winapi", train_winapi_pairs), dev[:: max(1, len(dev) // QUERIES)][:QUERIES]


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


def run(quick: bool = False, sizes: tuple[int, ...] = (*SIZES, 0)) -> dict[str, Any]:
    """Milliseconds per query and the cost of the index, by collection; size 0 is winapi."""
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    rows, collections = [], {}
    for n_docs in SIZES[:1] if quick else sizes:
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
    named = [one for one in sys.argv[1:] if one != "--quick"]
    sizes = tuple(0 if one == "winapi" else int(one) for one in named) or (*SIZES, 0)
    print(json.dumps(run("--quick" in sys.argv, sizes), indent=2))

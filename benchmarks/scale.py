"""How time, memory and quality of training grow with the collection, compared with bm25s on the same documents.

The collections are synthetic (`benchmarks/synthetic.py` says how they are made): one training query for ten documents,
and 500 other queries to measure nDCG@10. Every point runs in its own process, which gives its peak memory, and is
stored in reports/scale, so a second run continues where the first one ended. The last two rows have twice the queries
and twice the words of the dictionary, for the growth with each. `cpu_s` is the processor time of training, which other
programs on the machine change less than `train_s`. Search times are those of the fastest of three runs. `closed form`
compares W from the heaviest words with the exact one.

`make bench ARGS="scale --full"` continues to a million documents and 100,000 queries.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sized
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from sparserank.data.files import write_bytes

from .measure import in_new_process, peak_megabytes
from .synthetic import WORDS

FOLDER, PICTURE = Path("reports/scale"), Path("docs/pictures/scale.png")
SIZES = (10_000, 20_000, 50_000, 100_000, 150_000, 200_000)
FULL_SIZES = (500_000, 1_000_000)
DOCUMENTS_PER_QUERY, TEST_QUERIES, PAIRS, K, REPETITIONS = 10, 500, 300_000, 10, 3
GROWTH = {"time": "train_s", "cpu": "cpu_s", "memory": "peak_mb"}


def measure_point(n_documents: int, n_queries: int, pairs: int = PAIRS, n_words: int = WORDS) -> dict[str, Any]:
    """Train, search and measure one collection, and index and search it by bm25s."""
    import sparserank as sr

    from .synthetic import collection

    documents, queries, qrels = collection(n_documents, n_queries + TEST_QUERIES, n_words=n_words)
    ids = list(queries)
    train, test = ids[:n_queries], ids[n_queries:]
    before = peak_megabytes()
    started, worked = perf_counter(), process_time()
    ranker = sr.TextRanker(max_pairs=pairs, analyzer=sr.Analyzer(stem=None, stop_words=None))
    ranker.fit(documents, {q: queries[q] for q in train}, {q: qrels[q] for q in train})
    seconds, work = perf_counter() - started, process_time() - worked
    texts = {q: queries[q] for q in test}
    peak = peak_megabytes()

    def ndcg(run: Any) -> float:
        relevance = {q: qrels[q] for q in test}
        return round(float(sr.evaluation.evaluate_run(run, relevance, "nDCG@10")["nDCG@10"].value), 4)

    lexical = sr.TextRanker("bm25", analyzer=sr.Analyzer(stem=None, stop_words=None))
    started = perf_counter()
    lexical.fit(documents)
    indexing = perf_counter() - started
    run, base = ranker.run(texts, k=K), lexical.run(texts, k=K)
    learned_s, lexical_s = (shortest(lambda one=one: one.run(texts, k=K)) for one in (ranker, lexical))
    peer = bm25s_point(documents, list(texts.values()))
    return {
        "documents": n_documents, "queries": n_queries, "words": n_words, "train_s": round(seconds, 1),
        "cpu_s": round(work, 1), "peak_mb": peak, "mb_of_data": before, "bm25": ndcg(base), "learned": ndcg(run),
        "pairs": ranker.model_.n_pairs,
        "index_s": round(indexing, 2), "bm25s_index_s": peer[0], "learned_ms": milliseconds(learned_s, texts),
        "lexical_ms": milliseconds(lexical_s, texts), "bm25s_ms": peer[1],
    }  # fmt: skip


def bm25s_point(documents: Any, queries: list[str]) -> tuple[float, float]:
    """Seconds to index and milliseconds to search a query by bm25s, from raw text."""
    import bm25s

    def split(what: list[str]) -> Any:
        return bm25s.tokenize(what, stopwords=None, show_progress=False)

    started = perf_counter()
    engine = bm25s.BM25(backend="numba")
    engine.index(
        split([f"{a} {b}" for a, b in zip(documents.titles, documents.texts, strict=True)]), show_progress=False
    )
    indexing = perf_counter() - started
    engine.retrieve(split(queries[:10]), k=K, show_progress=False)
    searching = shortest(lambda: engine.retrieve(split(queries), k=K, show_progress=False))
    return round(indexing, 2), milliseconds(searching, queries)


def shortest(search: Callable[[], Any]) -> float:
    """Seconds of the fastest of three searches."""
    seconds = []
    for _ in range(REPETITIONS):
        started = perf_counter()
        search()
        seconds.append(perf_counter() - started)
    return min(seconds)


def milliseconds(seconds: float, queries: Sized) -> float:
    """Per query."""
    return round(1e3 * seconds / len(queries), 3)


def closed_form_rows(n_documents: int) -> list[dict[str, Any]]:
    """The closed form of so many heaviest words against the exact one: the relative distance of W."""
    from sparserank.optim.closed_form import ClosedForm
    from sparserank.optim.penalties import Ridge
    from sparserank.text_ranker.lexical import BM25, LexicalModel
    from sparserank.text_ranker.query_vocabulary import QueryVocabulary
    from sparserank.text_ranker.training_data import TrainingData

    from .synthetic import collection

    documents, queries, qrels = collection(n_documents, n_documents // DOCUMENTS_PER_QUERY)
    lexical = LexicalModel(BM25())
    rows = lexical.fit(documents)
    data = TrainingData(documents, queries, qrels, lexical_rows=rows)
    lists = data.encode(lexical, QueryVocabulary.from_texts(lexical.features, data.texts)).lists

    def dense(max_size: int) -> Any:
        out = np.zeros(lists.shape, np.float32)
        for some, block in ClosedForm(lists.D, max_size).iterate_rows(lists, Ridge()):
            out[some] = block
        return out

    exact = dense(1 << 30)
    norm = float(np.linalg.norm(exact))
    used = min(*lists.D.shape)
    sizes = [size for size in (500, 1_000, 2_000, 4_000) if size < used] + [used]
    return [
        {"words": size, "relative_distance": round(float(np.linalg.norm(dense(size) - exact)) / norm, 5)}
        for size in sizes
    ]


def point(n_documents: int, n_queries: int, pairs: int, n_words: int = WORDS) -> dict[str, Any]:
    """One point of the curve: from its file, or measured in a new process."""
    path = FOLDER / f"{n_documents}-{n_queries}-{pairs}-{n_words}.json"
    if not path.exists():
        result = in_new_process("scale", "measure_point", n_documents, n_queries, pairs, n_words)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps(result).encode())
    return dict(json.loads(path.read_text()))


def draw(points: list[dict[str, Any]], path: Path) -> None:
    """Time, memory and quality against the number of documents."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    x = [one["documents"] for one in points]
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), constrained_layout=True)
    for axis, labels, title in (
        (axes[0], {"train_s": "training", "index_s": "indexing", "bm25s_index_s": "indexing, bm25s"}, "Seconds"),
        (axes[1], {"peak_mb": "training"}, "Peak memory, MB"),
        (axes[2], {"learned": "learned", "bm25": "BM25"}, "nDCG@10"),
    ):
        for key, label in labels.items():
            axis.plot(x, [one[key] for one in points], "o-", label=label)
        axis.set(xscale="log", xlabel="documents", title=title)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    axes[0].set_yscale("log")
    axes[1].set_ylim(bottom=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def growth_between(key: str, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """How many times as much time and memory the second point takes."""
    grown = {name: round(after[column] / before[column], 2) for name, column in GROWTH.items()}
    return {key: f"{before[key]:,} to {after[key]:,}", **grown}


def run(quick: bool = False, full: bool = False) -> dict[str, Any]:
    """The curve, with the growth from point to point."""
    sizes = (1_000, 2_000) if quick else SIZES + (FULL_SIZES if full else ())
    pairs = 20_000 if quick else PAIRS
    points = [point(n, n // DOCUMENTS_PER_QUERY, pairs) for n in sizes]
    base, queries = points[1], sizes[1] // DOCUMENTS_PER_QUERY
    twice = {
        "queries": point(sizes[1], 2 * queries, pairs),
        "words": point(sizes[1], queries, pairs, 2 * WORDS),
    }
    if not quick:
        draw(points, PICTURE)
    growth = [growth_between("documents", a, b) for a, b in pairwise(points)]
    growth += [growth_between(key, base, other) for key, other in twice.items()]
    rows = [
        {
            "name": f"{one['documents']:,} documents, {one['queries']:,} queries, {one['words']:,} words",
            "ratio": round(one["bm25s_ms"] / one["lexical_ms"], 2),
            **{key: value for key, value in one.items() if key not in ("documents", "queries", "words")},
        }
        for one in [*points, *twice.values()]
    ]
    return {
        "case": "scale",
        "size": f"synthetic, {sizes[0]:,} to {sizes[-1]:,} documents, {pairs:,} pairs",
        "peer": "bm25s, numba backend (the ratio is that of a lexical search from raw text)",
        "rows": rows,
        "growth": growth,
        "closed_form": closed_form_rows(sizes[0]),
        "peak_mb": max(one["peak_mb"] for one in points),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="go on to a million documents")
    print(json.dumps(run(full=parser.parse_args().full), indent=2))

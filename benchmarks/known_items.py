"""Does the learned model still find a document by its name? Names and titles of the collection as queries.

Each query is made from one document, its only right result: in pydocs the full name (`numpy.linalg.solve`), its
last two parts or its last part, in NFCorpus and winapi the title. The documents are drawn at random; a text of NFCorpus
begins with its title, which ends at "abstract". The learned model trains on the training queries of the collection as
`sparserank train --exclude-self` does; nDCG@10 is that of dev, in collections of links also without the judgments
whose reverse is in training (`reverse_share` of all). The query numpy.sort has a row of its own, which names the first
document of both.

    python -m benchmarks.known_items pydocs nfcorpus [--pairs N] [--queries 3000]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import sparserank as sr

from .measure import in_new_process, peak_megabytes, reverses_of, without_reverses
from .text_training import queries_are_pages

QUERIES = 200
PAIRS = {"pydocs": 300_000, "nfcorpus": 1_000_000, "winapi": 1_000_000}
NAMED = {"pydocs": ("numpy.sort",)}
"""Documents whose full name has a row of its own."""
MEASURES = {"mrr": "RR@10", "first": "P@1"}


def last_parts(n: int) -> Callable[[str, str], str]:
    """A function that returns the last n parts of a dotted title."""
    return lambda title, text: ".".join(title.split(".")[-n:])


def _before_abstract(title: str, text: str) -> str:
    return text.split(" abstract ")[0].removesuffix(" pubmed ncbi")


def _title(title: str, text: str) -> str:
    return title


KINDS: dict[str, dict[str, Callable[[str, str], str]]] = {
    "pydocs": {"full name": _title, "last two parts": last_parts(2), "last part": last_parts(1)},
    "nfcorpus": {"title": _before_abstract},
    "winapi": {"title": _title},
}


def known_items(documents: Any, make: Callable[[str, str], str], n: int, seed: int = 0) -> tuple[Any, Any]:
    """Queries made from n documents, and their judgments: the document itself."""
    drawn = np.sort(np.random.default_rng(seed).permutation(len(documents))[:n]).tolist()
    queries = {f"known item {i}": make(documents.titles[i], documents.texts[i]) for i in drawn}
    return queries, {f"known item {i}": {documents.ids[i]: 1} for i in drawn}


def measure(name: str, pairs: int, n: int) -> list[dict[str, Any]]:
    """One row for each kind of query: BM25 and learned."""
    collection = sr.data.load(name)
    exclude_self = queries_are_pages(collection)
    documents, dev = collection.documents, collection.qrels["dev"]
    learned = sr.TextRanker(max_pairs=pairs)
    learned.fit(documents, collection.queries, collection.qrels["train"], exclude_self=exclude_self)
    bm25 = sr.TextRanker("bm25").fit(documents)
    texts = {query: collection.queries[query] for query in dev}
    rankers = {"bm25": bm25, "learned": learned}
    keys = {"bm25": "bm25_ndcg", "learned": "ndcg"}
    runs = {keys[label]: ranker.run(texts, 100, exclude_self) for label, ranker in rankers.items()}
    figures = {key: round(_values(run, dev, ["nDCG@10"])[0], 4) for key, run in runs.items()}
    figures |= without_reverses(reverses_of(collection, dev), dev, runs)
    rows = [
        _row(f"{name}, {kind}", *known_items(documents, make, n), bm25, learned) | figures
        for kind, make in KINDS[name].items()
    ]
    for item in NAMED.get(name, ()):
        first = {f"{label}_first_document": ranker.search(item, 1)[0].id for label, ranker in rankers.items()}
        rows.append(_row(f"{name}, {item}", {item: item}, {item: {item: 1}}, bm25, learned) | first)
    rows[0]["peak_mb"] = peak_megabytes()
    return rows


def _row(name: str, queries: Any, qrels: Any, bm25: sr.TextRanker, learned: sr.TextRanker) -> dict[str, Any]:
    row: dict[str, Any] = {}
    found = [_values(ranker.run(queries, 10), qrels, list(MEASURES.values())) for ranker in (bm25, learned)]
    for at, measure_name in enumerate(MEASURES):
        row |= {f"bm25_{measure_name}": round(found[0][at], 4), measure_name: round(found[1][at], 4)}
    return {"name": name, "ratio": round(row["mrr"] / row["bm25_mrr"], 3)} | row


def _values(run: Any, qrels: Any, measures: list[str]) -> list[float]:
    found = sr.evaluation.evaluate_run(run, qrels, measures)
    return [float(found[measure].value) for measure in measures]


def run(quick: bool = False) -> dict[str, Any]:
    """One row for each collection and kind of query."""
    rows = []
    for name in ("pydocs",) if quick else KINDS:
        rows += in_new_process("known_items", "measure", name, PAIRS[name], QUERIES)
    return {
        "case": "known items",
        "size": f"{QUERIES} queries of each kind; mrr is MRR@10, first is the share with the right document first, "
        "ndcg is nDCG@10 of dev queries",
        "peer": "BM25 (the ratio is that of MRR@10)",
        "rows": rows,
        "peak_mb": max(row.pop("peak_mb", 0.0) for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collections", nargs="*", default=["pydocs", "nfcorpus"])
    parser.add_argument("--pairs", type=int, help="pairs of the model")
    parser.add_argument("--queries", type=int, default=QUERIES, help="queries of each kind")
    given = parser.parse_args()
    for name in given.collections:
        for row in measure(name, given.pairs or PAIRS[name], given.queries):
            print(json.dumps(row), file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()

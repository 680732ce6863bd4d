"""Top 10 of winapi by BM25 under filters of different selectivity, against plain search, reading everything, and bm25s.

winapi has 90,013 documents with the metadata `header`, `kind` and `url`. bm25s searches the same weights with a weight
mask, its way to leave documents out; its scores must be ours. `plain` is our search without a filter, `exhaustive` our
search without pruning. For each filter the results must be the exhaustive ranking of all documents without those that
do not match. Times are milliseconds of one core per query from split words, the best of three rounds in which all take
turns; `ratio` is bm25s to our filtered search. `facets` adds the counts of `kind` among all results.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from sparserank import TextRanker
from sparserank.data import load
from sparserank.search import Index
from sparserank.search.encoded_query import EncodedQuery

from .measure import peak_megabytes
from .search_scale import K, best_milliseconds, bm25s_engine

FILTERS = (
    "NOT header:fileapi", "kind:function", "kind:structure", "kind:callback", "header:winuser", "header:fileapi",
)  # fmt: skip
QUERIES = 300


def check(index: Index, filtered: Index, queries: list[EncodedQuery]) -> None:
    """Raise AssertionError unless the filtered results are those of the whole ranking that match."""
    matches = {filtered.id_at(number) for number in filtered.segments[0].live.tolist()}
    for query in queries:
        ranking = index.run(query, ["q"], k=len(index))["q"]
        wanted = [(name, score) for name, score in ranking.items() if name in matches][:K]
        if [(hit.id, hit.score) for hit in filtered.search(query, K)[0]] != wanted:
            raise AssertionError("a filtered search has other results than the filtered ranking")


def measure(ranker: TextRanker, texts: list[str], given: str, rounds: int) -> dict[str, Any]:
    """Check and measure one filter."""
    index = ranker.index_
    started = process_time()
    filtered = index.filtered(given)
    first = 1e3 * (process_time() - started)
    retrieve, tokenize = bm25s_engine(ranker)
    queries = [ranker.model_.encode_queries([text]) for text in texts]
    tokens, mask = [tokenize([text]) for text in texts], filtered.segments[0].is_live.astype(np.float32)
    check(index, filtered, queries[:20])
    for query, words in zip(queries[:20], tokens, strict=False):
        top = filtered.top(query, K)
        n = int(top.counts[0])
        if not np.allclose(top.scores[0, :n], retrieve(words, weight_mask=mask).scores[0, :n], rtol=1e-4):
            raise AssertionError("bm25s finds other scores")
    jobs: dict[str, Callable[[], Any]] = {
        "plain": lambda: [index.top(query, K, n_jobs=1) for query in queries],
        "filtered": lambda: [filtered.top(query, K, n_jobs=1) for query in queries],
        "exhaustive": lambda: [filtered.top(query, K, n_jobs=1, plan="exhaustive") for query in queries],
        "facets": lambda: [filtered.facets(query, ["kind"]) for query in queries],
        "bm25s": lambda: [retrieve(words, weight_mask=mask) for words in tokens],
    }
    ms = best_milliseconds(jobs, len(queries), rounds)
    row = {"name": given, "ratio": round(ms["bm25s"] / ms["filtered"], 2), "documents": len(filtered)}
    row |= {"of_plain": round(ms["filtered"] / ms["plain"], 2), "first_ms": round(first, 2)}
    return row | {f"{name}_ms": round(value, 4) for name, value in ms.items()}


def run(quick: bool = False) -> dict[str, Any]:
    """Milliseconds per query, by filter."""
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    collection = load("winapi")
    documents = collection.documents.take(range(5000)) if quick else collection.documents
    ranker = TextRanker("bm25").fit(documents)
    texts = list(collection.queries.values())[: 30 if quick else QUERIES]
    filters = ("kind:function", "kind:callback") if quick else FILTERS
    rows = [measure(ranker, texts, given, 1 if quick else 3) for given in filters]
    return {
        "case": "filtered search",
        "size": f"winapi, {len(documents):,} documents, {len(texts)} queries, top {K}, one thread, CPU time",
        "peer": "bm25s, numba backend, with a weight mask",
        "rows": rows,
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))

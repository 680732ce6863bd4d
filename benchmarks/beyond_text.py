"""Learned word pairs with BM25, against BM25 alone: nDCG@10 on queries that were not used for training or tuning.

NFCorpus and pydocs train on the train split alone and are measured once on dev and test. Cranfield has no splits: five
folds over its queries, each measured by a model of the other four. Seconds are those of `fit`, including model
selection; for pydocs they include reading the docstrings. `python -m benchmarks.beyond_text` prints a Markdown table.

In pydocs queries are documents: `reverse_share` is the share of judgments whose reverse is in training, and
`ndcg_without` and `bm25_without` are the figures without these judgments (`sparserank.evaluation.Reverses`).
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

import sparserank as sr
from sparserank.data.datasets import pydocs

from .markdown import table
from .measure import peak_megabytes

FOLDS = 5
MEASURE = "nDCG@10"


def judged_run(ranker: Any, collection: Any, qrels: Any) -> dict[str, dict[str, float]]:
    return ranker.run({q: collection.queries[q] for q in qrels}, 100, collection.exclude_self)


def row(name: str, learned: Any, bm25: Any, qrels: Any, **figures: Any) -> dict[str, Any]:
    """nDCG@10 of both, the ratio, and p of a paired randomisation test."""
    ours, theirs = (sr.evaluation.evaluate_run(found, qrels, MEASURE) for found in (learned, bm25))
    comparison = sr.evaluation.compare(ours, theirs)[MEASURE]
    value, base = ours[MEASURE].value, theirs[MEASURE].value
    numbers = {"ndcg": round(value, 4), "bm25": round(base, 4), "p": round(comparison.p, 5)}
    return {"name": name, "ratio": round(value / base, 3)} | numbers | figures


def one_split(collection: Any, test: str, size: dict[str, Any], name: str, before: float = 0.0) -> Any:
    """Learn from train, measure on another split."""
    started = perf_counter()
    ranker = sr.TextRanker(**size).fit(
        collection.documents, collection.queries, collection.qrels["train"], exclude_self=collection.exclude_self
    )
    seconds, qrels = before + perf_counter() - started, collection.qrels[test]
    bm25 = sr.TextRanker("bm25").fit(collection.documents)
    runs = (judged_run(one, collection, qrels) for one in (ranker, bm25))
    learned, lexical = runs
    figures = {"pairs": ranker.model_.n_pairs, "seconds": round(seconds, 1)}
    return row(name, learned, lexical, qrels, **figures, **without_reverses(collection, qrels, learned, lexical))


def without_reverses(collection: Any, qrels: Any, learned: Any, lexical: Any) -> dict[str, float]:
    """nDCG@10 of both without the judgments whose reverse is in training, and the share of these; {} where none is."""
    reverses = sr.evaluation.Reverses.in_collection(collection, qrels)
    if reverses is None:
        return {}
    found = [reverses.evaluate(one, qrels, MEASURE) for one in (learned, lexical)]
    values = {name: round(one[MEASURE].value, 4) for name, one in zip(("ndcg", "bm25"), found, strict=True)}
    return {"reverse_share": round(reverses.share, 4)} | {f"{name}_without": value for name, value in values.items()}


def folds(collection: Any, max_pairs: int) -> dict[str, Any]:
    """Every query measured by a model that has not seen it."""
    qrels = collection.qrels["all"] if "all" in collection.qrels else next(iter(collection.qrels.values()))
    names = np.array(list(qrels))
    fold = np.random.default_rng(0).permutation(len(names)) % FOLDS
    bm25 = sr.TextRanker("bm25").fit(collection.documents)
    found: dict[str, dict[str, float]] = {}
    started, pairs = perf_counter(), 0
    for one in range(FOLDS):
        train = {q: qrels[q] for q in names[fold != one].tolist()}
        ranker = sr.TextRanker(max_pairs=max_pairs).fit(collection.documents, collection.queries, train)
        found |= judged_run(ranker, collection, {q: qrels[q] for q in names[fold == one].tolist()})
        pairs = max(pairs, ranker.model_.n_pairs)
    seconds = (perf_counter() - started) / FOLDS
    figures = {"pairs": pairs, "seconds": round(seconds, 1)}
    return row("Cranfield, five folds", found, judged_run(bm25, collection, qrels), qrels, **figures)


def run(quick: bool = False) -> dict[str, Any]:
    """A row a collection and size."""
    started = perf_counter()
    documented = pydocs.build(pydocs.installed_versions())
    reading = perf_counter() - started
    few = {"max_pairs": 200_000}
    rows = [one_split(documented, "test", few, "pydocs test", reading)]
    if not quick:
        rows.append(one_split(documented, "test", few | {"nonnegative": True}, "pydocs test, no pair below 0"))
        medical = sr.data.load("nfcorpus")
        rows += [
            one_split(medical, "dev", {"max_pairs": pairs}, f"NFCorpus dev, {pairs:,} pairs")
            for pairs in (1_000_000, 300_000)
        ]
        rows.append(folds(sr.data.load("cranfield"), 200_000))
    return {
        "case": "learned word pairs on text collections",
        "size": "nDCG@10, and its ratio to BM25 alone (k1 .9, b .4) on the same queries",
        "peer": "BM25",
        "rows": rows,
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(table(run()["rows"]))

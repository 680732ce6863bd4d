"""Learned word pairs with BM25, against BM25 and tuned BM25: nDCG@10 on queries that none of them was fitted on.

NFCorpus and pydocs train on the train split alone and are measured on dev and test. Cranfield has no splits: five
folds over its queries, each measured by a model of the other four. Seconds are those of `fit`, including model
selection; for pydocs they include reading the docstrings. `python -m benchmarks.beyond_text` prints a Markdown table,
and `… beyond_text cranfield` the rows of one collection.

`bm25` has the default k1 .9 and b .4; `bm25_tuned` has the k1 and b with the best nDCG@10 on the training queries alone
(`benchmarks/tuned_bm25.py`). `ndcg_on_tuned` is learned on top of tuned BM25. `p` compares `ndcg` with `bm25`,
`p_tuned` with `bm25_tuned`; `p_on_tuned` compares `ndcg_on_tuned` with `bm25_tuned`.

In pydocs queries are documents: `reverse_share` is the share of judgments whose reverse is in training, and the
columns that end in `without` are the figures without these judgments (`sparserank.evaluation.Reverses`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

import sparserank as sr
from sparserank.data.datasets import pydocs

from .markdown import table
from .measure import peak_megabytes, reverses_of, without_reverses
from .tuned_bm25 import BM25Grid, settings_text, tune_bm25

FOLDS = 5
MEASURE = "nDCG@10"


def judged_run(ranker: Any, collection: Any, qrels: Any) -> dict[str, dict[str, float]]:
    return ranker.run({q: collection.queries[q] for q in qrels}, 100, collection.exclude_self)


def row(name: str, runs: dict[str, Any], qrels: Any, reverses: Any, **figures: Any) -> dict[str, Any]:
    """nDCG@10 of every run, the ratio to BM25, and p of paired randomisation tests against both BM25."""
    found = {key: sr.evaluation.evaluate_run(run, qrels, MEASURE) for key, run in runs.items()}
    values = {key: round(one[MEASURE].value, 4) for key, one in found.items()}
    ratio = round(found["ndcg"][MEASURE].value / found["bm25"][MEASURE].value, 3)
    tests = {"p": ("ndcg", "bm25"), "p_tuned": ("ndcg", "bm25_tuned"), "p_on_tuned": ("ndcg_on_tuned", "bm25_tuned")}
    p_values = {
        key: round(sr.evaluation.compare(found[ours], found[peer])[MEASURE].p, 5) for key, (ours, peer) in tests.items()
    }
    return {"name": name, "ratio": ratio} | values | p_values | figures | without_reverses(reverses, qrels, runs)


def one_split(collection: Any, test: str, size: dict[str, Any], name: str, before: float = 0.0) -> Any:
    """Learn from train, measure on another split."""
    training, qrels = collection.qrels["train"], collection.qrels[test]
    tuned = tune_bm25(collection, training, collection.exclude_self)

    def learn(**parameters: Any) -> Any:
        return sr.TextRanker(**size, **parameters).fit(
            collection.documents, collection.queries, training, exclude_self=collection.exclude_self
        )

    started = perf_counter()
    ranker = learn()
    seconds = before + perf_counter() - started
    rankers = {
        "ndcg": ranker,
        "bm25": sr.TextRanker("bm25").fit(collection.documents),
        "bm25_tuned": sr.TextRanker("bm25", lexical=tuned).fit(collection.documents),
        "ndcg_on_tuned": learn(lexical=tuned),
    }
    runs = {key: judged_run(one, collection, qrels) for key, one in rankers.items()}
    figures = {"k1_and_b": settings_text([tuned]), "pairs": ranker.model_.n_pairs, "seconds": round(seconds, 1)}
    return row(name, runs, qrels, reverses_of(collection, qrels), **figures)


def folds(collection: Any, max_pairs: int) -> dict[str, Any]:
    """Every query measured by a model, and by a setting of BM25, that has not seen it."""
    qrels = collection.qrels["all"] if "all" in collection.qrels else next(iter(collection.qrels.values()))
    names = np.array(list(qrels))
    fold = np.random.default_rng(0).permutation(len(names)) % FOLDS
    grid = BM25Grid.of(collection, qrels, collection.exclude_self)
    runs: dict[str, Any] = {key: {} for key in ("ndcg", "bm25", "bm25_tuned", "ndcg_on_tuned")}
    seconds, pairs, chosen = 0.0, 0, []
    for one in range(FOLDS):
        train = {q: qrels[q] for q in names[fold != one].tolist()}
        test = {q: qrels[q] for q in names[fold == one].tolist()}
        started = perf_counter()
        ranker = sr.TextRanker(max_pairs=max_pairs).fit(collection.documents, collection.queries, train)
        seconds += perf_counter() - started
        pairs = max(pairs, ranker.model_.n_pairs)
        chosen.append(grid.best(train))
        rankers = {
            "ndcg": ranker,
            "bm25": sr.TextRanker("bm25").fit(collection.documents),
            "bm25_tuned": sr.TextRanker("bm25", lexical=chosen[-1]).fit(collection.documents),
            "ndcg_on_tuned": sr.TextRanker(lexical=chosen[-1], max_pairs=max_pairs).fit(
                collection.documents, collection.queries, train
            ),
        }
        for key, system in rankers.items():
            runs[key] |= judged_run(system, collection, test)
    figures = {"k1_and_b": settings_text(chosen), "pairs": pairs, "seconds": round(seconds / FOLDS, 1)}
    return row("Cranfield, five folds", runs, qrels, None, **figures)


def rows(quick: bool = False, only: str = "") -> Iterator[dict[str, Any]]:
    """A row a collection and size; with `only` those of the collections whose name begins so."""
    if "pydocs".startswith(only):
        started = perf_counter()
        documented = pydocs.build(pydocs.installed_versions())
        reading = perf_counter() - started
        few = {"max_pairs": 200_000}
        yield one_split(documented, "test", few, "pydocs test", reading)
        if not quick:
            yield one_split(documented, "test", few | {"nonnegative": True}, "pydocs test, no pair below 0")
    if "nfcorpus".startswith(only) and not quick:
        medical = sr.data.load("nfcorpus")
        for pairs in (1_000_000, 300_000):
            yield one_split(medical, "dev", {"max_pairs": pairs}, f"NFCorpus dev, {pairs:,} pairs")
    if "cranfield".startswith(only) and not quick:
        yield folds(sr.data.load("cranfield"), 200_000)


def run(quick: bool = False) -> dict[str, Any]:
    """All rows."""
    return {
        "case": "learned word pairs on text collections",
        "size": "nDCG@10, and its ratio to BM25 alone (k1 .9, b .4) on the same queries",
        "peer": "BM25, and BM25 tuned on training queries",
        "rows": list(rows(quick)),
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(table(list(rows(only=(*sys.argv[1:], "")[0]))))

"""How much of the learned part of a score do five lines of an explanation show, and what does a larger share cost?

The learned part of a score is a sum of contributions, one for each pair of a query word and a document word. Its
explained share is the sum of the five largest absolute contributions, divided by the sum of all. A line is a pair, or
all pairs with the same document word, or all with the same query word. Held-out training queries are ranked by a W of
the other training queries (squared loss, not refitted); the median is over their first ten results that have learned
contributions.

    python -m benchmarks.explained_share nfcorpus pydocs [--per-word 20 100]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import sparserank as sr
from sparserank.optim.closed_form import ClosedForm
from sparserank.optim.penalties import Ridge
from sparserank.optim.pruning import PairBudget
from sparserank.search.explanation import shown_share
from sparserank.text_ranker.candidates import CandidateSearch
from sparserank.text_ranker.held_out import searched_ndcg
from sparserank.text_ranker.model_selection import make_folds, score_held_out, tune_pair_weight, tune_ridge
from sparserank.text_ranker.training_data import TrainingData

from .measure import peak_megabytes
from .text_training import queries_are_pages

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
QUERIES = 150
"""Held-out queries whose results are explained."""


def shares(queries: Any, top: Any, W: Any) -> tuple[list[float], list[float], list[float]]:
    """The explained shares of all results: by pairs, by document words, and by query words."""
    by_pair, by_document_word, by_query_word = [], [], []
    Q, D = queries.lists.Q, queries.lists.D
    for query in range(min(len(queries), QUERIES)):
        row = Q[[query]]
        entries = W[row.indices].tocoo()
        weight = row.data[entries.row] * entries.data
        for document in top[query][top[query] >= 0].tolist():
            values = weight * D[[document]].toarray()[0][entries.col]
            if values.any():
                by_pair.append(shown_share(values))
                by_document_word.append(shown_share(np.bincount(entries.col, values)))
                by_query_word.append(shown_share(np.bincount(entries.row, values)))
    return by_pair, by_document_word, by_query_word


def measure(name: str, per_word: tuple[int, ...] = ()) -> Iterator[dict[str, Any]]:
    """One row for each size, and for each limit of the pairs of one query word at the default size."""
    collection = sr.data.load(name)
    trainer = sr.TextRanker(loss="squared").trainer()
    data = TrainingData.validate(
        collection.documents, collection.queries, collection.qrels["train"], exclude_self=queries_are_pages(collection)
    )
    data = replace(data, lexical_rows=trainer.lexical.fit(collection.documents))
    learner, matrices, _ = trainer.prepare(data)
    search, (fold, *_) = CandidateSearch.of(matrices), make_folds(matrices, 0)
    choice = tune_ridge([fold], search, lambda message: None)
    settings = choice.query_normalization, Ridge(choice.ridge_query, choice.ridge_document)
    form = ClosedForm(matrices.lists.D, learner.max_size)
    budgets = {f"{size:,} pairs": PairBudget(size) for size in SIZES}
    budgets |= {f"{n} pairs per query word": PairBudget(pairs_per_word=n) for n in per_word}
    largest = replace(learner, budget=PairBudget(max(SIZES))).find_pairs(form, fold.train.lists, *settings, refit=False)
    for label, budget in budgets.items():
        W = replace(learner, budget=budget).fit(form, fold.train.lists, *settings, refit=False, found=largest)
        result = tune_pair_weight([score_held_out(fold.held_out, search, W)], *settings)
        top = search.top(fold.held_out, 10, W, result.pair_weight)
        by_pair, by_document_word, by_query_word = map(np.median, shares(fold.held_out, top, W))
        yield {
            "name": f"{name}, {label}",
            "ratio": round(float(by_document_word / by_pair), 2),
            "pairs": int(W.nnz),
            "ndcg": round(float(searched_ndcg(fold.held_out, search, W, result.pair_weight).mean()), 4),
            "by_pair": round(float(by_pair), 3),
            "by_document_word": round(float(by_document_word), 3),
            "by_query_word": round(float(by_query_word), 3),
        }


def run(quick: bool = False) -> dict[str, Any]:
    """A row for each collection and size."""
    rows = [row for name in (("pydocs",) if quick else ("nfcorpus", "pydocs")) for row in measure(name)]
    return {
        "case": "explained share",
        "size": f"held-out training queries; shares are medians over the first ten results of {QUERIES} queries",
        "peer": "lines that are single pairs (the ratio is that of the shares)",
        "rows": rows,
        "peak_mb": peak_megabytes(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collections", nargs="*", default=["nfcorpus", "pydocs"])
    parser.add_argument("--per-word", nargs="*", type=int, default=[], help="limits of the pairs of one query word")
    given = parser.parse_args()
    for name in given.collections:
        for row in measure(name, tuple(given.per_word)):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

"""Word pairs without judgments against BM25: nDCG@10 on judged queries that nothing was learned from.

A row is a collection and the sources of `learn_from`. Which sources are kept, and at which weight, is decided on
held-out pages; the judgments of dev (of Cranfield, its only split) are only reported. Titles of NFCorpus are the first
words of its texts, which have none. The log has the training queries, without their judgments. `--tune` prints, on
training queries of pydocs and NFCorpus, what the constants of `text_ranker/weak_supervision.py` were chosen from:
nDCG@10 by the number of pairs, the ridge and the weight, and of a log by the number of pages that count as relevant.

    python -m benchmarks.learn_from --tune [titles openings log]
    python -m benchmarks.learn_from [cranfield=titles pydocs=titles,openings …]
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np

import sparserank as sr
from sparserank.data.page_queries import training_queries
from sparserank.evaluation import compare, evaluate_run
from sparserank.optim.closed_form import ClosedForm
from sparserank.optim.penalties import Ridge
from sparserank.optim.pruning import PairBudget
from sparserank.text_ranker.held_out import HeldOut
from sparserank.text_ranker.pair_learner import PairLearner
from sparserank.text_ranker.query_log import log_queries
from sparserank.text_ranker.query_vocabulary import QueryVocabulary
from sparserank.text_ranker.training_data import TrainingData
from sparserank.text_ranker.weak_supervision import PAIRS, QUERY_NORMALIZATION, RIDGE
from sparserank.text_ranker.weak_tests import WEIGHTS, encode_source

from .measure import in_new_process, peak_megabytes
from .text_training import queries_are_pages

MEASURE = "nDCG@10"
DEPTHS = (3, 10, 30)
ROWS = (
    ("cranfield", "titles"), ("cranfield", "titles,openings"), ("nfcorpus", "titles"), ("nfcorpus", "titles,openings"),
    ("nfcorpus", "log"),
    ("pydocs", "titles"), ("pydocs", "openings"), ("pydocs", "titles,openings,mentions"),
    ("pydocs", "log"),
    ("winapi", "titles,openings,mentions"),
)  # fmt: skip


def measure(name: str, sources: str) -> dict[str, Any]:
    """Learn without judgments, and measure judged queries."""
    collection, started = sr.data.load(name), process_time()
    split = "dev" if "dev" in collection.qrels else next(iter(collection.qrels))
    qrels = collection.qrels[split]
    exclude_self = split == "dev" and queries_are_pages(collection)
    log = {query: collection.queries[query] for query in collection.qrels.get("train", ())}
    ranker = sr.TextRanker().fit(collection.documents, log if "log" in sources else None, learn_from=sources)
    seconds, queries = process_time() - started, {query: collection.queries[query] for query in qrels}
    found = [
        evaluate_run(one.run(queries, 100, exclude_self), qrels, MEASURE)
        for one in (sr.TextRanker("bm25").fit(collection.documents), ranker)
    ]
    difference = compare(*found)[MEASURE].difference
    bm25, learned = (one[MEASURE].value for one in found)
    kept = [source for source, one in ranker.model_.info["learned_from"].items() if one["weight"]]
    return {
        "name": f"{name}, {sources}", "ratio": round(learned / bm25, 2), "bm25": round(bm25, 4),
        "learned": round(learned, 4), "difference": f"{difference.low:+.4f} to {difference.high:+.4f}",
        "kept": ", ".join(kept) or "none, BM25 stays", "pairs": ranker.model_.n_pairs, "cpu_s": round(seconds, 1),
        "peak_mb": peak_megabytes(),
    }  # fmt: skip


def tune(name: str, source: str, n_queries: int = 1_000, depth: int | None = None) -> None:
    """Print nDCG@10 of training queries by pairs, ridge and weight of one source.

    depth : of a log, whose queries are those of the training split that are not measured: at least its second half.
    """
    collection = sr.data.load(name)
    documents, lexical = collection.documents, sr.TextRanker().lexical_model()
    rows, train = lexical.fit(documents), list(collection.qrels["train"])
    measured = train[: n_queries if depth is None else min(n_queries, len(train) // 2)]
    data = TrainingData.validate(
        documents, collection.queries, {query: collection.qrels["train"][query] for query in measured},
        exclude_self=queries_are_pages(collection),
    )  # fmt: skip
    data = replace(data, lexical_rows=rows)
    if depth is None:
        made = training_queries(documents, source)[source].with_names()
    else:
        typed = {query: collection.queries[query] for query in train[len(measured) :]}
        made = log_queries(typed, documents, lexical, rows, depth).with_names()
    vocabulary = QueryVocabulary.from_texts(lexical.features, made.queries.values())
    lists = encode_source(made, lexical, vocabulary, data).lists
    judged = HeldOut.of(data.encode(lexical, vocabulary), None)
    base, label = judged.candidates.base, source if depth is None else f"{source}, {depth} pages"
    for pairs in (20_000, 100_000, 300_000) if depth is None else (PAIRS,):
        for ridge in (Ridge(1.0, 1.0), Ridge(1.0, 10.0), Ridge(10.0, 10.0)) if depth is None else (RIDGE,):
            learner = PairLearner(PairBudget(pairs).for_shape(lists.shape))
            W = learner.fit(ClosedForm(lists.D, learner.max_size), lists, QUERY_NORMALIZATION, ridge, refit=False)
            scores = judged.pair_scores(W)
            unit = np.float32(np.std(base) / np.std(scores))
            by_weight = [judged.ndcg(base + np.float32(weight) * unit * scores)[0].mean() for weight in (0.0, *WEIGHTS)]
            print(f"{name} {label} {pairs:7,d} pairs {ridge}", *(f"{value:.4f}" for value in by_weight), flush=True)


def run(quick: bool = False) -> dict[str, Any]:
    """One row for each collection and its sources."""
    rows = []
    for name, sources in ROWS[:1] if quick else ROWS:
        rows.append(in_new_process("learn_from", "measure", name, sources))
        print(rows[-1], file=sys.stderr, flush=True)
    return {
        "case": "learning without judgments",
        "size": "nDCG@10 of judged queries; no judgment was learned from; the interval of the difference has 95 %",
        "peer": "BM25 (the ratio is that of nDCG@10)",
        "rows": rows,
        "peak_mb": max(row["peak_mb"] for row in rows),
    }


if __name__ == "__main__":
    logging.disable()
    if "--tune" in sys.argv:
        chosen = [one for one in sys.argv[1:] if one != "--tune"] or ["titles", "openings", "log"]
        for source in chosen:
            for name in ("pydocs", "nfcorpus"):
                for depth in DEPTHS if source == "log" else (None,):
                    tune(name, source, depth=depth)
    else:
        for one in sys.argv[1:] or ["=".join(row) for row in ROWS]:
            print(json.dumps(measure(*one.split("="))), flush=True)

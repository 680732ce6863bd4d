"""LambdaMART on the features of a ranker: nDCG@10 of BM25, of learned pairs and of the trees, on a split for testing.

    python -m benchmarks.ltr nfcorpus
    python -m benchmarks.ltr pydocs --library xgboost
    python -m benchmarks.ltr cranfield

Pairs and trees learn from the train split, and all parameters are chosen on held-out parts of it. Cranfield has no
splits: every fifth query is a test query. For pydocs, whose judgments are links, the table has the share of judgments
whose reverse is in training, and nDCG@10 without them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import sparserank as sr
from sparserank.integrations.ltr import LIBRARIES, LambdaMART, fit_lambdamart

from .markdown import table
from .measure import reverses_of, without_reverses

TESTS = {"nfcorpus": "dev", "pydocs": "test", "cranfield": "test"}
MEASURE = "nDCG@10"


def load(name: str) -> Any:
    """The collection; Cranfield is split by the position of its queries."""
    collection = sr.data.load(name)
    if name != "cranfield":
        return collection
    (qrels,) = collection.qrels.values()
    parts: dict[str, dict[str, Any]] = {"train": {}, "test": {}}
    for number, (query, grades) in enumerate(qrels.items()):
        parts["train" if number % 5 else "test"][query] = grades
    return replace(collection, qrels=parts)


def again(model: LambdaMART, queries: Mapping[str, str], exclude_self: bool) -> dict[str, dict[str, float]]:
    """The run of the trees."""
    runs = {}
    for query, text in queries.items():
        hits = model.search(text, model.depth)
        runs[query] = {hit.id: hit.score for hit in hits if not (exclude_self and hit.id == query)}
    return runs


def measure(name: str, library: str, max_pairs: int) -> list[dict[str, Any]]:
    """One row for each ranker."""
    collection = load(name)
    documents, own, qrels = collection.documents, collection.exclude_self, collection.qrels[TESTS[name]]
    queries = {query: collection.queries[query] for query in qrels}
    ranker = sr.TextRanker(max_pairs=max_pairs)
    ranker.fit(documents, collection.queries, collection.qrels["train"], exclude_self=own)
    model = fit_lambdamart(ranker, collection.queries, collection.qrels["train"], library=library, exclude_self=own)
    runs = {
        "BM25": sr.TextRanker("bm25").fit(documents).run(queries, 100, own),
        "learned pairs": ranker.run(queries, 100, own),
        f"LambdaMART ({library})": again(model, queries, own),
    }
    found = {title: sr.evaluation.evaluate_run(run, qrels, MEASURE) for title, run in runs.items()}
    rows: list[dict[str, Any]] = [{"name": title, MEASURE: f"{one.mean():.4f}"} for title, one in found.items()]
    reverses = reverses_of(collection, qrels)
    for row, run in zip(rows, runs.values(), strict=True):
        alone = without_reverses(reverses, qrels, {MEASURE: run})
        row |= {key.replace("_", " "): value for key, value in alone.items()}
    p_value = sr.evaluation.compare(found[f"LambdaMART ({library})"], found["learned pairs"])[MEASURE].p
    rows[-1] |= {
        "p against learned pairs": f"{p_value:.4f}",
        "chosen": str({k: model.info[k] for k in ("leaves", "rate", "rounds")}),
    }
    rows[-1] |= {"held out: ranker, trees": f"{model.info['ndcg_of_ranker']:.4f}, {model.info['ndcg']:.4f}"}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=tuple(TESTS))
    parser.add_argument("--library", choices=tuple(LIBRARIES), default="lightgbm")
    parser.add_argument("--max-pairs", type=int, default=200_000)
    options = parser.parse_args()
    print(table(measure(options.data, options.library, options.max_pairs)))


if __name__ == "__main__":
    main()

"""Whether BM25F with tuned weights of title and text beats BM25: held out of train, and on dev.

python -m benchmarks.field_weights mdn-de winapi pydocs
"""

from __future__ import annotations

import sys
from time import process_time

import sparserank as sr
from sparserank.data.open import open_collection
from sparserank.evaluation import compare, evaluate_run

from .text_training import queries_are_pages

MEASURE = "nDCG@10"


def measure(name: str) -> None:
    """Print the tuned weights, and the measure of both scores on dev."""
    collection, messages = open_collection(name), []
    exclude_self = queries_are_pages(collection)
    dev = collection.qrels["dev"]
    queries = {query: collection.queries[query] for query in dev}
    found = {}
    for label, weights in (("BM25", None), ("BM25F, weights 1", {"title": 1.0}), ("BM25F, tuned", "auto")):
        started = process_time()
        ranker = sr.TextRanker("bm25", lexical=sr.BM25(field_weights=weights))
        ranker.fit(
            collection.documents, collection.queries, collection.qrels["train"],
            exclude_self=exclude_self, callback=messages.append,
        )  # fmt: skip
        run = ranker.run(queries, 100, exclude_self)
        found[label] = evaluate_run(run, dev, MEASURE)
        seconds = process_time() - started
        print(f"{name:10s} {label:18s} {MEASURE} on dev {found[label][MEASURE].value:.4f}  {seconds:.0f} s of CPU")
        print("   ", ranker.lexical_.weight_of_field, *messages[-1:])
        if weights is not None:
            comparison = compare(found["BM25"], found[label])[MEASURE]
            low, high = comparison.difference.low, comparison.difference.high
            print(
                f"    difference {comparison.difference.value:+.4f} [{low:+.4f}, {high:+.4f}], p = {comparison.p:.4f}"
            )


if __name__ == "__main__":
    for name in sys.argv[1:] or ["mdn-de", "winapi", "pydocs"]:
        measure(name)

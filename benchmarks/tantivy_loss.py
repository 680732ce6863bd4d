"""Learned pairs in Tantivy: nDCG@10 of its BM25, of queries that pairs expand there, and of the model itself.

    python -m benchmarks.tantivy_loss nfcorpus --split dev

The model learns from the train split. Tantivy's own BM25 has k1 1.2 and b .75; nothing is tuned for it.
"""

from __future__ import annotations

import argparse

import sparserank as sr
from sparserank.integrations.tantivy import TantivySearch

from .markdown import table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--max-pairs", type=int, default=300_000)
    options = parser.parse_args()
    data = sr.data.load(options.data)
    ranker = sr.TextRanker(max_pairs=options.max_pairs)
    ranker.fit(data.documents, data.queries, data.qrels["train"], exclude_self=data.exclude_self)
    qrels, engine = data.qrels[options.split], TantivySearch(ranker)
    queries = {query: data.queries[query] for query in qrels}
    runs = {"the model": ranker.run(queries, 100, data.exclude_self)}
    for title, pairs in (("Tantivy, BM25", False), ("Tantivy, expanded", True)):
        found = {query: dict(engine.search(text, 101, pairs=pairs)) for query, text in queries.items()}
        for query, run in found.items() if data.exclude_self else ():
            run.pop(query, None)
        runs[title] = found
    runs["BM25"] = sr.TextRanker("bm25").fit(data.documents).run(queries, 100, data.exclude_self)
    means = {title: sr.evaluation.evaluate_run(run, qrels, "nDCG@10").mean() for title, run in runs.items()}
    print(table([{"name": title, "nDCG@10": f"{mean:.4f}"} for title, mean in means.items()]))


if __name__ == "__main__":
    main()

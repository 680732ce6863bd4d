"""BM25, learned pairs, embeddings alone, and learned pairs with embeddings: nDCG@10 on the queries of a split.

    python -m benchmarks.dense nfcorpus
    python -m benchmarks.dense nfcorpus --vectors nfcorpus.npz

Without a file of vectors (`benchmarks/minilm.sh`) the embeddings are latent semantic analysis of the documents with
DIMENSIONS dimensions. Everything is trained and tuned on the train split. For pydocs, whose judgments are links, the
table has the share of judgments whose reverse is in training, and nDCG@10 without them.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import sparserank as sr
from sparserank.data import open_data
from sparserank.search.dense import unit_rows

from .markdown import table
from .measure import reverses_of, without_reverses

DIMENSIONS = 256
MEASURE = "nDCG@10"
SPLITS = {"nfcorpus": "dev", "pydocs": "test"}


def analyse(collection: Any) -> tuple[Any, Any]:
    """Latent semantic analysis: vectors of queries and documents."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    documents = collection.documents
    texts = [f"{title} {text}" for title, text in zip(documents.titles, documents.texts, strict=True)]
    weights = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2)
    model = make_pipeline(weights, TruncatedSVD(DIMENSIONS, random_state=0)).fit(texts)
    return model.transform(collection.queries.values()), model.transform(texts)


def dense_run(collection: Any, Q: Any, D: Any, qrels: Any) -> dict[str, dict[str, float]]:
    """The run of the cosines alone."""
    place = {query: i for i, query in enumerate(collection.queries)}
    documents, rows = unit_rows("D", D), unit_rows("Q", Q)
    out = {}
    for query in qrels:
        scores = dict(zip(collection.documents.ids, (documents @ rows[place[query]]).tolist(), strict=True))
        if collection.exclude_self:
            scores.pop(query, None)
        out[query] = dict(sorted(scores.items(), key=lambda one: -one[1])[:100])
    return out


def measure(collection: Any, split: str, Q: Any, D: Any, max_pairs: int) -> list[dict[str, Any]]:
    """One row for each ranker."""
    qrels, train = collection.qrels[split], collection.qrels["train"]
    queries = {query: collection.queries[query] for query in qrels}
    place = {query: i for i, query in enumerate(collection.queries)}
    vectors = np.asarray(Q)[[place[query] for query in qrels]]
    options: dict[str, Any] = {"exclude_self": collection.exclude_self}
    fitted = sr.TextRanker(max_pairs=max_pairs).fit(
        collection.documents, collection.queries, train, dense=(Q, D), **options
    )
    words, score = fitted.words_only(), fitted.model_.dense
    bm25 = sr.TextRanker("bm25").fit(collection.documents)
    runs = {
        "BM25": bm25.run(queries, 100, **options),
        "learned pairs": words.run(queries, 100, **options),
        "vectors alone": dense_run(collection, Q, D, qrels),
        "learned pairs + vectors": fitted.run(queries, 100, dense=vectors, **options),
    }
    found = {name: sr.evaluation.evaluate_run(run, qrels, MEASURE) for name, run in runs.items()}
    rows = []
    for name, values in found.items():
        p_value = sr.evaluation.compare(values, found["learned pairs"])[MEASURE].p
        rows.append({"name": name, "nDCG@10": f"{values.mean():.4f}", "p against learned pairs": f"{p_value:.4f}"})
        alone = without_reverses(reverses_of(collection, qrels), qrels, {"nDCG@10": runs[name]})
        rows[-1] |= {key.replace("_", " "): value for key, value in alone.items()}
    rows[1]["p against learned pairs"] = None
    rows[-1]["held out: without, with"] = f"{score.held_out:.4f}, {score.held_out_dense:.4f}"
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=tuple(SPLITS))
    parser.add_argument("--vectors", help=".npz file with the arrays queries and documents")
    parser.add_argument("--max-pairs", type=int, default=300_000)
    options = parser.parse_args()
    collection = sr.data.load("pydocs") if options.data == "pydocs" else open_data(options.data)
    if options.vectors:
        with np.load(options.vectors) as file:
            Q, D = file["queries"], file["documents"]
    else:
        Q, D = analyse(collection)
    print(table(measure(collection, SPLITS[options.data], Q, D, options.max_pairs)))


if __name__ == "__main__":
    main()

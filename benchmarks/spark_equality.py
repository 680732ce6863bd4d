"""SparkTextRanker against TextRanker: the largest difference of the scores of dev queries, with every loss.

Both train on the same documents, queries and judgments, Spark on two worker processes of one core each. Scores are
those of all documents for up to 400 dev queries. Every row is kept in reports/spark_equality, so a second run goes on
where the first one ended.

`python -m benchmarks.spark_equality nfcorpus:hinge pydocs:softmax:600` trains some rows, the last with 600 queries.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from sparserank.data.files import write_bytes

from .measure import peak_megabytes

FOLDER = Path("reports/spark_equality")
MASTER, PARTITIONS, MEMORY_LIMIT, DEV_QUERIES = "local-cluster[2,1,1024]", 4, "4GB", 400
LOSSES = "squared", "domination", "softmax", "hinge"
ROWS = tuple(f"{name}:{loss}" for name in ("nfcorpus", "pydocs") for loss in LOSSES)


def scores(ranker: Any, texts: list[str]) -> Any:
    """The score of every document for every text."""
    top = ranker.index_.top(ranker.model_.encode_queries(texts), len(ranker.index_))
    out = np.zeros((len(texts), len(ranker.index_)), np.float32)
    rows = np.broadcast_to(np.arange(len(texts))[:, None], top.docs.shape)
    out[rows[top.is_found], top.docs[top.is_found]] = top.scores[top.is_found]
    return out


def compare(spark: Any, name: str, loss: str, n_queries: int | None) -> dict[str, Any]:
    """Train here and on Spark, and compare."""
    import sparserank as sr
    from sparserank.spark import SparkTextRanker

    collection = sr.data.load(name)
    qrels = dict(list(collection.split("train").items())[:n_queries])
    queries = {query: collection.queries[query] for query in qrels}
    settings = sr.TextRanker(loss=loss, memory_limit=MEMORY_LIMIT)
    given: Any = collection.documents, queries, qrels
    started = perf_counter()

    def report(message: str) -> None:
        print(f"{perf_counter() - started:7.1f} s  {name}, {loss}: {message}", file=sys.stderr, flush=True)

    exclude = {"exclude_self": collection.exclude_self, "callback": report}
    local = sr.TextRanker(**settings.get_params(deep=False)).fit(*given, **exclude)
    trained = perf_counter()
    found = SparkTextRanker(settings, partitions=PARTITIONS).fit(spark, *given, **exclude)
    ended = perf_counter()
    texts = [collection.queries[query] for query in collection.split("dev")][:DEV_QUERIES]
    expected, computed = scores(local, texts), scores(found, texts)
    return {
        "name": f"{name}, {loss}", "ratio": round((trained - started) / (ended - trained), 2),
        "documents": len(collection.documents), "queries": len(queries), "pairs": local.model_.n_pairs,
        "pairs_on_spark": found.model_.n_pairs, "epochs": local.model_.info.get("epochs"),
        "largest_score": float(f"{np.abs(expected).max():.4g}"),
        "largest_difference": float(f"{np.abs(expected - computed).max():.3g}"),
        "one_process_s": round(trained - started, 1), "spark_s": round(ended - trained, 1),
    }  # fmt: skip


def kept_row(spark: Any, wanted: str) -> dict[str, Any]:
    """One row, `collection:loss` or `collection:loss:queries`: from its file, or measured."""
    path = FOLDER / f"{wanted.replace(':', '-')}.json"
    if not path.exists():
        name, loss, *limit = wanted.split(":")
        result = compare(spark, name, loss, int(limit[0]) if limit else None)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps(result).encode())
    return dict(json.loads(path.read_text()))


def run(quick: bool = False, rows: tuple[str, ...] = ROWS) -> dict[str, Any]:
    """One row for each collection and loss."""
    from sparserank.spark.session import temporary_session

    with temporary_session(MASTER) as spark:
        found = [kept_row(spark, row) for row in (("pydocs:squared:600",) if quick else rows)]
    return {
        "case": "equality of text rankers on Spark",
        "size": f"{MASTER}, {PARTITIONS} partitions; differences of the scores of all documents for dev queries",
        "peer": "TextRanker in one process, same settings (the ratio is that of the times of training)",
        "rows": found,
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(json.dumps(run(rows=tuple(sys.argv[1:]) or ROWS), indent=2))

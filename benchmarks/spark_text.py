"""Text on Spark: words and top 10 of NFCorpus, once, 4 and 16 times.

Words, frequencies, mean length, ids and scores are checked to be equal to those of one process. Times on two workers of
one core each are mostly the fixed cost of Spark's jobs; plan by the rate of one process. `spark_scale` measures
training, `spark_equality` compares what was learned.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import sparserank as sr
from sparserank import data
from sparserank.data.records import Documents
from sparserank.search import Index
from sparserank.text import TextFeatures

from .measure import peak_megabytes

MASTER, K, QUERIES = "local-cluster[2,1,2048]", 10, 300


def timed(call: Any) -> tuple[Any, float]:
    started = perf_counter()
    return call(), perf_counter() - started


def repeated(documents: Documents, times: int) -> Documents:
    ids = tuple(f"{part}-{i}" for part in range(times) for i in documents.ids)
    return Documents(ids, documents.titles * times, documents.texts * times)


def local_top(ranker: Any, documents: Documents, queries: dict[str, str]) -> dict[str, dict[str, float]]:
    index = Index.build(ranker.model_.encode_documents(documents), documents)
    return index.run(ranker.model_.encode_queries(queries.values()), list(queries), K)


def row(spark: Any, folder: Path, ranker: Any, documents: Documents, queries: dict[str, str], parts: int) -> dict:
    """Both jobs on one size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sparserank.spark import fit_features, score_topk

    table = pa.table({"id": documents.ids, "title": documents.titles, "text": documents.texts})
    pq.write_table(table, folder / "documents.parquet")
    frame = spark.read.parquet(str(folder / "documents.parquet")).repartition(parts).persist()
    frame.count()
    counted, spark_words = timed(lambda: fit_features(frame, "text"))
    here, local_words = timed(lambda: TextFeatures().fit(list(documents.texts)))
    if counted.words_ != here.words_ or (counted.df_ != here.df_).any() or counted.mean_length_ != here.mean_length_:
        raise AssertionError("the words of Spark are not those of one process")
    found, spark_top = timed(lambda: score_topk(ranker, frame, queries, K).collect())
    expected, local_seconds = timed(lambda: local_top(ranker, documents, queries))
    if {(r.query, r.document, r.score) for r in found} != {
        (q, d, s) for q, run in expected.items() for d, s in run.items()
    }:
        raise AssertionError("the best of Spark are not those of one process")
    frame.unpersist()
    return {
        "name": f"{len(documents):,} documents, words",
        "ratio": round(local_words / spark_words, 2),
        "spark_s": round(spark_words, 1),
        "one_process_s": round(local_words, 2),
        "top_10_spark_s": round(spark_top, 1),
        "top_10_one_process_s": round(local_seconds, 2),
    }


def run(quick: bool = False) -> dict[str, Any]:
    """Three sizes, of which a first, small one starts the workers."""
    from sparserank.spark.session import temporary_session

    collection = data.load("nfcorpus")
    queries = dict(list(collection.queries.items())[:QUERIES])
    ranker = sr.TextRanker("bm25").fit(collection.documents)
    conf = {"spark.executor.memory": "2g", "spark.sql.shuffle.partitions": 4}
    with TemporaryDirectory() as folder, temporary_session(MASTER, **conf) as spark:
        row(spark, Path(folder), ranker, repeated(collection.documents, 1), queries, 2)
        rows = [
            row(spark, Path(folder), ranker, repeated(collection.documents, times), queries, max(2, times))
            for times in ((1,) if quick else (1, 4, 16))
        ]
    return {
        "case": "text on Spark",
        "size": f"NFCorpus, {len(queries)} queries, {MASTER}",
        "peer": "one process",
        "rows": rows,
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))

"""Training on Spark against training on one machine: three sizes, and the quality on 20 Newsgroups.

Two worker processes of one core each (`local-cluster[2,1,2048]`), and one process with two threads, take the same
triples in the same run. On one machine Spark cannot be faster; the table has the cost of a round: seconds, bytes out
and in, and memory, from which docs/guides/spark.md derives the needs of a cluster. Training in rounds gives another W
than training in one process, so results are not equal: `newsgroups` has the quality of both.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from sparserank import BilinearRanker, Preferences
from sparserank.errors import DataError

from .measure import peak_megabytes

MASTER = "local-cluster[2,1,2048]"
SIZES = ((10_000, 1_000, 100_000), (100_000, 10_000, 1_000_000), (1_000_000, 100_000, 3_000_000))
"""Preferences, words, pairs that are kept."""
QUICK = ((1_000, 300, 5_000), (2_000, 500, 10_000))
WORDS_A_DOCUMENT = 30
CLASSES = 50
PARTITIONS, ROUNDS = 2, 10
NEWSGROUPS_STEPS = 100_000
WAYS = ((2, 10), (4, 10), (4, 3))
"""Partitions and rounds that are tried on 20 Newsgroups."""


def collection(words: int, documents: int, seed: int = 0) -> tuple[Any, Any]:
    """Documents of unit length over Zipf-distributed words, a third of them from their class's own words; labels."""
    from scipy.sparse import csr_array, diags_array

    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, documents)
    common = (words * rng.random((documents, WORDS_A_DOCUMENT)) ** 4).astype(np.int64)
    own = (labels[:, None] * 977 + rng.integers(0, max(5, words // 200), common.shape)) % words
    column = np.where(rng.random(common.shape) < 1 / 3, own, common)
    row = np.repeat(np.arange(documents), WORDS_A_DOCUMENT)
    counts = csr_array((np.ones(row.size, np.float32), (row, column.ravel())), shape=(documents, words))
    counts.sum_duplicates()
    length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    return csr_array(diags_array(1.0 / length) @ counts).astype(np.float32), labels


def size_row(spark: Any, steps: int, words: int, pairs: int) -> dict[str, Any]:
    """One size, here and there."""
    from sparserank.spark.bilinear import SparkBilinearRanker

    X, labels = collection(words, min(50_000, max(1_000, steps // 10)))
    prefs = Preferences.from_labels(labels)
    settings = {"max_iter": steps, "max_pairs": pairs, "slack": 1.0, "random_state": 0, "curve_points": 1}
    started = perf_counter()
    local = BilinearRanker(**settings).fit(X, X, prefs)
    here = perf_counter() - started
    cluster = SparkBilinearRanker(BilinearRanker(**settings), rounds=ROUNDS, partitions=PARTITIONS)
    started = perf_counter()
    cluster.fit(spark, X, X, prefs)
    there = perf_counter() - started
    last = cluster.rounds_[-1]
    return {
        "name": f"{steps:,} preferences, {words:,} words",
        "ratio": round(here / there, 2),
        "local_s": round(here, 1),
        "spark_s": round(there, 1),
        "round_s": round(float(np.median([one.seconds for one in cluster.rounds_])), 2),
        "out_mb": round(max(one.bytes_out for one in cluster.rounds_) / 1e6, 2),
        "in_mb": round(max(one.bytes_in for one in cluster.rounds_) / 1e6, 2),
        "union": max(one.union for one in cluster.rounds_),
        "nonzeros": last.nonzeros,
        "w_mb": round(max(one.peak_bytes for one in cluster.rounds_) / 1e6, 1),
        "worker_mb": round(max(one.resident for one in cluster.rounds_) / 1e6, 1),
        "local_w_mb": round(local.solution_.info["peak_bytes"] / 1e6, 1),
    }


def newsgroups(spark: Any, steps: int, ways: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
    """MAP on 20 Newsgroups of the same number of triples, on one machine and in rounds."""
    from sparserank.experiments.chen2010 import measure
    from sparserank.experiments.datasets import load_labeled
    from sparserank.spark.bilinear import SparkBilinearRanker

    given = load_labeled("20newsgroups")
    prefs, settings = Preferences.from_labels(given.train_classes), BilinearRanker.from_paper("Sparse").get_params()
    settings |= {"max_iter": steps, "density": given.density, "random_state": 0, "curve_points": 1}
    started = perf_counter()
    local = BilinearRanker(**settings).fit(given.train, given.train, prefs)
    here, found = perf_counter() - started, measure(given, local.W_)
    rows = [{"where": "one machine", "map": round(found.map.value, 4), "seconds": round(here, 1)}]
    for partitions, rounds in ways:
        cluster = SparkBilinearRanker(BilinearRanker(**settings), rounds=rounds, partitions=partitions)
        started = perf_counter()
        W = cluster.fit(spark, given.train, given.train, prefs).W_
        there, quality = perf_counter() - started, measure(given, W).map.value
        rows.append({
            "where": f"{partitions} partitions, {rounds} rounds",
            "map": round(quality, 4),
            "of_local": round(quality / found.map.value, 3),
            "seconds": round(there, 1),
            "out_mb": round(max(one.bytes_out for one in cluster.rounds_) / 1e6, 1),
            "in_mb": round(max(one.bytes_in for one in cluster.rounds_) / 1e6, 1),
        })  # fmt: skip
        print(rows[-1])
    return rows


def run(quick: bool = False) -> dict[str, Any]:
    from sparserank.spark.session import session

    spark = session(MASTER, **{"spark.driver.memory": "3g"})
    try:
        size_row(spark, 500, 100, 500)  # compilation, and the start of the executors, are left out
        rows = [size_row(spark, *size) for size in (QUICK if quick else SIZES)]
        try:
            found: Any = newsgroups(spark, 2_000 if quick else NEWSGROUPS_STEPS, WAYS[:1] if quick else WAYS)
        except DataError as missing:
            found = str(missing)
    finally:
        spark.stop()
    return {
        "case": "spark training",
        "size": f"{MASTER}, {PARTITIONS} partitions, {ROUNDS} rounds; one machine: 2 threads",
        "peer": "BilinearRanker on one machine",
        "rows": rows,
        "newsgroups": found,
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(run(quick="--quick" in sys.argv), indent=1))

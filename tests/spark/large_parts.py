"""Run as a program, on a cluster of its own whose messages hold 1 MB: parts of more than that are learned from."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, random_array

import sparserank as sr
from sparserank.data.records import Documents
from sparserank.optim.pattern_ridge import PatternRidge
from sparserank.optim.penalties import Ridge
from sparserank.optim.problems import ListProblem
from sparserank.spark import SparkDominationRanker
from sparserank.spark.session import session
from sparserank.spark.tables import to_frame
from sparserank.spark.text import ClusterOperators, fit_lexical

LIMIT = 1 << 20


def lists_and_start():
    rng = np.random.default_rng(0)

    def some(shape, density):
        return csr_array(random_array(shape, density=density, rng=rng, dtype=np.float32))

    return ListProblem(some((50, 40), 0.1), some((20_000, 500), 0.05), some((50, 20_000), 0.0005)), some(
        (40, 500), 0.01
    )


def text_rankers(spark):
    lists, W = lists_and_start()
    assert lists.D.data.nbytes > 1.5 * LIMIT
    found = PatternRidge(2, 1, ClusterOperators(spark, 1, [])).solve(lists, Ridge(0.7, 0.4), W).weights
    local = PatternRidge(2, 1).solve(lists, Ridge(0.7, 0.4), W).weights
    np.testing.assert_allclose(found.data, local.data, rtol=1e-3, atol=1e-5)


def domination_rankers(spark):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(3000, 60)), rng.integers(0, 3, 3000), np.arange(3000) // 30
    assert X.nbytes > 1.3 * LIMIT
    settings = sr.DominationRanker(penalty="l2", tol=1e-2)
    assert SparkDominationRanker(settings, partitions=1).fit(spark, X, y, qid).converged_


def folders(spark):
    texts = tuple(f"word{i} " * 120 for i in range(4000))
    assert sum(map(len, texts)) > 3 * LIMIT
    docs = Documents(tuple(map(str, range(4000))), ("",) * 4000, texts)
    found = fit_lexical(sr.TextRanker("bm25"), to_frame(spark, docs), lambda _: None).model_.lexical.features
    assert (found.documents_, len(found.words_)) == (4000, 4000)


if __name__ == "__main__":
    running = session("local-cluster[1,1,1024]", **{"spark.rpc.message.maxSize": 1, "spark.default.parallelism": 2})
    for works in (text_rankers, domination_rankers, folders):
        works(running)
        print(works.__name__, flush=True)
    print(running.sparkContext.applicationId)  # and no stop: what is left is cleared at the end of the process

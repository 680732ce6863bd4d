"""Run as a program, on a cluster of its own whose messages hold 1 MB: parts of more than that are learned from."""

from __future__ import annotations

import numpy as np

import sparserank as sr
from sparserank.data.records import Documents
from sparserank.spark import SparkDominationRanker, SparkTextRanker
from sparserank.spark.session import session
from sparserank.spark.tables import to_frame
from sparserank.spark.text import fit_lexical
from sparserank.text_ranker.lexical import LexicalModel

LIMIT = 1 << 20


def text_rankers(spark):
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(2000)]
    docs = {f"d{i}": " ".join(rng.choice(words, 100)) for i in range(4000)}
    assert sum(map(len, docs.values())) > 1.5 * LIMIT
    queries = {f"q{i}": " ".join(f"x{word}" for word in docs[f"d{i}"].split()[:4]) for i in range(20)}
    qrels = {query: {f"d{query[1:]}": 1} for query in queries}
    ranker = SparkTextRanker(sr.TextRanker(loss="squared", analyzer=None), partitions=1)
    assert len(ranker.fit(spark, docs, queries, qrels).index_) == 4000


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
    found = fit_lexical(LexicalModel(), to_frame(spark, docs), lambda _: None).features
    assert (found.documents_, len(found.words_)) == (4000, 4000)


if __name__ == "__main__":
    running = session("local-cluster[1,1,1024]", **{"spark.rpc.message.maxSize": 1, "spark.default.parallelism": 2})
    for works in (text_rankers, domination_rankers, folders):
        works(running)
        print(works.__name__, flush=True)
    print(running.sparkContext.applicationId)  # and no stop: what is left is cleared at the end of the process

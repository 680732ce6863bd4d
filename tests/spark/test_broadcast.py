"""Parts of data may be larger than a message of Spark; the cluster of the tests has messages of 1 MB."""

from __future__ import annotations

import numpy as np
import pytest

import sparserank as sr
from sparserank.data.records import Documents
from sparserank.spark import SparkDominationRanker, SparkTextRanker
from sparserank.spark.broadcast import BroadcastParts
from sparserank.spark.tables import to_frame
from sparserank.spark.text import fit_lexical
from sparserank.text_ranker.lexical import LexicalModel


def test_parts_are_worked_on_in_their_order_one_partition_each(spark):
    sent = BroadcastParts(spark, [[1, 2], [], [3]])
    found = sent.flat_map(lambda number, part: [(number, one) for one in part])
    assert len(sent) == found.getNumPartitions() == 3
    assert found.collect() == [(0, 1), (0, 2), (2, 3)]
    sent.destroy()


@pytest.fixture
def message_bytes(spark):
    return int(spark.conf.get("spark.rpc.message.maxSize")) << 20


def test_a_task_larger_than_a_message_fails(spark, message_bytes):
    """The tests below would show nothing on a cluster where this worked."""
    large = bytes(2 * message_bytes)
    with pytest.raises(Exception, match=r"maxSize"):
        spark.sparkContext.parallelize([large], 1).map(len).collect()


def test_a_text_ranker_learns_from_parts_larger_than_a_message(spark, message_bytes):
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(2000)]
    docs = {f"d{i}": " ".join(rng.choice(words, 100)) for i in range(4000)}
    assert sum(map(len, docs.values())) > 1.5 * message_bytes
    queries = {f"q{i}": " ".join(f"x{word}" for word in docs[f"d{i}"].split()[:4]) for i in range(20)}
    qrels = {query: {f"d{query[1:]}": 1} for query in queries}
    ranker = SparkTextRanker(sr.TextRanker(loss="squared", analyzer=None), partitions=1)
    assert len(ranker.fit(spark, docs, queries, qrels).index_) == 4000


def test_a_domination_ranker_learns_from_parts_larger_than_a_message(spark, message_bytes):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(3000, 60)), rng.integers(0, 3, 3000), np.arange(3000) // 30
    assert X.nbytes > 1.3 * message_bytes
    settings = sr.DominationRanker(penalty="l2", tol=1e-2)
    assert SparkDominationRanker(settings, partitions=1).fit(spark, X, y, qid).converged_


def test_words_are_counted_in_parts_larger_than_a_message(spark, message_bytes):
    texts = tuple(f"word{i} " * 120 for i in range(4000))
    assert sum(map(len, texts)) > 3 * message_bytes
    docs = Documents(tuple(map(str, range(4000))), ("",) * 4000, texts)
    found = fit_lexical(LexicalModel(), to_frame(spark, docs), lambda _: None).features
    assert (found.documents_, len(found.words_)) == (4000, 4000)

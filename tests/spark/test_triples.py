"""A DataFrame of triples: what is learned depends on the triples, not on where Spark has them or in which order."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

import sparserank as sr
from sparserank.errors import DataError
from sparserank.spark import SparkBilinearRanker, shards, triples
from sparserank.spark.shards import Shard, TripleColumns

from .small_worlds import labelled_rows

X, LABELS = labelled_rows()
PREFS = sr.Preferences.from_labels(LABELS)
NUMBERS = "query int, better int, worse int"


def settings(**changes):
    return sr.BilinearRanker(**{"max_iter": 1200, "random_state": 3, "alpha": 1e-4} | changes)


def drawn(n):
    return [tuple(map(int, one)) for one in zip(*PREFS.draw(n, random_state=5), strict=True)]


def share_of_errors(W):
    found = PREFS.draw(500, random_state=99)
    margin = (csr_array(X)[found.query] @ W).multiply(X[found.better] - X[found.worse]).sum(axis=1)
    return float(np.mean(np.asarray(margin) <= 0))


def packed(*columns, names=("query", "better", "worse", "weight")):
    batch = pa.RecordBatch.from_arrays([pa.array(one) for one in columns], names=names[: len(columns)])
    return [pickle.loads(one.column(0)[0].as_py()) for one in triples._pack_partition(iter([batch, batch.slice(0, 0)]))]


def test_after_a_shuffle_every_fit_gives_the_same_bits(spark):
    frame = spark.createDataFrame(spark.sparkContext.parallelize(drawn(3000), 8), NUMBERS)
    grouped = frame.groupBy("query", "better", "worse").count().withColumnRenamed("count", "weight")
    cluster = SparkBilinearRanker(settings(), rounds=1, partitions=3)
    first, *others = (cluster.fit(spark, X, X, grouped).W_.toarray() for _ in range(3))
    assert cluster.rounds_[0].partitions == 3
    for W in others:
        assert_array_equal(W, first)


def test_triples_by_row_and_by_id_in_other_partitions_give_the_same_bits(spark):
    names, rows = [f"r{i}" for i in range(len(X))], drawn(400)
    by_row = spark.createDataFrame(spark.sparkContext.parallelize(rows, 4), NUMBERS)
    ids = [(*(names[i] for i in one), 1.0) for one in reversed(rows)]
    by_id = spark.createDataFrame(
        spark.sparkContext.parallelize(ids, 7), "query string, better string, worse string, weight float"
    )
    cluster = SparkBilinearRanker(settings(density=0.3), rounds=2)
    one = cluster.fit(spark, X, X, by_row)
    assert cluster.rounds_[-1].partitions == 4, "as many as the DataFrame has"
    assert one.n_iter_ == 1200
    cluster.partitions = 4
    two = cluster.fit(spark, X, X, by_id, query_ids=names, doc_ids=names)
    assert_array_equal(one.W_.toarray(), two.W_.toarray())
    assert share_of_errors(one.W_) < share_of_errors(csr_array(np.eye(X.shape[1])))


def test_partitions_without_a_triple_that_can_be_drawn_take_no_part_and_rows_are_counted_once(spark):
    Z = X.copy()
    Z[2] = 0.0
    rows = [(0, 1, 2, 1)] * 5 + [(0, 2, 1, 0), (1, 3, 2, 0), (4, 3, 2, 0), (5, 3, 2, 0)]
    frame = spark.createDataFrame(rows, NUMBERS + ", weight int")
    cluster = SparkBilinearRanker(settings(max_iter=300), rounds=1, partitions=5)
    found = cluster.fit(spark, Z, Z, frame)
    assert cluster.rounds_[0].partitions == 1
    assert (found.n_iter_, found.n_empty_queries_, found.n_empty_documents_) == (300, 1, 1)
    with pytest.raises(DataError, match="none of the 5 partitions has a preference"):
        cluster.fit(spark, Z, Z, frame.where("weight = 0"))


@pytest.mark.parametrize(
    ("schema", "row", "options", "words"),
    [
        ("query int, better int", (0, 1), {}, "need the columns query, better and worse; the DataFrame has query, b"),
        ("query int, better int, worse string", (0, 1, "2"), {}, "column 'worse' must be row numbers .int.; it is str"),
        (NUMBERS + ", weight string", (0, 1, 2, "a"), {}, "column 'weight' must be a number"),
        (NUMBERS, (0, 1, None), {}, "a triple has no value in one of the columns"),
        (NUMBERS, (0, 7, 7), {}, "^item 7 cannot be better than itself"),
        (NUMBERS, (-1, 0, 1), {}, "^column 'query' has row -1; rows are numbered from 0 to 119"),
        ("query int, better bigint, worse int", (1, 2**33, 1), {}, "^column 'better' has row 8589934592; rows are nu"),
        ("query string, better string, worse string", ("a", "b", "?"), {"query_ids": "ab", "doc_ids": "ab"},
         "120 query rows need as many ids; got 2"),
    ],
)  # fmt: skip
def test_a_wrong_dataframe_raises_an_error_before_training(spark, schema, row, options, words):
    frame = spark.createDataFrame([row], schema)
    with pytest.raises(DataError, match=words):
        SparkBilinearRanker(settings()).fit(spark, X, X, frame, **options)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ((["a"], ["b"], ["?"]), "id '.' of a triple is not among those given"),
        ((["a"], ["b"], ["b"]), "item 'b' cannot be better than itself"),
        ((["a"], ["a"], ["b"], [np.nan]), "a triple has the weight nan; weights must be finite numbers, 0 or more"),
        ((["a"], ["a"], ["b"], [-1.5]), "a triple has the weight -1.5"),
        ((["a"], ["a"], ["b"], pa.array([None], pa.int64())), "a triple has the weight None"),
    ],
)
def test_errors_in_triples_of_ids_name_the_id(columns, words):
    batch = pa.RecordBatch.from_arrays(
        [pa.array(one) for one in columns], names=[*triples.NAMES, "weight"][: len(columns)]
    )
    with pytest.raises(DataError, match=words):
        triples._number_rows(batch, {"a": 0, "b": 1}, {"a": 0, "b": 1}, 2, 2)


def test_ids_that_occur_twice_raise_an_error():
    with pytest.raises(DataError, match="document id 'a' occurs more than once"):
        triples._row_numbers("document", ["a", "a"], csr_array((2, 1)))


def test_a_partition_puts_its_triples_in_order_and_keeps_twelve_bytes_of_each_and_its_weight():
    query, better, worse = (np.array(one, np.int32) for one in ([1, 0, 0, 0], [0, 2, 1, 2], [1, 1, 2, 1]))
    weight = np.array([1.0, 4.0, 3.0, 2.0], np.float32)
    (found,) = packed(query, better, worse, weight)
    assert [one.tolist() for one in found] == [[0, 0, 0, 1], [1, 2, 2, 0], [2, 1, 1, 1], [3.0, 2.0, 4.0, 1.0]]
    assert (found.nbytes, found.total_weight) == (4 * 16, 10.0)
    assert packed(query, better, worse)[0].nbytes == 4 * 12
    assert packed(query, better, worse, np.zeros(4)) == []
    assert packed(query[:0], better[:0], worse[:0]) == []


def test_a_partition_above_the_limit_of_spark_raises_an_error(monkeypatch):
    many = np.arange(1000, dtype=np.int32)
    monkeypatch.setattr(triples, "MAX_PARTITION_BYTES", 11_999)
    with pytest.raises(DataError, match=r"more than 11,999 bytes of triples, .* among more .partitions=.$"):
        packed(many, many, many + 1)
    shard = Shard.of_triples(X, X, [0], [1], [2])
    monkeypatch.setattr(shards, "MAX_PARTITION_BYTES", shard.nbytes - 1)
    with pytest.raises(DataError, match=f"a partition has {shard.nbytes:,} bytes of rows and preferences"):
        list(shards._concatenate([shard]))


@pytest.mark.parametrize("weight", [None, np.ones(20_000, np.float32), np.ones(20_000)])
def test_a_shard_of_triples_is_sent_as_their_columns_even_after_it_was_drawn_from(weight):
    n = 20_000
    query, better = np.arange(n) % 120, np.arange(n) % 60
    shard = Shard.of_triples(X, X, query, better, better + 60, weight)
    assert shard.preferences.n_pairs == n
    rows = len(pickle.dumps(Shard.of_labels(X, LABELS)))
    assert len(pickle.dumps(shard)) < n * (12 + (0 if weight is None else weight.itemsize)) + rows + 2000
    assert_array_equal(pickle.loads(pickle.dumps(shard)).preferences.first(n).query, query)
    assert shard.nbytes <= len(pickle.dumps(shard))


def test_row_numbers_above_32_bits_raise_an_error():
    with pytest.raises(DataError, match="a triple refers to row 2147483648"):
        TripleColumns.of([0], [1], [2**31])

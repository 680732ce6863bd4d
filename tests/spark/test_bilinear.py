from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import sparserank as sr
from sparserank.errors import ConfigError, DataError
from sparserank.spark import SparkBilinearRanker
from sparserank.spark.mixing import StepPlan, shrink_towards
from sparserank.spark.shards import Shard, ShardSummary

from .small_worlds import labelled_rows

X, LABELS = labelled_rows()
PREFS = sr.Preferences.from_labels(LABELS)


def settings(**changes):
    return sr.BilinearRanker(**{"max_iter": 1200, "random_state": 3, "alpha": 1e-4, "curve_points": 2} | changes)


def learned_here(ranker):
    return sr.BilinearRanker(**ranker.get_params()).fit(X, X, PREFS)


def share_of_errors(W):
    triples = PREFS.draw(500, random_state=99)
    margin = (csr_array(X)[triples.query] @ W).multiply(X[triples.better] - X[triples.worse]).sum(axis=1)
    return float(np.mean(np.asarray(margin) <= 0))


@pytest.mark.parametrize("changes", [{"density": 0.2, "refit": True}, {"shuffle": False, "diagonal": True}])
def test_one_partition_in_one_round_is_one_machine_to_the_bit(spark, changes):
    ranker = settings(**changes)
    found = SparkBilinearRanker(ranker, rounds=1, partitions=1).fit(spark, X, X, PREFS)
    local = learned_here(ranker)
    assert_array_equal(found.W_.toarray(), local.W_.toarray())
    assert (found.n_iter_, found.alpha_, found.seed_) == (local.n_iter_, local.alpha_, local.seed_)


def test_one_partition_with_a_penalty_and_a_centre_is_one_machine(spark):
    ranker = settings(prior="identity")
    found = SparkBilinearRanker(ranker, rounds=2, partitions=1).fit(spark, X, X, PREFS)
    assert_allclose(found.W_.toarray(), learned_here(ranker).W_.toarray(), atol=1e-4)


def test_partitions_learn_as_well_as_one_machine_and_what_they_give_is_an_ordinary_ranker(spark, tmp_path):
    ranker, words = settings(max_iter=3000, density=0.2), [f"w{i}" for i in range(X.shape[1])]
    cluster, messages = SparkBilinearRanker(ranker, rounds=3, partitions=3), []
    found = cluster.fit(spark, X, X, PREFS, query_words=words, document_words=words, callback=messages.append)
    assert type(found) is sr.BilinearRanker
    assert share_of_errors(found.W_) <= share_of_errors(learned_here(ranker).W_) + 0.03
    assert found.W_.nnz == round(0.2 * X.shape[1] ** 2)
    assert [point.steps for point in found.solution_.history] == [900, 1800, 3000]
    assert all(point.objective is not None for point in found.solution_.history)
    found.save(tmp_path / "model.safetensors")
    assert_array_equal(sr.load(tmp_path / "model.safetensors").scores(X[:2], X), found.scores(X[:2], X))
    assert len(messages) == 3
    assert messages[0].startswith("round 1 of 3: 900 triples")


def test_what_is_sent_is_bounded_by_the_entries(spark):
    ranker = settings(max_pairs=50, slack=2.0)
    cluster = SparkBilinearRanker(ranker, rounds=2, partitions=2)
    W = cluster.fit(spark, X, X, PREFS).W_
    first, last = cluster.rounds_
    rows = 4 * (X.shape[1] + 1)
    assert first.bytes_out == rows + 8 * X.shape[1]
    assert first.nonzeros <= 100
    assert last.bytes_out == rows + 8 * first.nonzeros
    assert last.nonzeros == W.nnz == 50
    assert last.union >= last.nonzeros
    assert last.bytes_in >= 2 * rows
    assert last.to_dict()["steps"] == 600


def test_a_seed_and_a_number_of_partitions_decide_every_bit(spark):
    cluster = SparkBilinearRanker(settings(density=0.2, max_iter=2000), rounds=2, partitions=7)
    one, two = (cluster.fit(spark, X, X, PREFS).W_ for _ in range(2))
    assert_array_equal(one.toarray(), two.toarray())


def test_shards_of_labels_are_joined_and_taken_in_proportion(spark):
    half = len(X) // 2
    shards = [Shard.of_labels(X[:half], LABELS[:half]), Shard.of_labels(X[half:], LABELS[half:])]
    together = spark.sparkContext.parallelize(shards, 1)
    whole = SparkBilinearRanker(settings(), rounds=1).fit_shards(spark, together)
    assert_allclose(whole.W_.toarray(), learned_here(settings()).W_.toarray(), atol=1e-5)


def test_steps_are_shared_out_by_what_is_drawn_from_and_none_is_lost():
    found = [ShardSummary(p, (1, 1), mass, 10**6, (1.0, 1.0), (0, 0)) for p, mass in ((0, 1.0), (2, 3.0))]
    plan = StepPlan.of(found, 3, 1001, 2, 100, seed=0, shared=False, shuffle=True)
    assert plan.ends.tolist() == [[0, 0, 0], [100, 0, 300], [250, 0, 751]]
    assert len(set(plan.seeds)) == 3
    one = StepPlan.of(found, 3, 1001, 2, 100, seed=5, shared=True, shuffle=True)
    assert one.offset.tolist() == [0, 250, 250]
    assert set(one.seeds) == {5}


def test_in_order_no_partition_takes_more_triples_than_it_has():
    found = [ShardSummary(p, (1, 1), 1.0, 30, (1.0, 1.0), (0, 0)) for p in (0, 1)]
    plan = StepPlan.of(found, 2, 1000, 1, 100, seed=0, shared=False, shuffle=False)
    assert plan.steps(0).tolist() == [30, 30]


@pytest.mark.parametrize("partitions", [1, 2])
def test_in_order_as_many_triples_are_taken_as_there_are(spark, partitions):
    few, ranker = sr.Preferences.from_triples(*PREFS.draw(300, random_state=1)), settings(shuffle=False)
    local = sr.BilinearRanker(**ranker.get_params()).fit(X, X, few)
    cluster = SparkBilinearRanker(ranker, rounds=1, partitions=partitions)
    found = cluster.fit(spark, X, X, few)
    assert found.n_iter_ == local.n_iter_ == 300
    assert cluster.rounds_[0].partitions == partitions
    if partitions == 1:
        assert_array_equal(found.W_.toarray(), local.W_.toarray())


def test_shrinking_goes_towards_the_centre():
    W, centre = csr_array([[3.0, 0.5], [0.0, -2.0]]), csr_array([[1.0, 0.0], [0.0, -1.5]])
    assert shrink_towards(W, 1.0, centre).toarray().tolist() == [[2.0, 0.0], [0.0, -1.5]]


@pytest.mark.parametrize(
    ("ranker", "options", "words"),
    [
        (sr.LabelRanker(), {}, "must be a BilinearRanker; got LabelRanker"),
        (sr.BilinearRanker(penalty="group-rows"), {}, "group penalties are not mixed"),
        (sr.BilinearRanker(max_iter=0), {}, "'max_iter' parameter must be a whole number"),
        (sr.BilinearRanker(), {"rounds": 0}, "'rounds' parameter must be a whole number"),
        (sr.BilinearRanker(), {"partitions": 0}, "'partitions' parameter must be a whole number"),
        (sr.BilinearRanker(random_state="x"), {}, "'random_state' parameter must be a whole number"),
        (sr.BilinearRanker(random_state=1.5), {}, "'random_state' parameter must be a whole number"),
        (sr.BilinearRanker(shuffle=1), {}, "'shuffle' parameter must be True or False"),
        (sr.BilinearRanker(loss="softmax"), {}, "which LabelRanker uses"),
        (sr.BilinearRanker(density=2), {}, "'density' parameter must be a number"),
        (sr.BilinearRanker(max_pairs=9, slack=0.5), {}, "'slack' parameter must be a number"),
        (sr.PAMIR(), {}, "'ranker' parameter must be a BilinearRanker; got PAMIR"),
    ],
)
def test_settings_that_cannot_be_mixed_raise_an_error_without_a_cluster(ranker, options, words):
    with pytest.raises(ConfigError, match=words):
        SparkBilinearRanker(ranker, **options).fit(None, X, X, PREFS)
    with pytest.raises(ConfigError, match=words):
        SparkBilinearRanker(ranker, **options).fit_shards(None, None)


def test_missing_preferences_raise_an_error_without_a_cluster():
    with pytest.raises(DataError, match="expected Preferences or a DataFrame of triples; got list"):
        SparkBilinearRanker().fit(None, X, X, [])
    with pytest.raises(DataError, match="the preferences need 120 rows of Q; it has 5"):
        SparkBilinearRanker().fit(None, X[:5], X, PREFS)


def test_a_partition_of_one_class_raises_an_error_with_its_number(spark):
    mixed, one = Shard.of_labels(X[:20], LABELS[:20]), Shard.of_labels(X[:3], ["a", "a", "a"])
    with pytest.raises(DataError, match=r"^partition 1 of 2: all 3 rows are of class a, .* at random .repartition"):
        SparkBilinearRanker(settings()).fit_shards(spark, spark.sparkContext.parallelize([mixed, one], 2))


def test_partitions_that_do_not_fit_together_raise_an_error(spark):
    context, cluster = spark.sparkContext, SparkBilinearRanker(settings())
    wide = Shard.of_labels(X[:20], LABELS[:20])
    narrow = Shard.of_labels(X[:20, :9], LABELS[:20])
    with pytest.raises(DataError, match="partition 1 has 9 columns of queries and 9 of documents, partition 0 has 30"):
        cluster.fit_shards(spark, context.parallelize([wide, narrow], 2))
    with pytest.raises(DataError, match="none of the 2 partitions has a preference"):
        cluster.fit_shards(spark, context.parallelize([], 2))
    triples = Shard.of_triples(X, X, [0], [1], [2])
    with pytest.raises(DataError, match="more than one shard of preferences"):
        cluster.fit_shards(spark, context.parallelize([triples, triples], 1))
    short = Shard.of_triples(X[:2], X[:2], [0], [1], [2])
    with pytest.raises(DataError, match="partition 0 of 1: the preferences need 3 rows of D; it has 2"):
        cluster.fit_shards(spark, context.parallelize([short], 1))


def test_labels_of_another_length_raise_an_error():
    with pytest.raises(DataError, match="120 rows need as many labels"):
        Shard.of_labels(X, LABELS[:3])

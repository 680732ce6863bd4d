from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import sparserank as sr
from sparserank.errors import ConfigError, DataError
from sparserank.spark import SparkDominationRanker

from .small_worlds import graded_rows

X, Y, QID = graded_rows()


def both(spark, settings, *data, **options):
    local = sr.DominationRanker(**settings.get_params()).fit(*data, **options)
    return local, SparkDominationRanker(settings, partitions=3).fit(spark, *data, **options)


@pytest.mark.parametrize(
    "changes",
    [{"penalty": "l1", "alpha": 5.0}, {"penalty": "l2", "alpha": 0.5, "loss": "base"},
     {"penalty": "elasticnet", "alpha": 1.0, "margin": 0.3}],
)  # fmt: skip
def test_one_w_over_partitions_of_whole_queries_is_the_optimum_of_one_machine(spark, changes):
    weight = np.linspace(0.5, 1.5, len(Y))
    local, found = both(spark, sr.DominationRanker(tol=1e-3, **changes), csr_array(X), Y, QID, sample_weight=weight)
    assert type(found) is sr.DominationRanker
    assert found.converged_
    assert_allclose(found.objective_, local.objective_, rtol=1e-4)
    assert_allclose(found.coef_, local.coef_, atol=0.01 * np.abs(local.coef_).max())
    assert found.violation_ <= 1e-3
    assert found.n_iter_ == len(found.solution_.history)
    assert (found.skipped_queries_, found.alpha_) == (local.skipped_queries_, local.alpha_)
    assert_array_equal(found.predict(X), X @ found.coef_)


def test_margins_of_grades_and_of_rows_go_with_the_rows(spark):
    margins = Y + np.random.default_rng(0).uniform(-0.4, 0.4, len(Y))
    by_grade = {float(grade): 0.5 * grade**2 for grade in np.unique(Y)}
    settings = sr.DominationRanker(penalty="l2", alpha=0.5, tol=1e-3, margin=by_grade)
    local, found = both(spark, settings, X, Y, QID, margins=margins)
    assert_allclose(found.objective_, local.objective_, rtol=1e-4)
    plain = sr.DominationRanker(penalty="l2", alpha=0.5, tol=1e-3).fit(X, Y, QID)
    assert abs(plain.objective_ / local.objective_ - 1) > 0.05


def test_partitions_that_are_empty_or_of_one_grade_teach_nothing_and_change_nothing(spark):
    """Two queries, one of which has a single grade, in three partitions."""
    rows = np.concatenate([np.flatnonzero(QID == 0), np.flatnonzero(QID == 1)])
    grades = np.where(QID[rows] == 1, 1.0, Y[rows])
    local, found = both(spark, sr.DominationRanker(penalty="l2", tol=1e-3), X[rows], grades, QID[rows])
    assert_allclose(found.objective_, local.objective_, rtol=1e-4)
    assert found.skipped_queries_ == local.skipped_queries_ == 1


def test_a_penalty_that_leaves_no_weight_is_found_at_once(spark):
    local, found = both(spark, sr.DominationRanker(alpha=1e6), X, Y, QID)
    assert not found.coef_.any()
    assert found.n_iter_ == 0
    assert found.objective_ == pytest.approx(local.objective_)


@pytest.mark.parametrize("changes", [{"max_features": 4}, {"penalty": "l2", "alpha": 0.1, "share": 0.5}])
def test_topics_are_those_of_one_machine_to_the_bit(spark, changes, tmp_path):
    topics = (np.random.default_rng(1).random((len(Y), 4)) < 0.1).astype(float)
    topics[:, 2] = 0.0
    local, found = both(spark, sr.DominationRanker(tol=1e-2, **changes), X, csr_array(topics), QID)
    assert_array_equal(found.coef_.toarray(), local.coef_.toarray())
    assert_array_equal(found.alpha_, local.alpha_)
    assert (found.objective_, found.n_iter_, found.skipped_topics_) == (local.objective_, local.n_iter_, 1)
    found.save(tmp_path / "model.safetensors")
    assert_array_equal(sr.load(tmp_path / "model.safetensors").predict(X), local.predict(X))


def test_topics_are_spread_over_the_partitions(spark):
    topics = csr_array((np.random.default_rng(1).random((len(Y), 4)) < 0.1).astype(float))
    context = spark.sparkContext
    context.setJobGroup("topics", "one fit")
    SparkDominationRanker(sr.DominationRanker(penalty="l2", tol=1e-1), partitions=3).fit(spark, X, topics)
    context.setLocalProperty("spark.jobGroup.id", None)
    tracker = context.statusTracker()
    stages = [stage for job in tracker.getJobIdsForGroup("topics") for stage in tracker.getJobInfo(job).stageIds]
    assert [tracker.getStageInfo(stage).numTasks for stage in stages] == [3]


def test_bad_input_raises_an_error_before_anything_is_sent():
    with pytest.raises(ConfigError, match="max_features needs coordinate descent over all rows"):
        SparkDominationRanker(sr.DominationRanker(max_features=3)).fit(None, X, Y, QID)
    with pytest.raises(ConfigError, match="'ranker' parameter must be a DominationRanker; got PAMIR"):
        SparkDominationRanker(sr.PAMIR()).fit(None, X, Y, QID)
    with pytest.raises(ConfigError, match="'partitions' parameter"):
        SparkDominationRanker(partitions=-1).fit(None, X, Y, QID)


def test_rows_of_one_grade_raise_an_error(spark):
    with pytest.raises(DataError, match="no query has rows of two different grades"):
        SparkDominationRanker().fit(spark, X, np.ones(len(Y)), QID)
    with pytest.raises(DataError, match="none of the 2 topics has rows of two different grades"):
        SparkDominationRanker().fit(spark, X, np.ones((len(Y), 2)))

"""DominationRanker: the contract, topics, paths, model files and refusals. What all rankers keep: test_by_query.py."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array, random_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import sparserank as sr
from sparserank.errors import ConfigError, DataError, ModelError
from sparserank.optim.losses import Domination
from sparserank.optim.penalties import L1
from tests import oracles


def world(n=60, d=40, topics=6, seed=0):
    rng = np.random.default_rng(seed)
    X = random_array((n, d), density=0.3, rng=rng, format="csr")
    Y = (X @ rng.normal(size=(d, topics)) + 0.3 * rng.normal(size=(n, topics)) > 0.8).astype(float)
    Y[0], Y[1] = 1.0, 0.0
    return X, Y


def test_defaults_minimise_the_summed_loss_with_l1():
    X, Y = world()
    y = Y[:, 0] + Y[:, 1]
    ranker = sr.DominationRanker(alpha=0.5, tol=1e-9, max_iter=10_000).fit(X, y)
    least = oracles.domination_optimum(X.toarray(), y, np.zeros(len(y)), l1=0.5)
    assert ranker.objective_ == pytest.approx(least, abs=1e-6)
    assert ranker.solution_.info["objective"] == ranker.objective_
    assert ranker.converged_
    assert ranker.violation_ <= 1e-9
    assert ranker.coef_.shape == (40,)
    assert_allclose(ranker.predict(X), X @ ranker.coef_)


@pytest.mark.parametrize(
    ("settings", "kind", "penalties"),
    [
        ({"loss": "base", "penalty": "l2"}, {"windows": "base"}, {"l2": 0.5}),
        ({"margin": 0.5, "penalty": "elasticnet", "l1_ratio": 0.2}, {"margin": 0.5}, {"l1": 0.1, "l2": 0.4}),
        ({"loss": Domination("base", 0.3), "penalty": L1(0.7)}, {"windows": "base", "margin": 0.3}, {"l1": 0.7}),
    ],
)
def test_settings_are_the_objective_they_name(settings, kind, penalties):
    X, Y = world(n=30, d=5)
    y, qid = Y[:, 0] + Y[:, 1], np.arange(30) % 3
    ranker = sr.DominationRanker(**{"alpha": 0.5, "tol": 1e-9, "max_iter": 10_000} | settings).fit(X, y, qid)
    least = oracles.domination_optimum(X.toarray(), y, qid, **penalties, **kind)
    assert ranker.objective_ == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize("margin", [0.2, {0.0: 0.0, 1.0: 2.0, 2.0: 2.5}, [0.0, 2.0, 2.5], (0.0, 2.0, 2.5)])
def test_margins_of_grades_and_of_items_are_the_literal_objective_and_survive_the_file(margin, tmp_path):
    X, Y = world(n=30, d=5)
    y, qid = Y[:, 0] + Y[:, 1], np.arange(30) % 3
    s = y + np.linspace(-0.4, 0.4, 30)
    ranker = sr.DominationRanker(margin=margin, penalty="l2", alpha=0.5, tol=1e-9).fit(X, y, qid, margins=s)
    spelled = margin if isinstance(margin, float | dict) else dict(enumerate(margin))
    least = oracles.domination_optimum(X.toarray(), y, qid, l2=0.5, margin=spelled, margins=s)
    assert ranker.objective_ == pytest.approx(least, abs=1e-6)
    ranker.save(tmp_path / "m.safetensors")
    again = sr.load(tmp_path / "m.safetensors")
    assert again.get_params() == ranker.get_params()
    assert type(again.margin) is type(margin)
    assert_array_equal(again.predict(X), ranker.predict(X))
    assert_array_equal(clone(again).fit(X, y, qid, margins=s).coef_, ranker.coef_)


def test_topics_take_margins_of_items_or_of_items_and_topics():
    X, Y = world(topics=2)
    s = Y * np.random.default_rng(0).uniform(0.5, 2.0, Y.shape)
    both = sr.DominationRanker(alpha=0.2).fit(X, Y, margins=csr_array(s))
    for topic in range(2):
        alone = sr.DominationRanker(alpha=0.2).fit(X, Y[:, topic], margins=s[:, topic])
        assert_array_equal(both.coef_[[topic]].toarray()[0], alone.coef_)
    one = sr.DominationRanker(alpha=0.2).fit(X, Y[:, :1], margins=s[:, 0])
    assert_array_equal(one.coef_.toarray()[0], both.coef_[[0]].toarray()[0])
    with pytest.raises(DataError, match=r"margins must have the shape of Y, \(60, 2\)"):
        sr.DominationRanker().fit(X, Y, margins=s[:, :1])
    with pytest.raises(DataError, match="margins must be numbers"):
        sr.DominationRanker().fit(X, Y, margins=[["a", "b"]] * 60)
    with pytest.raises(DataError, match="which it should beat, is -"):
        sr.DominationRanker().fit(X, Y, margins=-s)
    with pytest.raises(TypeError, match="unexpected keyword argument 'margins'"):
        sr.RankSVM().fit(X, Y[:, 0], margins=s[:, 0])


def test_no_penalty_is_a_penalty():
    X, Y = world(n=60, d=2)
    ranker = sr.DominationRanker(penalty="none", tol=1e-9).fit(X, Y[:, 0])
    least = oracles.domination_optimum(X.toarray(), Y[:, 0], np.zeros(60))
    assert ranker.objective_ == pytest.approx(least, abs=1e-6)


def test_sample_weight_weighs_the_winners_term():
    X, Y = world(n=30, d=5)
    weight = np.linspace(0.1, 2.0, 30)
    settings = {"penalty": "l2", "alpha": 0.5, "tol": 1e-9}
    ranker = sr.DominationRanker(**settings).fit(X, Y[:, 0], sample_weight=weight)
    least = oracles.domination_optimum(X.toarray(), Y[:, 0], np.zeros(30), l2=0.5, weight=weight)
    assert ranker.objective_ == pytest.approx(least, abs=1e-6)


def test_reaching_max_iter_warns_and_is_told():
    X, Y = world()
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter after 1 passes.*raise max_iter") as caught:
        ranker = sr.DominationRanker(alpha=0.01, tol=1e-9, max_iter=1).fit(X, Y[:, 0])
    assert caught[0].filename == __file__
    assert ranker.converged_ is False
    assert ranker.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="6 of 6 topics"):
        assert not sr.DominationRanker(alpha=0.01, tol=1e-9, max_iter=1).fit(X, Y).converged_


# ---- topics


def test_a_matrix_of_topics_teaches_each_column_by_itself():
    X, Y = world()
    together = sr.DominationRanker(alpha=0.2).fit(X, csr_array(Y))
    assert together.coef_.format == "csr"
    assert together.coef_.shape == (6, 40)
    scores = together.predict(X)
    for topic in range(6):
        alone = sr.DominationRanker(alpha=0.2).fit(X, Y[:, topic])
        assert_array_equal(together.coef_[[topic]].toarray()[0], alone.coef_)
        assert_allclose(scores[:, topic], alone.predict(X))
        assert together.solution_[topic].info["objective"] == alone.objective_
    assert_array_equal(together.predict(X.toarray()), scores)


@pytest.mark.parametrize("form", [np.asarray, csc_array, lambda Y: Y.tolist(), lambda Y: csr_array(Y.astype(np.int8))])
def test_topics_come_in_every_form(form):
    X, Y = world(topics=2)
    expected = sr.DominationRanker().fit(X, csr_array(Y)).coef_.toarray()
    assert_array_equal(sr.DominationRanker().fit(X, form(Y)).coef_.toarray(), expected)


@pytest.mark.parametrize("n_jobs", [2, 5, None])
def test_any_number_of_threads_gives_the_same_bits(n_jobs):
    X, Y = world()
    one = sr.DominationRanker(alpha=0.1, n_jobs=1).fit(X, Y).coef_
    many = sr.DominationRanker(alpha=0.1, n_jobs=n_jobs).fit(X, Y).coef_
    assert_array_equal(many.toarray(), one.toarray())


def test_topics_may_be_asked_by_query_and_weighed():
    X, Y = world(topics=2)
    qid, weight = np.arange(60) % 4, np.linspace(0.5, 1.5, 60)
    both = sr.DominationRanker(alpha=0.2).fit(X, Y, qid, sample_weight=weight)
    alone = sr.DominationRanker(alpha=0.2).fit(X, Y[:, 1], qid, sample_weight=weight)
    assert_array_equal(both.coef_[[1]].toarray()[0], alone.coef_)


def test_a_topic_without_two_grades_gets_no_weight_and_is_counted():
    X, Y = world(topics=3)
    Y[:, 1] = 1.0
    ranker = sr.DominationRanker(alpha=0.2).fit(X, Y)
    assert ranker.skipped_topics_ == 1
    assert ranker.coef_[[1]].nnz == 0
    assert ranker.solution_[1] is None
    with pytest.raises(DataError, match="none of the 3 topics"):
        sr.DominationRanker().fit(X, np.ones((60, 3)))


# ---- the number of weights as the thing one asks for


def test_max_features_is_met_and_alpha_is_told():
    X, Y = world()
    ranker = sr.DominationRanker(max_features=7, tol=1e-6).fit(X, Y[:, 0])
    assert 4 <= np.count_nonzero(ranker.coef_) <= 7
    again = sr.DominationRanker(alpha=ranker.alpha_, tol=1e-6).fit(X, Y[:, 0])
    assert_allclose(again.coef_, ranker.coef_, atol=1e-3)


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet", "none"])
def test_max_features_is_met_by_every_topic(penalty):
    X, Y = world()
    ranker = sr.DominationRanker(max_features=5, penalty=penalty, alpha=0.1).fit(X, Y)
    assert np.diff(ranker.coef_.indptr).min() >= 3
    assert np.diff(ranker.coef_.indptr).max() <= 5
    assert ranker.alpha_.shape == (6,)


# ---- topics that learn from one another


def test_shared_topics_hold_a_feature_back_by_what_it_was_worth_to_all():
    X, Y = world()
    alone = sr.DominationRanker(penalty="l2", alpha=0.3, tol=1e-9).fit(X, Y).coef_.toarray()
    worth = np.sqrt((alone**2).mean(axis=0)) ** 0.5
    worth *= np.sqrt((alone**2 / worth**2).sum() / (alone**2).sum())  # the first weights would pay the same
    again = sr.DominationRanker(penalty="l2", alpha=0.3, tol=1e-9).fit(X.toarray() * worth, Y).coef_.toarray() * worth
    shared = sr.DominationRanker(penalty="l2", alpha=0.3, tol=1e-9, share=0.5).fit(X, Y).coef_.toarray()
    assert_allclose(shared, again, atol=1e-6)
    assert not np.allclose(shared, alone, atol=1e-2)


def test_shared_topics_are_cut_and_skipped_like_others():
    X, Y = world(topics=3)
    Y[:, 1] = 1.0
    ranker = sr.DominationRanker(penalty="l2", alpha=0.1, share=0.25, max_features=5).fit(X, Y)
    assert np.diff(ranker.coef_.indptr).tolist() == [5, 0, 5]
    with pytest.raises(DataError, match="none of the 3 topics"):
        sr.DominationRanker(penalty="l2", share=0.25).fit(X, np.ones((60, 3)))


# ---- model files


def test_topics_survive_the_model_file(tmp_path):
    X, Y = world()
    ranker = sr.DominationRanker(alpha=0.2).fit(X, Y)
    ranker.save(tmp_path / "model.safetensors")
    loaded = sr.load(tmp_path / "model.safetensors")
    assert_array_equal(loaded.predict(X), ranker.predict(X))
    assert_allclose(loaded.alpha_, ranker.alpha_)


def test_a_model_file_with_a_column_that_is_not_there_raises(tmp_path):
    from sparserank.data.formats.tensors import read_tensors, write_tensors

    X, Y = world()
    path = tmp_path / "model.safetensors"
    sr.DominationRanker(alpha=0.2).fit(X, Y).save(path)
    file = read_tensors(path)
    arrays = dict(file.arrays) | {"coef.indices": np.full_like(file.arrays["coef.indices"], 40)}
    write_tensors(path, file.kind, dict(file.settings), arrays)
    with pytest.raises(ModelError, match="outside"):
        sr.load(path)


# ---- refusals


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "'windows' parameter must be one of 'graded', 'base'"),
        ({"penalty": "l3"}, "'penalty' parameter must be one of"),
        ({"alpha": -1}, "'alpha' parameter must be a number in"),
        ({"margin": np.nan}, "'margin' parameter"),
        ({"margin": -1.0}, "'margin' parameter must be a number in"),
        ({"margin": "wide"}, "'margin' parameter must be a number in"),
        ({"margin": {0: 0.0, 1: "wide"}}, "'margin of grade 1' parameter"),
        ({"penalty": "elasticnet", "l1_ratio": 2}, "'l1_ratio' parameter"),
        ({"tol": -1}, "'tol' parameter"),
        ({"max_iter": 1.5}, "'max_iter' parameter"),
        ({"max_features": 0}, "'max_features' parameter"),
        ({"n_jobs": 0}, "'n_jobs' parameter"),
        ({"share": -1}, "'share' parameter"),
        ({"share": 0.25}, "share needs an L2 part"),
    ],
)
def test_settings_out_of_range_are_rejected_by_name(settings, message):
    X, Y = world()
    with pytest.raises(ConfigError, match=message):
        sr.DominationRanker(**settings).fit(X, Y[:, 0])


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.full((60, 2), np.nan), r"Y\[0, 0\] is nan"),
        (np.array([["a", "b"]] * 60), "Y must be a matrix of grades"),
        (np.array([["a", "b"]] * 60).tolist(), "encode labels as numbers"),
        (csr_array(np.full((60, 2), np.inf)), r"Y\[0, 0\] is inf: a grade must not be"),
        ([[1.0, 0.0], [1.0]], "rows of different lengths"),
        (np.ones((59, 2)), "60"),
    ],
)
def test_topics_that_are_no_grades_raise(Y, message):
    with pytest.raises(DataError, match=message):
        sr.DominationRanker().fit(world()[0], Y)


def test_features_of_1e30_are_learned_from():
    X, Y = world()
    plain = sr.DominationRanker(alpha=0.2, tol=1e-8).fit(X, Y[:, 0])
    large = sr.DominationRanker(alpha=0.2e30, tol=1e-8).fit(X * 1e30, Y[:, 0])
    assert_allclose(large.predict(X * 1e30), plain.predict(X), atol=1e-4)

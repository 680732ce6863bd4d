"""Coordinate descent on the domination loss: the optimum, what it is invariant under, paths, extremes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array

from sparserank.errors import ConfigError, DataError
from sparserank.optim.coordinate_descent import CoordinateDescent, Descent
from sparserank.optim.losses import Domination, Hinge
from sparserank.optim.penalties import L1, L2, ElasticNet, GroupL1, NoPenalty
from sparserank.optim.problems import LinearProblem
from sparserank.optim.scores import Linear
from sparserank.preferences.queries import Queries
from tests import oracles

EXACT = CoordinateDescent(tol=1e-9, max_iter=20_000)


def start(score, queries, loss, settings):
    return Descent(LinearProblem(score, queries, loss), settings)


def world(seed, n=24, d=6, grades=3, queries=3, density=0.6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    y, qid = rng.integers(0, grades, n).astype(float), rng.integers(0, queries, n)
    y[:2], qid[:2] = (1.0, 0.0), 0
    return X, y, qid, rng.uniform(0.2, 2.0, n)


def solved(X, y, qid, penalty, loss=None, weight=None, settings=EXACT, start=None):
    loss = loss or Domination()
    return settings.solve(LinearProblem(Linear.of(csr_array(X)), Queries.of(y, qid, weight), loss), penalty, start)


PENALISED = [L1(0.5), L2(0.2), ElasticNet(0.6, 0.3)]


@pytest.mark.parametrize("penalty", PENALISED, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("loss", [Domination(), Domination("base"), Domination(margin=0.7), Domination("base", 0.4)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_is_that_of_a_convex_solver_on_the_literal_objective(penalty, loss, seed):
    X, y, qid, weight = world(seed)
    found = solved(X, y, qid, penalty, loss, weight)
    kind = {"weight": weight, "margin": loss.margin, "windows": loss.windows}
    least = oracles.domination_optimum(X, y, qid, l1=penalty.l1, l2=penalty.l2, **kind)
    assert found.info["converged"]
    assert found.info["objective"] == pytest.approx(least, abs=1e-6)
    assert found.info["loss"] == pytest.approx(oracles.domination_loss(X @ found.weights, y, qid, **kind)[0], rel=1e-12)


@pytest.mark.parametrize("windows", ["graded", "base"])
@pytest.mark.parametrize("penalty", PENALISED, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("margin", [{0.0: -1.0, 1.0: 0.2, 2.0: 3.0}, (-1.0, 0.2, 3.0), 0.0, 0.4])
def test_any_separable_margin_of_grades_and_items_is_that_of_the_literal_objective(margin, penalty, windows):
    X, y, qid, weight = world(0)
    s = np.where(y > 0, 2.0 * y, 0.0) + np.random.default_rng(0).uniform(-0.9, 0.9, len(y))  # tiers by counts
    queries = Queries.of(y, qid, weight, s)
    found = EXACT.solve(LinearProblem(Linear.of(csr_array(X)), queries, Domination(windows, margin)), penalty)
    spelled = dict(enumerate(margin)) if isinstance(margin, tuple) else margin
    kind = {"weight": weight, "margin": spelled, "windows": windows, "margins": s}
    least = oracles.domination_optimum(X, y, qid, l1=penalty.l1, l2=penalty.l2, **kind)
    assert found.info["objective"] == pytest.approx(least, abs=1e-6)
    assert found.info["loss"] == pytest.approx(oracles.domination_loss(X @ found.weights, y, qid, **kind)[0], rel=1e-12)


@pytest.mark.parametrize("margin", [{0.0: -1.0, 1.0: 0.2, 2.0: 3.0}, 0.7])
def test_the_gradient_with_margins_is_that_of_finite_differences(margin):
    X, y, qid, weight = world(1)
    s = y + np.random.default_rng(1).uniform(-0.4, 0.4, len(y))
    descent = Descent(
        LinearProblem(Linear.of(csr_array(X)), Queries.of(y, qid, weight, s), Domination("graded", margin)), EXACT
    )
    w = np.random.default_rng(2).normal(size=X.shape[1])
    gradient, h = descent.evaluate(w)[1], 1e-5
    steps = [h * unit for unit in np.eye(len(w))]
    differences = [(descent.evaluate(w + step)[0] - descent.evaluate(w - step)[0]) / (2 * h) for step in steps]
    assert_allclose(gradient, differences, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("margin", "margins", "match"),
    [
        ({0: 1.0, 1: 0.0, 2: 2.0}, None, r"the margin between row \d+ and row \d+, which it should beat, is -1"),
        ([0.0, 1.0], None, r"margin has no number for grade 2 \(it has: 0, 1\)"),
        (0.0, [0.0, 0.5, 0.0, 0.0], "the margin between row 0 and row 1, which it should beat, is -0.5"),
        (0.5, [0.0, 0.6, 0.0, 0.0], r"the margin between row 0 and row 1, which it should beat, is -0\.1"),
        (0.0, [0.0, 0.5], "4 rows need 4 values in margins; got 2"),
        (0.0, [0.0, np.nan, 0.0, 0.0], r"margins\[1\] is not a finite number"),
        (1e308, [1e308, 0.0, 0.0, 0.0], "no finite number"),
    ],
)
def test_a_negative_margin_and_one_that_is_missing_are_rejected_by_row(margin, margins, match):
    y, qid = [1.0, 0.0, 2.0, 0.0], [0, 0, 1, 1]
    y = y if np.ndim(margin) == 0 and not isinstance(margin, dict) else [1.0, 0.0, 2.0, 1.0]
    with pytest.raises(DataError, match=match):
        queries = Queries.of(y, qid, margin=margins)
        start(Linear.of(csr_array(np.eye(4))), queries, Domination("graded", margin), EXACT)


def test_margins_are_compared_within_a_query_and_with_items_below_only():
    queries = Queries.of([1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1], margin=[1.0, 0.5, 9.0, 8.0])
    start(Linear.of(csr_array(np.eye(4))), queries, Domination(), EXACT)
    with pytest.raises(ConfigError, match="'margin' parameter"):
        Domination(margin=-0.1)


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_without_a_penalty(seed):
    X, y, qid, weight = world(seed, n=40, d=2, queries=1)
    found = solved(X, y, qid, NoPenalty(), weight=weight)
    assert found.info["objective"] == pytest.approx(oracles.domination_optimum(X, y, qid, weight=weight), abs=1e-6)


def test_separable_rows_without_a_penalty_come_to_rest():
    found = solved([[1.0], [0.0], [0.5]], [1, 0, 0], None, NoPenalty(), settings=CoordinateDescent(tol=1e-8))
    assert found.info["converged"]
    assert np.isfinite(found.weights).all()
    assert found.info["loss"] < 1e-6


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from(PENALISED))
def test_no_round_increases_the_objective(seed, penalty):
    X, y, qid, weight = world(seed, n=12, d=4)
    found = solved(X, y, qid, penalty, weight=weight)
    objectives = [one.objective for one in found.history]
    assert all(after <= before + 1e-9 for before, after in pairwise(objectives))


def test_what_is_reported_is_the_distance_from_the_subdifferential():
    X, y, qid, weight = world(3)
    for settings_ in (CoordinateDescent(max_iter=2), EXACT):
        found = solved(X, y, qid, L1(0.5), weight=weight, settings=settings_)
        g = X.T @ oracles.domination_loss(X @ found.weights, y, qid, weight)[1]
        missed = np.where(found.weights == 0, np.maximum(abs(g) - 0.5, 0), abs(g + 0.5 * np.sign(found.weights)))
        assert found.info["violation"] == pytest.approx(missed.max(), abs=1e-12)
        at_zero = abs(X.T @ oracles.domination_loss(np.zeros(len(y)), y, qid, weight)[1]).max()
        assert found.info["scale"] == pytest.approx(at_zero)
    assert "converged" in found.info["message"]


def test_reaching_max_iter_is_told():
    X, y, qid, _ = world(3)
    found = solved(X, y, qid, L1(0.01), settings=CoordinateDescent(tol=1e-12, max_iter=1))
    assert (found.info["converged"], found.info["epochs"]) == (False, 1)
    assert "stopped at max_iter" in found.info["message"]


# ---- what the answer does not depend on


def test_a_shift_of_all_scores_of_a_query_changes_nothing():
    X, y, qid, _ = world(4)
    plain = solved(X, y, qid, L1(0.3))
    shifted = solved(X + qid[:, None] * 2.5, y, qid, L1(0.3))
    assert shifted.info["objective"] == pytest.approx(plain.info["objective"], abs=1e-9)
    assert_allclose(shifted.weights, plain.weights, atol=1e-6)


def test_the_order_of_the_rows_changes_nothing():
    X, y, qid, weight = world(5)
    p = np.random.default_rng(0).permutation(len(y))
    plain, other = solved(X, y, qid, L2(0.3), weight=weight), solved(X[p], y[p], qid[p], L2(0.3), weight=weight[p])
    assert_allclose(other.weights, plain.weights, atol=1e-8)


def test_doubled_weights_are_half_the_penalty():
    X, y, qid, weight = world(6)
    plain, doubled = solved(X, y, qid, L1(0.3), weight=weight), solved(X, y, qid, L1(0.6), weight=2 * weight)
    assert doubled.info["objective"] == pytest.approx(2 * plain.info["objective"])
    assert_allclose(doubled.weights, plain.weights, atol=1e-8)


def test_grades_count_by_their_order_alone_without_a_margin():
    X, y, qid, _ = world(7)
    assert_array_equal(solved(X, y, qid, L1(0.3)).weights, solved(X, np.exp(y) - 3, qid, L1(0.3)).weights)


def test_a_weight_of_zero_silences_the_winner_and_not_the_loser():
    X, y, qid, _ = world(8)
    weight = (y == 1).astype(float)
    found = solved(X, y, qid, L2(0.3), weight=weight)
    assert found.info["objective"] == pytest.approx(
        oracles.domination_optimum(X, y, qid, l2=0.3, weight=weight), abs=1e-6
    )


def test_formats_and_widths_of_x_give_the_same_answer():
    X, y, qid, _ = world(9)
    X = X.astype(np.float32)
    queries = Queries.of(y, qid)
    wide = csc_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    plain = EXACT.solve(LinearProblem(Linear.of(X), queries, Domination()), L1(0.3)).weights
    for other in (csr_array(X), csc_array(X), wide):
        assert_array_equal(EXACT.solve(LinearProblem(Linear.of(other), queries, Domination()), L1(0.3)).weights, plain)
    assert_allclose(
        EXACT.solve(LinearProblem(Linear.of(X.astype(float)), queries, Domination()), L1(0.3)).weights, plain, atol=1e-9
    )


def test_a_csc_matrix_is_taken_as_it_is():
    X = csc_array(world(9)[0].astype(np.float32))
    columns = Linear.of(X)
    assert np.shares_memory(columns.values, X.data)
    assert np.shares_memory(columns.rows, X.indices)


def test_a_warm_start_ends_where_a_cold_one_does():
    X, y, qid, _ = world(10)
    cold = solved(X, y, qid, L1(0.2))
    warm = solved(X, y, qid, L1(0.2), start=solved(X, y, qid, L1(0.4)).weights)
    assert_allclose(warm.weights, cold.weights, atol=1e-7)


# ---- working sets and paths


def wide_world(n=100, d=1200):
    rng = np.random.default_rng(0)
    X = csr_array(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.1))
    y = (X @ rng.normal(size=d) + rng.normal(size=n) > 4).astype(float)
    return X, y


def test_a_working_set_that_grows_finds_the_optimum_of_all_weights():
    X, y = wide_world()
    found = EXACT.solve(LinearProblem(Linear.of(X), Queries.of(y), Domination()), L1(0.05))
    assert found.history[0].working_set < X.shape[1]
    g = X.T @ oracles.domination_loss(X @ found.weights, y, np.zeros(len(y)))[1]
    assert abs(g).max() <= 0.05 + 1e-6
    assert_allclose(g[found.weights != 0], -0.05 * np.sign(found.weights[found.weights != 0]), atol=1e-6)


@pytest.mark.parametrize("most", [1, 7, 30])
def test_a_path_ends_with_no_more_weights_than_are_wanted(most):
    X, y = wide_world()
    settings_ = CoordinateDescent(tol=1e-6, max_iter=10_000)
    found = start(Linear.of(X), Queries.of(y), Domination(), settings_).search_alpha(L1(1.0), most)
    assert 0.5 * most <= found.info["nonzeros"] <= most
    assert found.info["converged"]
    again = settings_.solve(LinearProblem(Linear.of(X), Queries.of(y), Domination()), found.info["penalty"])
    assert again.info["objective"] == pytest.approx(found.info["objective"], rel=1e-6)


@pytest.mark.parametrize("penalty", [L2(0.5), ElasticNet(0.5, 0.1)], ids=["l2", "elasticnet"])
def test_a_cut_ends_at_the_optimum_of_the_weights_that_are_left(penalty):
    X, y, qid, _ = world(18, d=12)
    found = start(Linear.of(X), Queries.of(y, qid), Domination(), EXACT).prune(penalty, 4)
    left = np.flatnonzero(found.weights)
    assert len(left) == 4
    least = oracles.domination_optimum(X[:, left], y, qid, l1=penalty.l1, l2=penalty.l2)
    assert found.info["objective"] == pytest.approx(least, abs=1e-6)


def test_a_path_that_cannot_reach_the_wanted_number_ends():
    X, y, qid, _ = world(11)
    found = start(Linear.of(X), Queries.of(y, qid), Domination(), CoordinateDescent()).search_alpha(L1(1.0), 100)
    assert found.info["nonzeros"] == X.shape[1]


# ---- extremes


@pytest.mark.parametrize("scale", [1e-30, 1e30, 1e90])
def test_no_scale_of_the_features_overflows(scale):
    X, y, qid, _ = world(12)
    plain, scaled = solved(X, y, qid, L1(0.3)), solved(X * scale, y, qid, L1(0.3 * scale))
    assert scaled.info["converged"]
    assert scaled.info["objective"] == pytest.approx(plain.info["objective"], rel=1e-9)


def test_no_scale_of_the_weights_overflows():
    X, y, qid, _ = world(13)
    descent = start(Linear.of(X), Queries.of(y, qid), Domination(), EXACT)
    descent.w[:] = 500.0
    found = descent.minimize(L1(0.3))
    assert found.info["objective"] == pytest.approx(solved(X, y, qid, L1(0.3)).info["objective"], abs=1e-6)


def test_a_margin_beyond_the_range_of_exp_is_no_trouble():
    X, y, qid, _ = world(14)
    found = solved(X, y, qid, L2(1.0), Domination(margin=2000.0))
    assert found.info["converged"]
    assert np.isfinite(found.info["objective"])
    with pytest.raises(DataError, match="no finite number"):
        solved(X, y * 1e300, qid, L2(1.0), Domination(margin=1e10))


def test_constant_features_get_no_weight():
    X, y, qid, _ = world(15)
    X[:, 2], X[:, 4] = 7.0, 0.0
    X[:, 5] = qid
    found = solved(X, y, qid, NoPenalty(), settings=CoordinateDescent(max_iter=5000))
    assert_array_equal(found.weights[[2, 4, 5]], 0.0)


def test_other_losses_and_penalties_are_rejected_by_name():
    X, y, qid, _ = world(16)
    with pytest.raises(ConfigError, match="got Hinge"):
        solved(X, y, qid, L1(1.0), loss=Hinge())
    with pytest.raises(ConfigError, match="got GroupL1"):
        solved(X, y, qid, GroupL1(1.0))


def test_nothing_relevant_is_nothing_to_learn_for_the_base_loss():
    X, y, qid, _ = world(17)
    with pytest.raises(DataError, match="nothing to learn"):
        solved(X, y + 1, qid, L1(1.0), loss=Domination("base"))

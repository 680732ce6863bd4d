"""Sums over nested windows against the pairwise definition; steps against the bounds they minimise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sparserank._kernels import domination as kernel
from sparserank.optim.coordinate_descent import CoordinateDescent, Descent
from sparserank.optim.losses import Domination
from sparserank.optim.problems import LinearProblem
from sparserank.optim.scores import Linear
from sparserank.preferences.queries import Queries
from tests import oracles


def start(score, queries, loss, settings):
    return Descent(LinearProblem(score, queries, loss), settings)


@st.composite
def worlds(draw, most=9):
    """Scores, grades, qids and weights of a few rows, with at least one pair."""
    n = draw(st.integers(2, most))
    y = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), float)
    qid = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    y[:2], qid[:2] = (1.0, 0.0), 0
    weight = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n)))
    seed = draw(st.integers(0, 1000))
    return y, qid, weight, np.random.default_rng(seed)


def standing(scores, y, qid, weight):
    """The kernel's state for these scores: one feature that is the scores, with weight 1."""
    descent = Descent(
        LinearProblem(Linear.of(scores[:, None]), Queries.of(y, qid, weight), Domination()), CoordinateDescent()
    )
    descent.w[:] = 1.0
    return descent, descent._refresh()


@given(worlds())
def test_the_linear_time_loss_and_gradient_equal_the_pairwise_definition(world):
    y, qid, weight, rng = world
    scores = rng.normal(scale=3.0, size=len(y))
    descent, loss = standing(scores, y, qid, weight)
    descent._full_gradient()
    expected, gradient = oracles.domination_loss(scores, y, qid, weight)
    assert_allclose(loss, expected, rtol=1e-12)
    assert_allclose(descent._score_gradient, gradient, atol=1e-12)


@given(worlds())
def test_gradient_and_curvature_along_a_feature_equal_the_pairwise_definition(world):
    y, qid, weight, rng = world
    X = rng.normal(size=(len(y), 2)) * (rng.random((len(y), 2)) < 0.7)
    w = np.array([1.0, -0.5])
    descent = start(Linear.of(X), Queries.of(y, qid, weight), Domination(), CoordinateDescent())
    descent.w[:] = w
    descent._refresh()
    for r in range(2):
        g, h, _, _ = look(descent, r)
        assert_allclose(g, X[:, r] @ oracles.domination_loss(X @ w, y, qid, weight)[1], atol=1e-12)
        assert_allclose(h, oracles.domination_curvature(X[:, r], X @ w, y, qid, weight), atol=1e-12)


def look(d, r):
    d._clock[0] += 1
    return kernel._derivatives(
        r, *d._matrix, d._level, d._position, d._level_query, d._query_start, d._weight, *d._state, d._stamp,
        d._clock[0], d._touched,
    )  # fmt: skip


@given(worlds(), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.2]))
def test_sums_carried_through_many_steps_equal_those_built_afresh(world, l1, l2):
    y, qid, weight, rng = world
    X = rng.normal(size=(len(y), 5)) * (rng.random((len(y), 5)) < 0.4)
    descent = Descent(
        LinearProblem(Linear.of(X), Queries.of(y, qid, weight), Domination(margin=0.5)), CoordinateDescent(tol=0.0)
    )
    for r in [0, 1, 2, 3, 4] * 3:
        visit(descent, r, l1, l2)
    carried = descent._sums.copy()
    descent._refresh()
    for k in np.flatnonzero(np.isfinite(carried[:, kernel.WINNER_SHIFT])):
        shift = np.exp(carried[k, kernel.WINNER_SHIFT] - descent._sums[k, kernel.WINNER_SHIFT])
        assert_allclose(carried[k, kernel.Z] * shift, descent._sums[k, kernel.Z], rtol=1e-9)
        assert_allclose(carried[k, kernel.T] / shift, descent._sums[k, kernel.T], rtol=1e-9)


def visit(d, r, l1, l2):
    """One coordinate step, as the solver takes it."""
    return kernel.descend(
        *d._matrix, d._level, d._position, d._level_query, *d._levels, np.array([r]), 1, d.w, d._feature_range,
        d._bound, l1, l2, np.inf, d._offset, d._score, *d._state, d._stamp, d._clock, d._touched,
    )  # fmt: skip


@given(worlds(), st.sampled_from([0.0, 0.4]), st.sampled_from([0.0, 0.3]), st.sampled_from([1.0, 30.0]))
def test_no_step_increases_the_penalised_objective(world, l1, l2, scale):
    y, qid, weight, rng = world
    X = scale * rng.normal(size=(len(y), 4)) * (rng.random((len(y), 4)) < 0.6)
    descent = start(Linear.of(X), Queries.of(y, qid, weight), Domination(), CoordinateDescent())
    descent.w[:] = rng.normal(size=4) / scale

    def objective():
        loss = oracles.domination_loss(X @ descent.w, y, qid, weight)[0]
        return loss + l1 * np.abs(descent.w).sum() + l2 * descent.w @ descent.w

    descent._refresh()
    before = objective()
    for r in [0, 1, 2, 3] * 4:
        if descent._feature_range[r] > 0:
            visit(descent, r, l1, l2)
            after = objective()
            assert after <= before + 1e-10 * (1 + abs(before))
            before = after


finite = st.floats(-5, 5, allow_nan=False)


@given(finite, finite, st.floats(0.01, 10), st.floats(0, 3))
def test_lemma_1_the_new_weight_has_the_sign_of_beta_w_minus_g(w, g, beta, l1):
    new = w + kernel.quadratic_step(w, g, beta, l1, 0.0)
    if beta * w - g > 0:
        assert new >= -1e-12
    elif beta * w - g < 0:
        assert new <= 1e-12


@given(finite, finite, st.floats(0.01, 10), st.floats(0, 3))
def test_lemma_2_the_new_weight_is_zero_exactly_where_g_minus_beta_w_is_within_lambda(w, g, beta, l1):
    step = kernel.quadratic_step(w, g, beta, l1, 0.0)
    if abs(g - beta * w) <= l1:
        assert step == -w
    else:
        assert abs(w + step) * beta == pytest.approx(abs(g - beta * w) - l1, abs=1e-9)


@given(finite, finite, st.floats(0.01, 10), st.floats(0, 3), st.floats(0, 3))
def test_the_quadratic_step_minimises_its_bound(w, g, beta, l1, l2):
    def bound(d):
        return g * d + beta * d * d / 2 + l1 * abs(w + d) + l2 * (w + d) ** 2

    step = kernel.quadratic_step(w, g, beta, l1, l2)
    assert bound(step) <= min(bound(step + e) for e in (-0.3, -1e-3, 1e-3, 0.3)) + 1e-9


@given(finite, finite, st.floats(0.01, 5), st.floats(0.1, 3), st.floats(0, 3), st.sampled_from([0.0, 0.1, 2.0]))
def test_the_step_minimises_the_bound_of_bounded_third_derivative(w, g, h, reach, l1, l2):
    def bound(d):
        away = reach * abs(d)
        return g * d + h * (np.expm1(away) - away) / reach**2 + l1 * abs(w + d) + l2 * (w + d) ** 2

    step = kernel.best_step(w, g, h, reach, np.inf, l1, l2)
    assert bound(step) <= min(bound(step + e) for e in (-0.3, -1e-3, 1e-3, 0.3)) + 1e-9


def test_without_curvature_the_step_is_that_of_the_quadratic_bound():
    assert kernel.best_step(1.0, 2.0, 0.0, 1.0, 4.0, 0.5, 0.0) == kernel.quadratic_step(1.0, 2.0, 4.0, 0.5, 0.0)


@given(worlds())
def test_ranges_are_those_of_each_query_with_absent_entries_as_zeros(world):
    y, qid, weight, rng = world
    X = rng.normal(size=(len(y), 3)) * (rng.random((len(y), 3)) < 0.6)
    descent = start(Linear.of(X), Queries.of(y, qid, weight), Domination(), CoordinateDescent())
    reach, bound = np.zeros(3), np.zeros(3)
    for q in np.unique(qid):
        rows = qid == q
        if len(np.unique(y[rows])) < 2:
            continue
        gap = np.ptp(X[rows], axis=0)
        mass = weight[rows & (y > y[rows].min())].sum()
        reach, bound = np.maximum(reach, gap), bound + mass * gap**2 / 4
    if len(np.unique(qid)) > 1:
        assert_allclose(descent._feature_range, reach)
        assert_allclose(descent._bound, bound)


def test_lengths_are_those_of_the_columns_at_any_scale():
    X = np.array([[3.0, 0.0, 1e90], [4.0, 0.0, -1e90]])
    assert_allclose(Linear.of(X).lengths, [5.0, 0.0, 2**0.5 * 1e90])

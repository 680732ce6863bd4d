"""The closed form against the objective, the normal equations and its own dense formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import cho_solve
from scipy.sparse import csr_array

from sparserank.optim import closed_form
from sparserank.optim.closed_form import (
    ClosedForm,
    compute_gram,
    iterate_first_step_rows,
    iterate_gradient_rows,
    iterate_weight_rows,
)
from sparserank.optim.penalties import Ridge

from .judged_world import dense, objective, on_pattern, some_lists

RIDGES = [Ridge(), Ridge(0.3, 3.0), Ridge(3.0, 0.1)]


def assembled(rows, shape):
    out, met = np.zeros(shape), []
    for which, block in rows:
        assert block.dtype == np.float32
        assert block.shape == (len(which), shape[1])
        out[which] = block
        met += which.tolist()
    return out, met


def closed(lists, ridge):
    return assembled(iterate_weight_rows(lists, ClosedForm(lists.D).solve_duals(lists, ridge)), lists.shape)[0]


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("query_normalization", [0.0, 0.5])
def test_duals_are_those_of_the_formula(ridge, query_normalization):
    lists = some_lists(query_normalization=query_normalization)
    Q, D, Y = dense(lists)
    left, right = Q @ Q.T + ridge.query * np.eye(len(Q)), D @ D.T + ridge.document * np.eye(len(D))
    expected = np.linalg.inv(left) @ Y @ np.linalg.inv(right)
    assert_allclose(ClosedForm(lists.D).solve_duals(lists, ridge), expected, atol=1e-5)


@pytest.mark.parametrize("ridge", RIDGES)
def test_W_solves_the_normal_equations(ridge):
    lists = some_lists()
    everything = np.ones(lists.shape, np.bool_)
    assert_allclose(closed(lists, ridge), on_pattern(lists, ridge, everything), atol=1e-5)


@given(st.integers(0, 30), st.sampled_from(RIDGES), st.sampled_from([0.0, 0.25, 1.0]))
def test_no_step_away_from_W_makes_the_objective_less(seed, ridge, query_normalization):
    lists = some_lists(seed, query_normalization=query_normalization)
    W = closed(lists, ridge)
    least = objective(lists, csr_array(W), ridge)
    for step in np.random.default_rng(seed).normal(size=(5, *W.shape)):
        # along any line the objective is a parabola: its derivative at W is what two points tell
        ahead, behind = (objective(lists, csr_array(W + s * 0.1 * step), ridge) for s in (1, -1))
        assert min(ahead, behind) > least
        assert abs(ahead - behind) < 1e-3 * (ahead + behind - 2 * least)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_rows_in_blocks_of_any_size_are_those_of_the_dense_W(monkeypatch, rows):
    monkeypatch.setattr(closed_form, "BLOCK_ROWS", rows)
    lists = some_lists()
    duals = ClosedForm(lists.D).solve_duals(lists, Ridge())
    found, met = assembled(iterate_weight_rows(lists, duals), lists.shape)
    assert met == [0, 1, 3, 4, 5], "no query has word 2"
    assert_allclose(found, lists.Q.toarray().T @ duals @ lists.D.toarray(), atol=1e-5)


@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize("query_normalization", [0.0, 0.5])
def test_gradient_rows_are_minus_half_the_gradient_at_0(monkeypatch, rows, query_normalization):
    monkeypatch.setattr(closed_form, "BLOCK_ROWS", rows)
    lists = some_lists(query_normalization=query_normalization)
    Q, D, Y = dense(lists)
    found, met = assembled(iterate_gradient_rows(lists), lists.shape)
    assert met == [0, 1, 3, 4, 5]
    assert_allclose(found, Q.T @ Y @ D, atol=1e-5)
    bump = np.zeros(lists.shape)
    bump[1, 2] = 1e-3
    ahead, behind = (objective(lists, csr_array(s * bump), Ridge()) for s in (1, -1))
    assert found[1, 2] == pytest.approx((behind - ahead) / 4e-3, rel=1e-3, abs=1e-5)


def test_a_first_step_is_the_best_entry_where_W_has_no_other():
    lists, ridge = some_lists(), Ridge(0.3, 2.0)
    found, _ = assembled(iterate_first_step_rows(lists, ridge), lists.shape)
    for i, j in np.ndindex(lists.shape):
        alone = np.zeros(lists.shape, np.bool_)
        alone[i, j] = True
        assert found[i, j] == pytest.approx(on_pattern(lists, ridge, alone)[i, j], abs=1e-5)


def test_a_gram_matrix_is_made_once_and_no_factor_spoils_it():
    lists = some_lists()
    form = ClosedForm(lists.D)
    first = form.gram
    before = first.copy()
    inverse = cho_solve(form.factorize(2.0), np.eye(12))
    assert form.gram is first
    assert_array_equal(first, before)
    D = lists.D.toarray().astype(np.float64)
    assert_allclose(inverse, np.linalg.inv(D @ D.T + 2.0 * np.eye(12)), atol=1e-5)
    assert_allclose(compute_gram(lists.D, lists.D[:3]), (D @ D.T)[:, :3], atol=1e-5)

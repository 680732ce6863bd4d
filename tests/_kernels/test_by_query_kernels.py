"""The kernels under the rankers of graded rows, against their definitions, on cases small enough for plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sparserank._kernels import boosting, descent, pair_hinge, passive, ties
from sparserank.evaluation.ndcg import dcg
from sparserank.preferences.queries import Queries

from .. import oracles

CASES = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 2), min_size=n, max_size=n),
        st.lists(st.integers(0, 1), min_size=n, max_size=n),
        st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0]), min_size=n, max_size=n),
        st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n),
    )
)


def tiers(queries):
    return np.repeat(np.arange(len(queries.level) - 1), np.diff(queries.level))


@given(CASES, st.booleans())
def test_the_counted_hinge_is_that_of_all_pairs_and_its_gradient_is_its_derivative(case, squared):
    y, qid, scores, weight = case
    queries = Queries.of(y, qid, weight)
    # a tiny jitter: no margin lies on the hinge's corner, where the plain one has no derivative
    scores = np.array(scores) + 1e-3 * np.arange(len(y))
    gradient = np.empty(len(y))
    s, w = scores[queries.order], queries.weight.copy()
    loss = pair_hinge.loss_and_gradient(s, w, tiers(queries), queries.start, squared, gradient)
    assert_allclose(loss, oracles.pair_hinge(scores, y, qid, weight, squared), atol=1e-9)
    for place, row in enumerate(queries.order):
        step = np.zeros(len(y))
        step[row] = 1e-6
        up, down = (oracles.pair_hinge(scores + side * step, y, qid, weight, squared) for side in (1, -1))
        assert_allclose(gradient[place], (up - down) / 2e-6, atol=1e-5)


@given(CASES)
def test_the_hessian_is_the_derivative_of_the_gradient(case):
    y, qid, scores, weight = case
    queries = Queries.of(y, qid, weight)
    s = (np.array(scores) + 1e-3 * np.arange(len(y)))[queries.order]
    along = np.cos(np.arange(len(y)))
    out, up, down = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
    arguments = queries.weight.copy(), tiers(queries), queries.start
    pair_hinge.multiply_hessian(s, *arguments, along, out)
    pair_hinge.loss_and_gradient(s + 1e-6 * along, *arguments, True, up)
    pair_hinge.loss_and_gradient(s - 1e-6 * along, *arguments, True, down)
    assert_allclose(out, (up - down) / 2e-6, atol=1e-6)


@given(CASES)
def test_potentials_are_the_masses_of_the_listed_pairs(case):
    y, qid, scores, weight = case
    listed = oracles.pairs(y, qid)
    if not listed:
        return
    queries = Queries.of(y, qid, weight)
    pull, log_mass = boosting.potentials(
        np.array(scores)[queries.order], np.log(queries.weight), queries.level, queries.query_levels
    )
    mass = {pair: weight[pair[0]] * math.exp(scores[pair[1]] - scores[pair[0]]) for pair in listed}
    total = sum(mass.values())
    for place, row in enumerate(queries.order):
        won = sum(m for (i, _), m in mass.items() if i == row)
        lost = sum(m for (_, j), m in mass.items() if j == row)
        assert_allclose(pull[place], (won - lost) / total, atol=1e-12)
    assert_allclose(log_mass, math.log(total))


def test_potentials_hold_at_any_scale_of_the_scores():
    queries = Queries.of([1, 0, 1, 0], [0, 0, 1, 1])
    scores = np.array([-1e4, 1e4, 1e4, -1e4])
    pull, log_mass = boosting.potentials(scores, np.zeros(4), queries.level, queries.query_levels)
    assert pull.tolist() == [1.0, -1.0, 0.0, 0.0], "all mass is on the pair that is hugely wrong"
    assert log_mass == pytest.approx(2e4)


@given(
    st.lists(st.sampled_from([-1.5, -1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=8),
    st.lists(st.floats(-1, 1, width=16), min_size=8, max_size=8),
    st.booleans(),
)
def test_the_best_stump_is_that_of_all_cuts_with_zeros_stored_or_not(values, pull, stored):
    x, pull = np.array(values), np.array(pull[: len(values)])
    pull = pull - pull.mean()
    rows = np.arange(len(x)) if stored else np.flatnonzero(x)
    starts, rows, column = np.array([0, len(rows)]), rows.astype(np.int64), x[rows].copy()
    boosting.sort_columns(starts, rows, column)
    (best,), (cut,) = boosting.best_stumps(pull, starts, rows, column, len(x))
    distinct = np.unique(x)
    gains = [abs(pull[x > c].sum()) for c in (distinct[1:] + distinct[:-1]) / 2]
    assert_allclose(abs(best), max(gains, default=0.0), atol=1e-9)
    if abs(best) > 1e-9:
        assert_allclose(pull[x > cut].sum(), best, atol=1e-9)


def test_a_cut_between_two_neighbouring_doubles_still_parts_them():
    low = 1.0
    high = np.nextafter(low, 2.0)
    starts, rows, values = np.array([0, 2]), np.array([0, 1]), np.array([low, high])
    boosting.sort_columns(starts, rows, values)
    _, (cut,) = boosting.best_stumps(np.array([-0.5, 0.5]), starts, rows, values, 2)
    assert low <= cut < high


def test_steps_are_sums_over_stumps_for_full_and_sparse_rows():
    X = np.array([[0.0, -1.0], [2.0, 0.0], [0.5, 3.0]])
    starts, cut, alpha = np.array([0, 2, 3]), np.array([-0.5, 1.0, -0.5]), np.array([1.0, 10.0, 100.0])
    wanted = [sum(a for a, c in zip(alpha[:2], cut[:2], strict=True) if x > c) + 100.0 * (y > -0.5) for x, y in X]
    out = np.zeros(3)
    boosting.add_steps_dense(X, starts, cut, alpha, out)
    assert out.tolist() == wanted
    indptr, indices, data = np.array([0, 1, 2, 4]), np.array([1, 0, 0, 1]), np.array([-1.0, 2.0, 0.5, 3.0])
    out = np.full(3, alpha[cut < 0].sum())
    boosting.add_steps(indptr, indices, data, starts, cut, alpha, out)
    assert out.tolist() == wanted


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0]), st.integers(0, 2)), min_size=1, max_size=6))
def test_ties_count_as_the_mean_over_every_order(rows):
    scores, grades = (np.array(column, float) for column in zip(*rows, strict=True))
    gains, precision, start = np.exp2(grades) - 1, np.empty(1), np.array([0, len(rows)])
    ties.average_precisions(scores, gains, start, precision)
    assert_allclose(precision[0], oracles.over_ties(scores, grades > 0, oracles.average_precision), atol=1e-12)
    expected = np.empty(len(rows))
    ties.expected_gains(scores, gains, start, expected)
    discounted = oracles.over_ties(scores, gains, lambda values: oracles.dcg(values, 3))
    assert_allclose(dcg(expected, cutoff=3), discounted, atol=1e-12)


X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
TRIPLES = [(0, 1), (2, 1), (3, 0), (0, 4), (1, 2), (0, 2), (4, 3)]


def compressed(rows):
    from scipy.sparse import csr_array

    matrix = csr_array(rows)
    return matrix.indptr, matrix.indices, matrix.data


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_passive_aggressive_steps_are_pamirs(C):
    better, worse = (np.array(side) for side in zip(*TRIPLES, strict=True))
    for run in ("sparse", "full"):
        w, drift = np.zeros(3), np.zeros(3)
        for part in (slice(0, 3), slice(3, 7)):
            arguments = better[part], worse[part], C, part.start, w, drift
            if run == "sparse":
                passive.linear_steps(*compressed(X), *arguments)
            else:
                passive.dense_steps(X, *arguments)
        assert_allclose(w, oracles.pamir(X, TRIPLES, C, False), atol=1e-12)
        assert_allclose(w - drift / len(TRIPLES), oracles.pamir(X, TRIPLES, C, True), atol=1e-12)


def test_bilinear_steps_are_pamirs():
    Q = np.array([[1.0, 0.0], [0.5, 2.0], [0.0, 0.0]])
    triples = [(t % 3, *pair) for t, pair in enumerate(TRIPLES)]
    query, better, worse = (np.array(side) for side in zip(*triples, strict=True))
    W, drift = np.zeros((2, 3)), np.zeros((2, 3))
    off = passive.bilinear_steps(*compressed(Q), *compressed(X), query, better, worse, 0.5, 0, W, drift, True)
    assert 0 < off <= len(triples)
    assert_allclose(W, oracles.pamir_bilinear(Q, X, triples, 0.5, False), atol=1e-12)
    assert_allclose(W - drift / len(triples), oracles.pamir_bilinear(Q, X, triples, 0.5, True), atol=1e-12)


@pytest.mark.parametrize("decays", [False, True])
def test_squared_steps_are_sgd_of_the_report(decays):
    phi = np.column_stack([np.ones(8), np.cos(np.arange(8.0)), np.sin(np.arange(8.0))])
    target = np.arange(8.0) % 3
    w = np.zeros(3)
    for part in (slice(0, 3), slice(3, 8)):
        assert descent.squared_steps(phi[part], target[part], np.ones(8), 0.5, 0.05, decays, part.start, w) == -1
    rate = (lambda i: 0.1 / math.sqrt(5 * i)) if decays else (lambda i: 0.05)
    assert_allclose(w, oracles.squared_descent(phi, target, 0.5, rate), atol=1e-12)


def test_squared_steps_say_where_they_run_off():
    phi = np.full((400, 1), 1e3)
    assert descent.squared_steps(phi, np.ones(400), np.ones(400), 0.0, 1.0, False, 7, np.zeros(1)) > 7


def test_a_mixture_of_planes_reaches_its_optimum():
    from scipy.optimize import minimize

    random = np.random.default_rng(0)
    gradients, heights = random.normal(size=(6, 3)), random.normal(size=6)
    gram = gradients @ gradients.T
    alpha = np.full(6, 1 / 6)
    pair_hinge.best_mixture(gram, heights, alpha, 1e-10, 10_000)
    assert alpha.min() >= 0
    assert_allclose(alpha.sum(), 1.0)
    whole = {"type": "eq", "fun": lambda a: a.sum() - 1}
    best = minimize(
        lambda a: 0.5 * a @ gram @ a - heights @ a, np.full(6, 1 / 6), bounds=[(0, None)] * 6, constraints=[whole],
        options={"ftol": 1e-14},
    )  # fmt: skip
    assert_allclose(0.5 * alpha @ gram @ alpha - heights @ alpha, best.fun, atol=1e-7)

"""Scores, losses, gradients and steps on candidate lists, against the formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparserank._kernels.candidate_lists import (
    DOMINATION,
    HINGE,
    SOFTMAX,
    adagrad_step,
    evaluate,
    exponential_loss,
    hinge_loss,
    score,
    score_expanded,
)
from sparserank.optim.problems import csr_arrays

from ..optim import judged_worlds as worlds

MARGIN = 0.7
KINDS = {"domination": DOMINATION, "softmax": SOFTMAX, "hinge": HINGE}


def literal(kind, scores, share):
    """The loss of one list as it is written."""
    scores, share = np.asarray(scores, np.float64), np.asarray(share, np.float64)
    relevant = [p for p in range(len(share)) if share[p] > 0]
    others = [n for n in range(len(share)) if share[n] == 0]
    if kind == "hinge":
        short = [share[p] * max(0.0, MARGIN - scores[p] + scores[n]) for p in relevant for n in others]
        return sum(short) / max(len(others), 1)
    rivals = others if kind == "domination" else range(len(share))
    plus = 1.0 if kind == "domination" else 0.0
    return sum(share[p] * math.log(plus + sum(math.exp(scores[d] - scores[p]) for d in rivals)) for p in relevant)


def computed(kind, scores, share):
    scores, share = np.array(scores, np.float64), np.array(share, np.float32)
    gradient = np.full(len(scores), 9.0)
    if kind == "hinge":
        return hinge_loss(scores, share, MARGIN, gradient), gradient
    return exponential_loss(scores, share, kind == "softmax", gradient), gradient


def slope(f, x, at, step=1e-6):
    moved = np.zeros_like(x)
    moved[at] = step
    return (f(x + moved) - f(x - moved)) / (2 * step)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_loss_and_gradient_of_a_list_are_those_of_the_formula(kind, seed):
    rng = np.random.default_rng(seed)
    scores, share = rng.normal(size=8), rng.random(8) * (rng.random(8) < 0.4)
    share = share.astype(np.float32)
    loss, gradient = computed(kind, scores, share)
    assert loss == pytest.approx(literal(kind, scores, share), rel=1e-6)
    expected = [slope(lambda s: literal(kind, s, share), scores, at) for at in range(8)]
    assert_allclose(gradient, expected, atol=1e-6)
    assert gradient.sum() == pytest.approx(0.0, abs=1e-6), "a constant on all scores changes nothing"


@pytest.mark.parametrize("kind", ["domination", "softmax"])
def test_the_gradient_of_an_exponential_loss_by_hand(kind):
    """Scores 0 and log 3: the relevant document has 1 of 4 of the exponentials."""
    loss, gradient = computed(kind, [0.0, math.log(3.0)], [1.0, 0.0])
    assert loss == pytest.approx(math.log(4.0))
    assert_allclose(gradient, [-0.75, 0.75])


def test_the_gradient_of_the_hinge_by_hand():
    """Of two documents that are not relevant, one is within the margin."""
    loss, gradient = computed("hinge", [1.0, 0.5, -3.0], [2.0, 0.0, 0.0])
    assert loss == pytest.approx(2.0 * 0.2 / 2)
    assert_allclose(gradient, [-1.0, 1.0, 0.0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_with_nothing_to_compare_has_no_loss(kind):
    for share in ([], [0.0, 0.0], [0.5] if kind == "softmax" else [0.5, 0.5]):
        loss, gradient = computed(kind, np.arange(len(share)), share)
        assert loss == 0.0
        assert_allclose(gradient, 0.0, atol=1e-12)


def test_softmax_compares_relevant_documents_with_each_other():
    loss, gradient = computed("softmax", [0.0, 0.0], [0.5, 0.5])
    assert loss == pytest.approx(math.log(2.0))
    assert_allclose(gradient, 0.0, atol=1e-12)


@pytest.mark.parametrize("kind", ["domination", "softmax"])
@pytest.mark.parametrize("far", [1e3, 1e5])
def test_scores_far_apart_overflow_nothing(kind, far):
    loss, gradient = computed(kind, [-far, far, 0.0], [1.0, 0.0, 0.0])
    assert loss == pytest.approx(2 * far)
    assert_allclose(gradient, [-1.0, 1.0, 0.0])
    loss, gradient = computed(kind, [far, -far, 0.0], [1.0, 0.0, 0.0])
    assert loss == 0.0
    assert_allclose(gradient, 0.0, atol=1e-12)


# ---- lists


@pytest.fixture(params=[False, True], ids=["equal", "weighted"])
def problem(request):
    return worlds.reranking(weighted=request.param)


def places(problem):
    lists = problem.candidates
    return zip(np.repeat(np.arange(len(lists)), lists.lengths).tolist(), lists.document.tolist(), strict=True)


def dense_scores(problem, w):
    Q, D = worlds.dense(problem.Q, problem.D)
    full = Q @ w @ D.T
    return np.array([full[at] for at in places(problem)])


@pytest.mark.parametrize("bounds", [[(0, 10)], [(0, 4), (4, 10)], [(7, 10), (0, 1), (1, 7)]])
def test_scores_are_the_products_of_queries_pairs_and_documents(problem, bounds):
    W = worlds.pattern((problem.Q.shape[1], problem.D.shape[1]))
    lists, expanded = problem.candidates, np.zeros(W.shape[1], np.float32)
    out = np.full(len(lists.base), 9.0, np.float32)
    for first, last in bounds:
        score(
            first, last, *csr_arrays(problem.Q), *csr_arrays(W), *csr_arrays(problem.D),
            lists.start, lists.document, expanded, out,
        )  # fmt: skip
        assert not expanded.any()
    assert_allclose(out, dense_scores(problem, W.toarray()), atol=1e-5)


def test_scores_of_expanded_queries_are_their_products_with_documents(problem):
    expanded = np.random.default_rng(0).normal(size=(10, 8)).astype(np.float32)
    lists, out = problem.candidates, np.zeros(len(problem.candidates.base), np.float32)
    score_expanded(expanded, *csr_arrays(problem.D), lists.start, lists.document, out)
    full = expanded @ problem.D.toarray().T
    assert_allclose(out, [full[at] for at in places(problem)], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradient_by_the_weights_are_those_of_the_formula(problem, kind):
    lists, W = problem.candidates, worlds.pattern((problem.Q.shape[1], problem.D.shape[1]))
    row, column = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr)), W.indices
    queries = np.array([7, 0, 3, 1])

    def loss_of(weight):
        w = np.zeros(W.shape)
        w[row, column] = weight
        scores = lists.base + dense_scores(problem, w)
        spans = [slice(lists.start[q], lists.start[q + 1]) for q in queries]
        return sum(literal(kind, scores[span], lists.share[span]) for span in spans)

    work, gradient = np.zeros((2, W.shape[1]), np.float32), np.ones(W.nnz, np.float32)
    loss = evaluate(
        queries, *csr_arrays(problem.Q), *csr_arrays(W), *csr_arrays(problem.D),
        lists.start, lists.document, lists.base, lists.share, KINDS[kind], MARGIN, *work, gradient,
    )  # fmt: skip
    weight = W.data.astype(np.float64)
    assert loss == pytest.approx(loss_of(weight), rel=1e-5)
    expected = [1.0 + slope(loss_of, weight, at, 1e-4) for at in range(W.nnz)]
    assert_allclose(gradient, expected, atol=1e-4)
    assert not work.any()


@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_step_divides_each_gradient_by_the_root_of_its_squares(nonnegative):
    rng = np.random.default_rng(0)
    weight, squares = rng.normal(size=9).astype(np.float32), rng.random(9).astype(np.float32)
    parts, free = rng.normal(size=(3, 9)).astype(np.float32), np.arange(9) % 4 != 2
    parts[:, 5] = 0.0
    before, g = weight.copy(), parts.sum(axis=0)
    sums = squares + np.where(free, g, 0.0) ** 2
    expected = np.where(free & (g != 0), weight - 0.3 * g / np.sqrt(sums), weight)
    if nonnegative:
        expected = np.where(free & (g != 0), np.maximum(expected, 0.0), expected)
    for first, last in ((0, 4), (4, 9)):
        adagrad_step(first, last, weight, squares, parts, np.float32(0.3), free, nonnegative)
    assert_allclose(weight, expected, rtol=1e-5)
    assert_allclose(squares, sums, rtol=1e-5)
    assert_array_equal(weight[[2, 5, 6]], before[[2, 5, 6]])
    assert not parts.any()


def test_a_step_touches_only_the_weights_of_its_range():
    weight, squares, parts = np.ones(4, np.float32), np.zeros(4, np.float32), np.ones((2, 4), np.float32)
    adagrad_step(1, 3, weight, squares, parts, np.float32(0.5), np.ones(4, np.bool_), False)
    assert_allclose(weight, [1.0, 0.5, 0.5, 1.0])
    assert_array_equal(parts, [[1, 0, 0, 1]] * 2)


@pytest.mark.parametrize("slope", [1e-20, 1e-30])
def test_a_gradient_whose_square_is_0_in_float32_gives_a_finite_step(slope):
    weight, squares, parts = np.ones(1, np.float32), np.zeros(1, np.float32), np.full((1, 1), slope, np.float32)
    adagrad_step(0, 1, weight, squares, parts, np.float32(0.5), np.ones(1, np.bool_), False)
    assert np.isfinite(weight).all()
    assert abs(weight[0] - 1.0) <= 0.5

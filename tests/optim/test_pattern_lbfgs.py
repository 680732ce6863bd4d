"""Domination and softmax on full lists equal their definitions, in value, gradient and where they end."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.sparse import csr_array

from sparserank.errors import ConfigError
from sparserank.optim.losses import Domination, Hinge, Softmax
from sparserank.optim.pattern_hinge import PatternHinge
from sparserank.optim.pattern_lbfgs import ListLoss, Negatives, PatternLBFGS
from sparserank.optim.penalties import L2
from sparserank.optim.problems import ListProblem, RerankingProblem

from . import judged_worlds as worlds

LOSSES = [Domination(), Softmax()]


def literal(listed, W, tiles):
    """The loss as it is written; `tiles` says which documents meet which queries."""
    Q, D, grades = worlds.dense(listed.lists.Q, listed.lists.D, listed.lists.grades)
    scores, total = listed.base + Q @ W @ D.T, 0.0
    for queries, documents in tiles:
        for q in queries:
            found = [d for d in documents if d != listed.excluded[q]]
            losers = [d for d in found if grades[q, d] == 0]
            for p in found:
                share = listed.lists.query_weights[q] * grades[q, p] / grades[q].sum() if grades[q, p] else 0.0
                rivals = losers if isinstance(listed.loss, Domination) else [d for d in found if d != p]
                total += share * math.log(1.0 + sum(math.exp(scores[q, d] - scores[q, p]) for d in rivals))
    return total


def everything(listed):
    n, m = listed.base.shape
    return [([q], range(m)) for q in range(n)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("batch", [0, 3])
def test_loss_and_gradient_are_those_of_the_definition(loss, batch, weighted):
    listed = worlds.listed(loss=loss, weighted=weighted)
    W = worlds.pattern(listed.lists.shape)
    negatives = Negatives(batch, hard=2)
    tiles = negatives.make_tiles(listed) if batch else everything(listed)
    value, gradient = ListLoss(listed, negatives, threads=2).evaluate(W, W.data)
    w = W.toarray().astype(np.float64)
    assert value == pytest.approx(literal(listed, w, tiles), rel=1e-5)
    for (i, j), found in zip(zip(*W.nonzero(), strict=True), gradient, strict=True):
        step = np.zeros_like(w)
        step[i, j] = 1e-4
        rise = literal(listed, w + step, tiles) - literal(listed, w - step, tiles)
        assert found == pytest.approx(rise / 2e-4, abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_end_is_that_of_a_literal_search(loss):
    listed = worlds.listed(loss=loss)
    W = worlds.pattern(listed.lists.shape, density=0.2)
    row, column = W.nonzero()

    def objective(w):
        dense = np.zeros(W.shape)
        dense[row, column] = w
        return literal(listed, dense, everything(listed)) + 0.25 * np.sum((w - W.data) ** 2)

    expected = minimize(objective, W.data.astype(np.float64), method="L-BFGS-B").x
    assert_allclose(PatternLBFGS(100).solve(listed, L2(0.25), W).weights.data, expected, atol=5e-3)


def test_entries_that_are_fixed_stay_and_none_falls_below_zero_where_none_may():
    listed = worlds.listed()
    W = worlds.pattern(listed.lists.shape)
    W.data = np.abs(W.data)
    fixed = np.arange(W.nnz) % 3 == 0
    found = PatternLBFGS(30).solve(listed, L2(0.005), W, fixed, nonnegative=True).weights
    assert (found.data[fixed] == W.data[fixed]).all()
    assert (found.data >= 0.0).all()
    assert (found.data[~fixed] != W.data[~fixed]).any()
    free = PatternLBFGS(30).solve(listed, L2(0.005), W).weights
    assert (free.data < 0.0).any()


def test_any_number_of_threads_gives_the_same_bits():
    listed = worlds.listed(loss=Softmax())
    W = worlds.pattern(listed.lists.shape)
    one, three = (PatternLBFGS(10, n_jobs=n).solve(listed, L2(0.05), W).weights.data for n in (1, 3))
    assert (one == three).all()


def test_a_batch_brings_what_is_relevant_and_what_is_hard_and_every_query_is_in_one():
    listed = worlds.listed()
    grades = listed.lists.grades.toarray()
    tiles = Negatives(batch=4, hard=2).make_tiles(listed)
    assert sorted(np.concatenate([queries for queries, _ in tiles])) == np.flatnonzero(grades.any(axis=1)).tolist()
    for queries, documents in tiles:
        brought = set(np.flatnonzero(grades[queries].any(axis=0)))
        for q in queries:
            rest = [d for d in range(grades.shape[1]) if grades[q, d] == 0 and d != listed.excluded[q]]
            brought |= set(sorted(rest, key=lambda d, q=q: -listed.base[q, d])[:2])
        assert set(documents) == brought


def test_the_hardest_leave_out_what_is_relevant_and_the_query_itself():
    listed = worlds.listed()
    m = listed.base.shape[1]
    relevant = int((listed.lists.grades[[3]].toarray() > 0).sum())
    first = listed.find_hardest(np.array([3]), m)[0, : m - relevant - 1]
    assert 5 not in first
    assert (listed.lists.grades[[3]].toarray()[0, first] == 0).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_query_that_everything_is_relevant_to_is_defined_and_large_scores_overflow_nothing(loss):
    eye = csr_array(np.eye(2, dtype=np.float32))
    grades = csr_array(np.array([[1.0, 1.0], [1.0, 0.0]], np.float32))
    base = np.array([[0.0, 0.0], [-1e4, 1e4]], np.float32)
    listed = RerankingProblem(ListProblem(eye, eye, grades), base, np.full(2, -1, np.int64), loss)
    value, gradient = ListLoss(listed, Negatives()).evaluate(eye, np.zeros(2))
    assert value == pytest.approx(2e4 if isinstance(loss, Domination) else 2e4 + math.log(2.0))
    assert np.isfinite(gradient).all()


def test_another_loss_raises_and_names_those_that_work():
    listed = worlds.listed(loss=Hinge())
    with pytest.raises(ConfigError, match="PatternLBFGS needs the loss Domination or Softmax; got Hinge"):
        PatternLBFGS().solve(listed, L2(0.0), worlds.pattern(listed.lists.shape))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_grade_below_zero_counts_as_no_grade(loss):
    """Query 0 has grades 1 and -1, whose sum is 0: it teaches all the same, and its -1 document never wins."""
    listed = worlds.listed(loss=loss)
    grades = listed.lists.grades.toarray()
    grades[0], grades[4] = 0.0, 0.0
    grades[0, 1] = grades[4, 2] = 1.0
    plain = replace(listed, lists=replace(listed.lists, grades=csr_array(grades)))
    grades[0, 3], grades[4, 6] = -1.0, -2.0
    below = replace(listed, lists=replace(listed.lists, grades=csr_array(grades)))
    W = worlds.pattern(listed.lists.shape)
    for negatives in (Negatives(), Negatives(batch=3, hard=2)):
        (value, gradient), (expected, expected_gradient) = (
            ListLoss(one, negatives).evaluate(W, W.data) for one in (below, plain)
        )
        assert value == pytest.approx(expected, rel=1e-6)
        assert_allclose(gradient, expected_gradient, atol=1e-6)


def test_triples_never_prefer_a_document_of_a_grade_below_zero():
    listed = worlds.listed()
    grades = listed.lists.grades.toarray()
    grades[:, 7] = -1.0
    below = replace(listed, lists=replace(listed.lists, grades=csr_array(grades)))
    drawn = PatternHinge(2000, 1.0).draw(below)
    assert (grades[drawn.query, drawn.better] > 0.0).all()
    assert 7 in drawn.worse

"""A query of weight v counts as v queries, in the closed form, in pruning and on a pattern."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array, vstack

from sparserank.errors import DataError
from sparserank.optim.closed_form import ClosedForm
from sparserank.optim.pattern_ridge import PatternRidge
from sparserank.optim.penalties import Ridge
from sparserank.optim.problems import ListProblem
from sparserank.optim.pruning import Importance

from . import judged_worlds as worlds
from .judged_world import assembled, closed, objective

RIDGE = Ridge(0.4, 0.9)
TIMES = [1, 3, 1, 2, 1, 1, 2, 1, 1, 4]


@pytest.fixture
def heavy():
    lists = worlds.lists()
    return replace(lists, weight=np.array(TIMES, np.float64))


@pytest.fixture
def repeated(heavy):
    def stacked(X):
        return csr_array(vstack([X[[i]] for i, times in enumerate(TIMES) for _ in range(times)], format="csr"))

    return replace(heavy, Q=stacked(heavy.Q), grades=stacked(heavy.grades), weight=None)


def test_the_closed_form_of_weighted_queries_is_that_of_repeated_ones(heavy, repeated):
    assert_allclose(closed(heavy, RIDGE), closed(repeated, RIDGE), atol=1e-5)
    assert np.abs(closed(heavy, RIDGE) - closed(worlds.lists(), RIDGE)).max() > 1e-3


@pytest.mark.parametrize("size", [1, 3, 5])
def test_so_it_is_with_the_heaviest_words_alone(heavy, repeated, size):
    one, other = (assembled(ClosedForm(x.D, size).iterate_rows(x, RIDGE), x.shape) for x in (heavy, repeated))
    assert one[1] == other[1]
    assert_allclose(one[0], other[0], atol=1e-5)


def test_the_closed_form_leaves_the_weighted_objective_no_better_neighbour(heavy):
    W = closed(heavy, RIDGE)
    least = objective(heavy, csr_array(W), RIDGE)
    for step in np.random.default_rng(0).normal(size=(20, *W.shape)) * 0.01:
        assert objective(heavy, csr_array(W + step), RIDGE) > least


def test_importances_and_refits_are_those_of_repeated_queries(heavy, repeated):
    one, other = (Importance.of(lists, RIDGE) for lists in (heavy, repeated))
    assert_allclose(one.rows, other.rows, rtol=1e-6)
    assert_allclose(one.columns, other.columns, rtol=1e-6)
    W = worlds.pattern(heavy.shape)
    one, other = (PatternRidge(80, n_jobs=1).solve(lists, RIDGE, W).weights for lists in (heavy, repeated))
    assert_allclose(one.toarray(), other.toarray(), atol=1e-4)


def test_objectives_agree_and_weights_follow_their_queries(heavy, repeated):
    W = worlds.pattern(heavy.shape)
    assert objective(heavy, W, RIDGE) == pytest.approx(objective(repeated, W, RIDGE), rel=1e-6)
    assert heavy.select_queries(np.array([9, 1])).query_weights.tolist() == [4.0, 3.0]


@pytest.mark.parametrize("weight", [np.ones(3), np.array([1.0] * 9 + [0.0]), np.array([np.inf] + [1.0] * 9)])
def test_weights_that_are_none_raise(weight):
    lists = worlds.lists()
    with pytest.raises(DataError, match="weight"):
        ListProblem(lists.Q, lists.D, lists.grades, weight)

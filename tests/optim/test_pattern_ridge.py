"""The refit on a pattern, against the normal equations of that pattern."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.errors import ConfigError
from sparserank.optim import pattern_ridge
from sparserank.optim.pattern_ridge import (
    LocalOperator,
    NormalEquations,
    PatternRidge,
    WordOperator,
    local_operator,
)
from sparserank.optim.penalties import L1, Ridge

from .judged_world import closed, objective, on_pattern, some_lists

RIDGE = Ridge(0.5, 2.0)


def started(pattern, seed=0):
    """A W with an entry at each place of the pattern, explicit zeros among them."""
    row, column = np.nonzero(pattern)
    values = np.random.default_rng(seed).integers(-2, 3, len(row)).astype(np.float32)
    return csr_array((values, (row, column)), shape=pattern.shape)


def refit(lists, W, steps, ridge=RIDGE, n_jobs=None, fixed=None):
    return PatternRidge(steps, n_jobs).solve(lists, ridge, W, fixed).weights


def a_pattern(shape, seed=0, share=0.4):
    return np.random.default_rng(seed).random(shape) < share


@settings(max_examples=30)
@given(st.integers(0, 20), st.sampled_from([0.0, 0.5]), st.sampled_from([RIDGE, Ridge(3.0, 0.3)]))
def test_it_ends_at_the_normal_equations_of_the_pattern(seed, query_normalization, ridge):
    lists = some_lists(seed, query_normalization=query_normalization)
    pattern = a_pattern(lists.shape, seed)
    found = refit(lists, started(pattern), 60, ridge, n_jobs=1)
    assert_array_equal(found.indices, started(pattern).indices)
    assert_allclose(found.toarray(), on_pattern(lists, ridge, pattern), atol=2e-4)


def test_on_the_full_pattern_it_is_the_closed_form():
    lists = some_lists()
    found = refit(lists, started(np.ones(lists.shape, np.bool_)), 200)
    assert_allclose(found.toarray(), closed(lists, RIDGE), atol=1e-5)


def test_without_the_penalty_on_the_side_of_documents_too():
    lists, pattern = some_lists(), a_pattern((6, 7), share=0.3)
    pattern[:, 3] = False  # a word that no document has is then free to be anything
    found = refit(lists, started(pattern), 200, Ridge(1.0, 0.0))
    assert_allclose(found.toarray(), on_pattern(lists, Ridge(1.0, 0.0), pattern), atol=1e-3)


def test_every_step_makes_the_objective_less():
    lists = some_lists()
    W = started(a_pattern(lists.shape))
    course = [objective(lists, refit(lists, W, steps), RIDGE) for steps in range(6)]
    assert_array_equal(refit(lists, W, 0).toarray(), W.toarray())
    assert all(after < before for before, after in pairwise(course))


def test_fixed_entries_stay_and_the_others_make_the_best_of_them():
    lists, pattern = some_lists(), a_pattern((6, 7))
    W = started(pattern)
    fixed = np.random.default_rng(3).random(W.nnz) < 0.4
    found = refit(lists, W, 60, fixed=fixed)
    assert_array_equal(found.data[fixed], W.data[fixed])
    free = csr_array((~fixed, W.indices, W.indptr), shape=W.shape).toarray()
    assert_allclose(found.toarray(), on_pattern(lists, RIDGE, free, fixed=W.toarray()), atol=2e-4)


def test_where_all_is_fixed_nothing_moves():
    W = started(a_pattern((6, 7)))
    found = refit(some_lists(), W, 5, fixed=np.ones(W.nnz, np.bool_))
    assert_array_equal(found.data, W.data)


def test_the_W_that_was_given_is_left_alone_and_may_have_its_columns_in_any_order():
    lists, W = some_lists(), started(np.ones((6, 7), np.bool_))
    turned = csr_array((W.data[::-1].copy(), W.indices[::-1].copy(), W.indptr), shape=W.shape)
    before = turned.indices.copy(), turned.data.copy()
    found = refit(lists, turned, 200)
    assert_array_equal(turned.indices, before[0])
    assert_array_equal(turned.data, before[1])
    assert_allclose(found.toarray(), refit(lists, W, 200).toarray(), atol=1e-5)


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_the_same_bits_for_any_number_of_threads(n_jobs):
    lists = some_lists(queries=40, documents=60, query_words=50, words=55)
    W = started(a_pattern(lists.shape))
    one, many = (refit(lists, W, 7, n_jobs=jobs) for jobs in (1, n_jobs))
    assert_array_equal(one.data, many.data)
    assert np.isfinite(one.data).all()


@pytest.mark.parametrize("block", [1, 6 * 5, 6 * 11])
def test_documents_in_blocks_give_the_same_but_for_rounding(monkeypatch, block):
    lists, W = some_lists(), started(a_pattern((6, 7)))
    whole = refit(lists, W, 4)
    monkeypatch.setattr(pattern_ridge, "BLOCK_FLOATS", block)
    assert_allclose(refit(lists, W, 4).data, whole.data, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_steps_beyond_the_end_change_nothing(seed):
    lists = some_lists(seed)
    W = started(a_pattern(lists.shape, seed))
    assert_allclose(refit(lists, W, 1000).data, refit(lists, W, 25).data, atol=1e-6)


def test_a_single_pair_is_found_at_once_and_stays():
    lists, alone = some_lists(), np.zeros((6, 7), np.bool_)
    alone[1, 2] = True
    expected = on_pattern(lists, RIDGE, alone)
    for steps in (1, 2, 30):
        assert_allclose(refit(lists, started(alone), steps).toarray(), expected, atol=1e-6)


def test_an_empty_pattern_stays_empty():
    W = csr_array((6, 7), dtype=np.float32)
    assert refit(some_lists(), W, 5).nnz == 0


def test_no_threads_raise():
    with pytest.raises(ConfigError, match="n_jobs"):
        PatternRidge(n_jobs=0)


def test_another_penalty_raises_and_names_the_one_that_works():
    with pytest.raises(ConfigError, match="PatternRidge needs the penalty Ridge; got L1"):
        PatternRidge().solve(some_lists(), L1(1.0), started(a_pattern((6, 7))))


@pytest.mark.parametrize("seed", range(5))
def test_products_from_sums_in_words_are_those_from_documents(seed):
    lists = some_lists(seed, query_normalization=0.5)
    W = started(a_pattern(lists.shape, seed), seed)
    words = WordOperator(lists, RIDGE, W, threads=2)
    documents = LocalOperator(NormalEquations.of(lists, RIDGE), W)
    assert_allclose(words.right_side(), documents.right_side(), atol=1e-5)
    assert_allclose(words(W.data), documents(W.data), rtol=1e-4, atol=1e-4)
    assert_array_equal(words.diagonal, documents.diagonal)


def test_many_documents_are_read_once_only(monkeypatch):
    lists = some_lists()
    W = started(a_pattern(lists.shape, share=0.05))
    with local_operator(lists, RIDGE, W, 1) as operator:
        assert isinstance(operator, WordOperator)
    monkeypatch.setattr(pattern_ridge, "MAX_WORDS", 0)
    with local_operator(lists, RIDGE, W, 1) as operator:
        assert isinstance(operator, LocalOperator)

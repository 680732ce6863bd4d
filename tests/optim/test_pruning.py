"""Which pairs stay, against a sort of all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.errors import ConfigError
from sparserank.optim import pruning as pair_cut
from sparserank.optim.list_problem import Ridge
from sparserank.optim.pruning import PairBudget, Worth, cut, cut_rows

from .judged_world import dense, on_pattern, some_lists

EVEN = Worth(np.ones(8, np.float32), np.ones(9, np.float32))


def kept(W, worth, budget, forbidden=None):
    """Sort all pairs by falling worth, equal ones by place; take one after another while there is room."""
    value = np.abs(W) * worth.columns * worth.rows[:, None]
    out, room = np.zeros_like(W), np.full(len(W), budget.pairs_per_word or W.shape[1])
    taken = 0
    for i, j in sorted(np.ndindex(W.shape), key=lambda place: -value[place]):
        wanted = W[i, j] > 0 if budget.nonnegative else W[i, j] != 0
        wanted = wanted and (forbidden is None or not forbidden[i, j])
        if wanted and room[i] and taken < budget.pairs:
            out[i, j], room[i], taken = W[i, j], room[i] - 1, taken + 1
    return out


def in_blocks(W, size):
    for at in range(0, len(W), size):
        yield np.arange(at, min(at + size, len(W))), W[at : at + size].astype(np.float32)


def a_W(seed, ties):
    rng = np.random.default_rng(seed)
    W = rng.integers(-2, 3, (8, 9)) if ties else rng.normal(size=(8, 9)) * (rng.random((8, 9)) < 0.8)
    return W.astype(np.float32)


def some_worth(seed, ties):
    rng = np.random.default_rng(seed + 1)
    return EVEN if ties else Worth(rng.random(8).astype(np.float32), rng.random(9).astype(np.float32))


budgets = st.builds(
    PairBudget,
    max_pairs=st.integers(1, 80),
    pairs_per_word=st.none() | st.integers(1, 12),
    nonnegative=st.booleans(),
)


@given(st.integers(0, 1000), st.booleans(), budgets, st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_exactly_the_most_valuable_stay_however_the_rows_come(seed, ties, budget, size, pool, some_forbidden):
    W, worth = a_W(seed, ties), some_worth(seed, ties)
    forbidden = np.random.default_rng(seed).random(W.shape) < 0.3 if some_forbidden else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_cut, "POOL", pool)
        marked = None if forbidden is None else csr_array(forbidden.astype(np.float32))
        found = cut_rows(in_blocks(W, size), W.shape, worth, budget, marked)
    assert found.dtype == np.float32
    assert found.has_sorted_indices
    assert_array_equal(found.toarray(), kept(W, worth, budget, forbidden))


@given(st.integers(0, 1000), st.booleans(), budgets)
def test_a_sparse_W_is_cut_as_a_dense_one_is(seed, ties, budget):
    W, worth = a_W(seed, ties), some_worth(seed, ties)
    found = cut(csr_array(W), worth, budget)
    assert_array_equal(found.toarray(), kept(W, worth, budget))
    assert found.nnz == np.count_nonzero(found.toarray()), "no zero is stored"
    assert found.nnz <= budget.pairs


def test_zeros_that_a_sparse_W_stores_are_no_pairs():
    W = csr_array((np.array([0.0, 1.0, 0.0]), np.array([0, 1, 2]), np.array([0, 2, 3])), shape=(2, 3))
    found = cut(W, Worth(np.ones(2, np.float32), np.ones(3, np.float32)), PairBudget(3))
    assert found.nnz == 1
    assert found.toarray().tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def test_equal_pairs_stay_by_place():
    W = np.ones((3, 4), np.float32)
    worth = Worth(np.ones(3, np.float32), np.ones(4, np.float32))
    expected = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0]]
    assert cut(csr_array(W), worth, PairBudget(5, pairs_per_word=2)).toarray().tolist() == expected
    for size in (1, 2, 3):
        assert (
            cut_rows(in_blocks(W, size), (3, 4), worth, PairBudget(5, pairs_per_word=2)).toarray().tolist() == expected
        )


def test_nothing_comes_of_no_rows():
    assert cut_rows([], (8, 9), EVEN, PairBudget(5)).nnz == 0
    assert cut(csr_array((8, 9), dtype=np.float32), EVEN, PairBudget(5, pairs_per_word=1)).shape == (8, 9)


def test_worth_squared_is_what_the_objective_loses_where_a_pair_is_the_only_one():
    lists, ridge = some_lists(), Ridge(0.7, 2.0)
    worth = Worth.of(lists, ridge)
    alone = np.zeros(lists.shape, np.bool_)
    alone[1, 2] = True
    W = on_pattern(lists, 0.5, ridge, alone)
    without, with_it = (lists.objective(csr_array(M), 0.5, ridge) for M in (0 * W, W))
    assert (W[1, 2] * worth.rows[1] * worth.columns[2]) ** 2 == pytest.approx(without - with_it, rel=1e-4)


def test_worth_is_of_lengths_and_penalties():
    lists = some_lists()
    Q, D, _ = dense(lists, 0.0)
    worth = Worth.of(lists, Ridge(0.7, 2.0))
    assert_allclose(worth.rows, np.sqrt(np.diag(Q.T @ Q) + 0.7), rtol=1e-6)
    assert_allclose(worth.columns, np.sqrt(np.diag(D.T @ D) + 2.0), rtol=1e-6)


def test_a_budget_times_three_keeps_its_other_wishes():
    assert PairBudget(5, pairs_per_word=2, nonnegative=True).times(3) == PairBudget(
        15, pairs_per_word=6, nonnegative=True
    )
    assert PairBudget(5).times(3) == PairBudget(15)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"max_pairs": 0}, "max_pairs"),
        ({"max_pairs": 2.5}, "max_pairs"),
        ({"pairs_per_word": 0}, "pairs_per_word"),
    ],
)
def test_a_budget_without_room_is_refused(wrong, name):
    with pytest.raises(ConfigError, match=f"'{name}' parameter must be a whole number"):
        PairBudget(**wrong)


@pytest.mark.parametrize(
    ("budget", "pairs"), [({"density": 0.1}, 200), ({"megabytes": 0.001}, 104), ({}, 300_000), ({"max_pairs": 7}, 7)]
)
def test_a_budget_becomes_a_number_of_pairs_for_a_shape(budget, pairs):
    assert PairBudget(**budget).for_shape((40, 50)) == PairBudget(pairs)


def test_a_budget_has_one_limit_and_room_for_one_pair():
    with pytest.raises(ConfigError, match="'density' and 'megabytes' all limit the size of W"):
        PairBudget(density=0.1, megabytes=1.0)
    with pytest.raises(ConfigError, match="'megabytes' parameter must be at least"):
        PairBudget(megabytes=1e-9).for_shape((40, 50))

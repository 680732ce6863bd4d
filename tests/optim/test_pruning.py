"""Which pairs stay, against a sort of all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.errors import ConfigError
from sparserank.optim import pruning
from sparserank.optim.penalties import Ridge
from sparserank.optim.pruning import (
    Importance,
    PairBudget,
    compute_column_rms,
    find_largest,
    find_row_largest,
    prune,
    prune_product,
    prune_rows,
)
from sparserank.optim.row_blocks import LazyRows

from .judged_world import dense, objective, on_pattern, some_lists

EVEN = Importance(np.ones(8, np.float32), np.ones(9, np.float32))


def kept(W, importance, budget, forbidden=None):
    """Sort all pairs by falling importance, equal ones by place; take one after another while there is room."""
    value = np.abs(W) * importance.columns * importance.rows[:, None]
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


def some_importance(seed, ties):
    rng = np.random.default_rng(seed + 1)
    return EVEN if ties else Importance(rng.random(8).astype(np.float32), rng.random(9).astype(np.float32))


budgets = st.builds(
    PairBudget,
    max_pairs=st.integers(1, 80),
    pairs_per_word=st.none() | st.integers(1, 12),
    nonnegative=st.booleans(),
)


@given(st.integers(0, 1000), st.booleans(), budgets, st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_exactly_the_most_valuable_stay_however_the_rows_come(seed, ties, budget, size, pool, some_forbidden):
    W, importance = a_W(seed, ties), some_importance(seed, ties)
    forbidden = np.random.default_rng(seed).random(W.shape) < 0.3 if some_forbidden else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "POOL", pool)
        marked = None if forbidden is None else csr_array(forbidden.astype(np.float32))
        found = prune_rows(in_blocks(W, size), W.shape, importance, budget, marked)
    assert found.dtype == np.float32
    assert found.has_sorted_indices
    assert_array_equal(found.toarray(), kept(W, importance, budget, forbidden))


@given(st.integers(0, 1000), st.booleans(), budgets, st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_blocks_may_be_made_by_threads_with_bounds_and_for_some_columns(seed, ties, budget, size, n_jobs, bounded):
    W, importance = a_W(seed, ties), some_importance(seed, ties)
    rng = np.random.default_rng(seed)
    columns, empty = np.flatnonzero(rng.random(9) < 0.7), (rng.random(8) < 0.2, rng.random(9) < 0.2)
    bounds = np.max(np.abs(W) * importance.columns, axis=1) * 1.001 if bounded else None
    blocks = (
        LazyRows(which, lambda some: W[np.ix_(some, columns)].astype(np.float32), bounds[which] if bounded else None)
        for which, _ in list(in_blocks(W.copy(), size))
    )
    found = prune_rows(blocks, W.shape, importance, budget, forbidden_words=empty, columns=columns, n_jobs=n_jobs)
    W[:, np.setdiff1d(np.arange(9), columns)] = 0.0
    W[empty[0]] = W[:, empty[1]] = 0.0
    assert_array_equal(found.toarray(), kept(W, importance, budget))


def test_rows_whose_bound_is_below_the_pairs_so_far_are_not_made():
    made = []

    def make(some):
        made.extend(some.tolist())
        return np.full((len(some), 2), 5.0 - some[:, None], np.float32)

    ones = Importance(np.ones(4, np.float32), np.ones(2, np.float32))
    blocks = [LazyRows(np.array([i]), make, np.array([5.0 - i])) for i in range(4)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "POOL", 1)
        found = prune_rows(blocks, (4, 2), ones, PairBudget(3))
    assert found.toarray().tolist() == [[5, 5], [4, 0], [0, 0], [0, 0]]
    assert made == [0, 1]


@given(st.integers(0, 1000), st.booleans(), budgets, st.integers(1, 3))
def test_a_budget_is_among_the_pairs_of_a_multiple_of_it(seed, ties, budget, factor):
    W, importance = a_W(seed, ties), some_importance(seed, ties)
    more = prune_rows(in_blocks(W, 3), W.shape, importance, budget.times(factor))
    expected = prune_rows(in_blocks(W, 3), W.shape, importance, budget)
    assert_array_equal(prune(more, importance, budget).toarray(), expected.toarray())


@given(st.integers(0, 1000), st.booleans(), budgets)
def test_a_sparse_W_is_pruned_as_a_dense_one_is(seed, ties, budget):
    W, importance = a_W(seed, ties), some_importance(seed, ties)
    found = prune(csr_array(W), importance, budget)
    assert_array_equal(found.toarray(), kept(W, importance, budget))
    assert found.nnz == np.count_nonzero(found.toarray()), "no zero is stored"
    assert found.nnz <= budget.pairs


def test_zeros_that_a_sparse_W_stores_are_no_pairs():
    W = csr_array((np.array([0.0, 1.0, 0.0]), np.array([0, 1, 2]), np.array([0, 2, 3])), shape=(2, 3))
    found = prune(W, Importance(np.ones(2, np.float32), np.ones(3, np.float32)), PairBudget(3))
    assert found.nnz == 1
    assert found.toarray().tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def test_equal_pairs_stay_by_place():
    W = np.ones((3, 4), np.float32)
    importance = Importance(np.ones(3, np.float32), np.ones(4, np.float32))
    expected = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0]]
    assert prune(csr_array(W), importance, PairBudget(5, pairs_per_word=2)).toarray().tolist() == expected
    for size in (1, 2, 3):
        assert (
            prune_rows(in_blocks(W, size), (3, 4), importance, PairBudget(5, pairs_per_word=2)).toarray().tolist()
            == expected
        )


def test_nothing_comes_of_no_rows():
    assert prune_rows([], (8, 9), EVEN, PairBudget(5)).nnz == 0
    assert prune(csr_array((8, 9), dtype=np.float32), EVEN, PairBudget(5, pairs_per_word=1)).shape == (8, 9)


def test_importance_squared_is_what_the_objective_loses_where_a_pair_is_the_only_one():
    lists, ridge = some_lists(), Ridge(0.7, 2.0)
    importance = Importance.of(lists, ridge)
    alone = np.zeros(lists.shape, np.bool_)
    alone[1, 2] = True
    W = on_pattern(lists, ridge, alone)
    without, with_it = (objective(lists, csr_array(M), ridge) for M in (0 * W, W))
    assert (W[1, 2] * importance.rows[1] * importance.columns[2]) ** 2 == pytest.approx(without - with_it, rel=1e-4)


def test_importance_is_of_lengths_and_penalties():
    lists = some_lists()
    Q, D, _ = dense(lists)
    importance = Importance.of(lists, Ridge(0.7, 2.0))
    assert_allclose(importance.rows, np.sqrt(np.diag(Q.T @ Q) + 0.7), rtol=1e-6)
    assert_allclose(importance.columns, np.sqrt(np.diag(D.T @ D) + 2.0), rtol=1e-6)


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
def test_a_budget_without_room_raises(wrong, name):
    with pytest.raises(ConfigError, match=f"'{name}' parameter must be a whole number"):
        PairBudget(**wrong)


@pytest.mark.parametrize(
    ("budget", "pairs"), [({"density": 0.1}, 200), ({"megabytes": 0.001}, 104), ({}, 300_000), ({"max_pairs": 7}, 7)]
)
def test_a_budget_becomes_a_number_of_pairs_for_a_shape(budget, pairs):
    assert PairBudget(**budget).for_shape((40, 50)) == PairBudget(pairs)


def test_a_budget_has_one_limit_and_room_for_one_pair():
    with pytest.raises(ConfigError, match="'density' and 'megabytes' both limit the size of W"):
        PairBudget(density=0.1, megabytes=1.0)
    with pytest.raises(ConfigError, match="'megabytes' parameter must be at least"):
        PairBudget(megabytes=1e-9).for_shape((40, 50))


def literal(B, sizes, wanted):
    W = B @ B.T
    impact = np.abs(W) * sizes[:, None] * sizes
    least = np.sort(impact, axis=None)[-wanted]
    return np.where((impact >= least) & (impact > 0), W, 0.0)


@pytest.mark.parametrize("wanted", [1, 2, 31, 200, 899, 900, 5000])
def test_a_pruned_product_is_the_whole_product_pruned(wanted, monkeypatch):
    monkeypatch.setattr(pruning, "BLOCK_BYTES", 4 * 30 * 7)
    rng = np.random.default_rng(wanted)
    B, sizes = rng.normal(size=(30, 3)).astype(np.float32), rng.random(30).astype(np.float32) + 0.1
    W = prune_product(B, sizes, wanted)
    assert W.nnz == min(wanted, 900)
    whole = literal(B, sizes, min(wanted, 900))
    # (i, j) and (j, i) have one impact: an odd one out is the first of the two
    assert np.count_nonzero(whole) - W.nnz in (0, 1)
    assert_allclose(W.toarray(), np.where(W.toarray() != 0, whole, 0.0), rtol=1e-4)


def test_words_without_weight_or_without_items_have_no_pairs():
    B = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, -1.0], [5.0, 5.0]], np.float32)
    W = prune_product(B, np.array([1.0, 1.0, 1.0, 0.0], np.float32), 100)
    assert_array_equal(W.toarray() != 0, np.outer([1, 0, 1, 0], [1, 0, 1, 0]))
    assert prune_product(np.zeros((3, 2), np.float32), np.ones(3, np.float32), 4).nnz == 0


@pytest.mark.parametrize("wanted", [7, 100])
def test_threads_change_no_bit(wanted, monkeypatch):
    monkeypatch.setattr(pruning, "BLOCK_BYTES", 4 * 50)
    B = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    one, four = (prune_product(B, np.ones(50, np.float32), wanted, n) for n in (1, 4))
    assert_array_equal(one.data, four.data)
    assert_array_equal(one.indices, four.indices)


@given(st.lists(st.integers(-3, 3), max_size=12), st.integers(1, 14))
def test_the_k_largest_are_found_in_their_order_and_of_equal_ones_the_first(values, k):
    chosen = find_largest(np.array(values, np.float32), k).tolist()
    in_order = sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))
    assert chosen == sorted(in_order[:k])


def test_the_largest_entries_of_a_row_come_largest_first():
    W = csr_array(np.array([[9.0, 9.0, 0.0], [1.0, -3.0, 2.0]], np.float32))
    assert W.data[find_row_largest(W, 1)].tolist() == [-3.0, 2.0, 1.0]
    assert W.data[find_row_largest(W, 1, 2, signed=True)].tolist() == [2.0, 1.0]


def test_the_mean_size_of_a_column_is_its_root_mean_square():
    assert_allclose(compute_column_rms(csr_array(np.array([[3.0, 0.0], [4.0, 0.0]]))), [np.sqrt(12.5), 0.0], rtol=1e-6)

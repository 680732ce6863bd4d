"""BBᵀ cut by impact is what cutting the whole product would leave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.optim import low_rank_pruning as factor_cut
from sparserank.optim.low_rank_pruning import cut_product, largest, mean_sizes


def literal(B, sizes, wanted):
    W = B @ B.T
    impact = np.abs(W) * sizes[:, None] * sizes
    least = np.sort(impact, axis=None)[-wanted]
    return np.where((impact >= least) & (impact > 0), W, 0.0)


@pytest.mark.parametrize("wanted", [1, 2, 31, 200, 899, 900, 5000])
def test_a_cut_product_is_the_whole_product_cut(wanted, monkeypatch):
    monkeypatch.setattr(factor_cut, "BLOCK_BYTES", 4 * 30 * 7)
    rng = np.random.default_rng(wanted)
    B, sizes = rng.normal(size=(30, 3)).astype(np.float32), rng.random(30).astype(np.float32) + 0.1
    W = cut_product(B, sizes, wanted)
    assert W.nnz == min(wanted, 900)
    whole = literal(B, sizes, min(wanted, 900))
    # (i, j) and (j, i) have one impact: an odd one out is the first of the two
    assert np.count_nonzero(whole) - W.nnz in (0, 1)
    assert_allclose(W.toarray(), np.where(W.toarray() != 0, whole, 0.0), rtol=1e-4)


def test_words_without_weight_or_without_items_have_no_pairs():
    B = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, -1.0], [5.0, 5.0]], np.float32)
    W = cut_product(B, np.array([1.0, 1.0, 1.0, 0.0], np.float32), 100)
    assert_array_equal(W.toarray() != 0, np.outer([1, 0, 1, 0], [1, 0, 1, 0]))
    assert cut_product(np.zeros((3, 2), np.float32), np.ones(3, np.float32), 4).nnz == 0


@pytest.mark.parametrize("wanted", [7, 100])
def test_threads_change_no_bit(wanted, monkeypatch):
    monkeypatch.setattr(factor_cut, "BLOCK_BYTES", 4 * 50)
    B = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    one, four = (cut_product(B, np.ones(50, np.float32), wanted, n) for n in (1, 4))
    assert_array_equal(one.data, four.data)
    assert_array_equal(one.indices, four.indices)


@given(st.lists(st.integers(-3, 3), max_size=12), st.integers(1, 14))
def test_the_largest_are_as_many_as_wanted_and_of_equal_ones_the_first(values, wanted):
    chosen = largest(np.array(values, np.float32), wanted).tolist()
    in_order = sorted((i for i, v in enumerate(values) if v), key=lambda i: (-abs(values[i]), i))
    assert chosen == sorted(in_order[:wanted])


def test_the_mean_size_of_a_column_is_its_root_mean_square():
    assert_allclose(mean_sizes(csr_array(np.array([[3.0, 0.0], [4.0, 0.0]]))), [np.sqrt(12.5), 0.0], rtol=1e-6)

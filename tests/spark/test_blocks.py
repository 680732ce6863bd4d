from __future__ import annotations

from functools import reduce
from itertools import permutations
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, random_array

from sparserank.errors import ConfigError, DataError
from sparserank.spark.blocks import WeightedSum, compact_csr, csr_bytes, exact_unit, ordered_sum
from sparserank.spark.errors import executor_errors


def some_blocks(count, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    out = []
    for number in range(count):
        W = csr_array(random_array((5, 7), density=0.4, rng=rng, dtype=np.float32))
        W.data = (rng.normal(size=W.nnz) * 10.0 ** rng.uniform(-spread, spread, W.nnz)).astype(np.float32)
        out.append((W, int(rng.integers(1, 1000)), number))
    unit = exact_unit(max(float(np.abs(W.data).max(initial=0.1)) for W, _, _ in out), sum(n for _, n, _ in out))
    return [WeightedSum.of(W, n, unit, {number: n}) for W, n, number in out]


@given(count=st.integers(2, 4), seed=st.integers(0, 10**6), spread=st.floats(0, 3))
def test_blocks_in_any_order_have_the_same_mean_to_the_bit(count, seed, spread):
    blocks = some_blocks(count, seed, spread)
    found = [reduce(add, order).mean() for order in permutations(blocks)]
    for other in found[1:]:
        assert_array_equal(found[0].toarray(), other.toarray())


def test_the_mean_is_weighted_by_steps():
    blocks = some_blocks(3, seed=1)
    total = sum(block.steps for block in blocks)
    wanted = sum(block.steps * block.W.toarray().astype(np.float64) for block in blocks) / total
    found = reduce(add, blocks)
    assert_allclose(found.mean().toarray(), wanted, rtol=1e-6, atol=1e-9)
    assert found.steps == total
    assert found.reports == {block_number: block.steps for block_number, block in enumerate(blocks)}
    assert found.nbytes == sum(csr_bytes(block.W) for block in blocks)


def test_a_block_alone_is_not_rounded():
    (block,) = some_blocks(1, seed=2, spread=20.0)
    assert_array_equal(block.mean().toarray(), block.W.toarray())


def test_entries_that_cancel_out_are_left_out():
    W = csr_array(np.array([[1.5, 0.0]], np.float32))
    unit = exact_unit(1.5, 4)
    assert (WeightedSum.of(W, 2, unit, {0: 0}) + WeightedSum.of(-W, 2, unit, {1: 0})).mean().nnz == 0


def test_weights_without_a_bound_raise_an_error():
    with pytest.raises(ConfigError, match="is eta0 too large"):
        exact_unit(float("inf"), 10)


def test_csr_has_rising_columns_and_narrow_indices():
    W = csr_array((np.ones(2, np.float32), np.array([1, 0], np.int64), np.array([0, 2], np.int64)), shape=(1, 2))
    held = compact_csr(W)
    assert held.indices.tolist() == [0, 1]
    assert held.indices.dtype == np.int32
    assert csr_bytes(held) == 2 * 4 + 2 * 4 + 2 * 4


def test_a_sum_larger_than_a_message_raises_an_error(monkeypatch):
    monkeypatch.setattr("sparserank.spark.blocks.MAX_MESSAGE_BYTES", 10)
    with pytest.raises(ConfigError, match="ask for a lower density"):
        WeightedSum.of(csr_array(np.eye(3, dtype=np.float32)), 1, 1.0, {})


def test_an_ordered_sum_is_that_of_its_numbers_whatever_the_partitions(spark):
    values = [1e16, 1.0, -1e16, 1.0, 3.0, 1e-3, 7.0]
    numbered = list(enumerate(values))
    parts = spark.sparkContext.parallelize(numbered[::-1], 7)
    pairs = [a + b for a, b in zip(values[0:6:2], values[1:6:2], strict=True)] + [values[6]]
    wanted = (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
    assert ordered_sum(parts, fan=2) == wanted
    assert ordered_sum(spark.sparkContext.parallelize([], 2)) is None


def test_an_error_of_an_executor_is_raised_with_its_own_message(spark):
    def refuse(one):
        raise DataError(f"{one} is refused")

    with pytest.raises(DataError, match=r"^7 is refused$"), executor_errors():
        spark.sparkContext.parallelize([7], 1).map(refuse).collect()
    with pytest.raises(ZeroDivisionError), executor_errors():
        print(1 / 0)

"""Rows of W in segments: packing by instructions and by loops, and what is read is what was written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config, njit
from scipy.sparse import csr_array

from sparserank._kernels import instructions
from sparserank._kernels import pair_segments as segments
from sparserank.optim.pair_rows import PairRows

FEW = settings(max_examples=5 if config.DISABLE_JIT else 60, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
THRESHOLDS = st.sampled_from([0.0, 0.01, 0.5]).map(np.float32)


def soft(z, s):
    return np.sign(z) * np.maximum(np.abs(z) - s, np.float32(0.0))


def sparse_numbers(rng, n, share):
    return np.where(rng.random(n) < share, rng.standard_normal(n), 0.0).astype(np.float32)


@njit
def count_and_lowest(mask):
    return instructions.popcount(mask), instructions.lowest_bit(mask)


PACKINGS = [
    (instructions.expand16, instructions.compress16),
    (instructions._expand16_whole, instructions._compress16_whole),
]


@pytest.mark.parametrize(("expand", "compress"), PACKINGS)
@FEW
@given(SEEDS, st.floats(0, 1), THRESHOLDS, THRESHOLDS)
def test_sixteen_numbers_above_the_threshold_are_packed_and_expanded(expand, compress, seed, share, s, more):
    v, now = sparse_numbers(np.random.default_rng(seed), 16, share), np.float32(s + more)
    z = v + np.copysign(s, v)
    smallest = max(now, segments.TINY)
    kept = np.abs(z) > smallest
    w, packed, out = (np.full(48, 9.0, np.float32) for _ in range(3))
    w[16:32] = v
    found = compress(w, 16, s, smallest, now, packed, 3)
    mask = int(found) & 0xFFFF
    assert found >> 16 == kept.sum()
    assert all(mask >> j & 1 for j in np.flatnonzero(kept))
    assert count_and_lowest(mask | 1 << 16)[0] == mask.bit_count() + 1
    assert count_and_lowest(mask | 1 << 16)[1] == (mask & -mask).bit_length() - 1 if mask else 16
    np.testing.assert_allclose(w[16:32], soft(z, now), atol=1e-7)
    expand(packed, 3, mask, np.float32(0.0), out, 16)
    np.testing.assert_array_equal(out[16:32], np.where(kept, z, 0.0))
    expand(packed, 3, mask, s, out, 16)
    np.testing.assert_allclose(out[16:32], soft(np.where(kept, z, 0.0), s), atol=1e-7)
    assert all((array[:3] == 9.0).all() and (array[32:] == 9.0).all() for array in (w, packed, out))


@FEW
@given(SEEDS, st.integers(1, 700), st.floats(0, 1))
def test_rows_of_any_level_give_back_what_was_written(seed, width, share):
    rng = np.random.default_rng(seed)
    W = csr_array(sparse_numbers(rng, (6, width), share))
    rows = PairRows(W, rng.integers(0, len(PairRows(W).head_sizes), 6))
    assert (rows.to_csr() != W).nnz == 0
    assert rows.nonzeros == W.nnz
    for i, row in enumerate(rows.rows):
        block = rows.blocks[i % len(rows.blocks)]
        scratch, columns, _, _ = block.buffers
        segments.read_row(row, np.float32(0.0), rows.head_sizes, *block.memory, scratch, columns, 0)
        np.testing.assert_array_equal(scratch[:width], W[[i]].toarray()[0])
        assert not scratch[width:].any()
        assert sorted(columns[: row["tail"]]) == [j for j in W[[i]].indices if j >= rows.head_sizes[row["level"]]]
        scratch[:] = 0.0


@pytest.mark.parametrize("features", ["", "+avx512f"])
def test_a_chosen_processor_decides_which_instructions_there_are(monkeypatch, features):
    monkeypatch.setattr(config, "DISABLE_JIT", 0)
    monkeypatch.setattr(config, "CPU_NAME", "generic")
    monkeypatch.setattr(config, "CPU_FEATURES", features)
    assert instructions._has_vectors() == bool(features)


@FEW
@given(SEEDS, st.sampled_from((40, 700, 3_000)), st.sampled_from((0.0, 0.002, 0.05, 0.6)), st.floats(0, 0.5))
def test_rows_short_and_long_are_copied_in_any_order_of_columns(seed, width, share, threshold):
    rng = np.random.default_rng(seed)
    W = csr_array(sparse_numbers(rng, (6, width), share))
    rows, order = PairRows(W, rng.integers(0, len(PairRows(W).head_sizes), 6)), rng.permutation(width)
    rows.pending_threshold = threshold
    dense, expected = W.toarray(), np.zeros(W.shape, np.float32)
    expected[:, order] = np.sign(dense) * np.maximum(np.abs(dense) - np.float32(threshold), 0)
    copied = rows.to_csr(order=order)
    np.testing.assert_allclose(copied.toarray(), expected, rtol=1e-6, atol=1e-7)
    assert copied.has_canonical_format
    assert (copied.data != 0).all()

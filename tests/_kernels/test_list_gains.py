"""Discounted gains against the definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from sparserank._kernels.list_gains import gains


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 9))
def test_gains_are_those_of_the_sorted_list(seed, k, m):
    rng = np.random.default_rng(seed)
    k = min(k, m)
    scores = rng.integers(0, 4, (3, m)).astype(np.float32)
    scores[0, 0] = -np.inf
    grades = csr_array(rng.integers(0, 3, (3, m)).astype(np.float32))
    own = rng.integers(-1, m, 3)
    out, best = np.zeros(3), np.zeros(3)
    gains(scores, own, grades.indptr, grades.indices, grades.data, k, out, best)
    discount = 1 / np.log2(np.arange(2, k + 2))
    for i in range(3):
        order = [j for j in np.argsort(-scores[i], kind="stable") if j != own[i] and np.isfinite(scores[i, j])][:k]
        row = grades.toarray()[i]
        assert_allclose(out[i], sum(row[j] * d for j, d in zip(order, discount, strict=False)), atol=1e-12)
        assert_allclose(best[i], np.sort(row)[::-1][:k] @ discount)

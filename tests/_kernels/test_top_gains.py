"""The grades at the first ranks of dense scores, against a sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparserank._kernels.ranking import top_gains


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 9))
def test_grades_are_those_of_the_sorted_list(seed, k, m):
    rng = np.random.default_rng(seed)
    k = min(k, m)
    scores = rng.integers(0, 4, (3, m)).astype(np.float32)
    scores[0, 0] = -np.inf
    grades = csr_array(rng.integers(0, 3, (3, m)).astype(np.float32))
    excluded = rng.integers(-1, m, 3)
    out, ideal = np.zeros((2, 3, k))
    top_gains(scores, excluded, grades.indptr, grades.indices, grades.data, out, ideal)
    for i in range(3):
        order = [j for j in np.argsort(-scores[i], kind="stable") if j != excluded[i] and np.isfinite(scores[i, j])][:k]
        row = grades.toarray()[i]
        assert out[i].tolist() == [*row[order], *[0.0] * (k - len(order))]
        assert ideal[i].tolist() == np.sort(row)[::-1][:k].tolist()

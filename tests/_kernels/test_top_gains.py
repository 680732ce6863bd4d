"""The grades at the first ranks of lists of scores, against a sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparserank._kernels.ranking import top_gains


@given(st.integers(0, 1000), st.integers(1, 6), st.sampled_from([0.1, 1.0]))
def test_grades_are_those_of_the_sorted_list(seed, k, share):
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 30, 4))])
    scores = rng.integers(0, 4, start[-1]).astype(np.float32)
    scores[rng.random(start[-1]) < 0.2] = -np.inf
    grades = (rng.integers(0, 3, start[-1]) * (rng.random(start[-1]) < share)).astype(np.float32)
    out, ideal = np.zeros((2, 4, k))
    top_gains(start, scores, grades, out, ideal)
    for i in range(4):
        s, g = scores[start[i] : start[i + 1]], grades[start[i] : start[i + 1]]
        order = [j for j in np.argsort(-s, kind="stable") if np.isfinite(s[j])][:k]
        assert out[i].tolist() == [*g[order], *[0.0] * (k - len(order))]
        best = np.sort(g)[::-1][:k].tolist()
        assert ideal[i].tolist() == [*best, *[0.0] * (k - len(best))]

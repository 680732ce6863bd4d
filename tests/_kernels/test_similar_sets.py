"""The join of similar sets, against comparing every pair."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from sparserank._kernels.similar_sets import connect_similar

SETS = st.lists(st.frozensets(st.integers(0, 8), min_size=1, max_size=7), max_size=12, unique=True)


def components(n, edges):
    i, j = zip(*edges, strict=True) if edges else ((), ())
    graph = csr_array((np.ones(len(i)), (np.array(i, np.int64), np.array(j, np.int64))), shape=(n, n))
    return connected_components(graph, directed=False)[1]


@given(SETS, st.sampled_from([0.3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 1.0]))
def test_sets_are_connected_as_by_comparing_every_pair(sets, threshold):
    sets = sorted(sets, key=len)
    start = np.append(0, np.cumsum([len(one) for one in sets])).astype(np.int64)
    element = np.array([e for one in sets for e in sorted(one)], np.int32)
    ends, n = np.empty((2, max(len(sets), 1)), np.int64), len(sets)
    found = connect_similar(start, element, 9, threshold, *ends)
    near = [(i, j) for i in range(n) for j in range(i) if len(sets[i] & sets[j]) / len(sets[i] | sets[j]) >= threshold]
    edges = list(zip(*ends[:, :found].tolist(), strict=True))
    assert {(max(edge), min(edge)) for edge in edges} <= set(near)
    assert_array_equal(components(n, edges), components(n, near))

"""Block maxima on a case small enough to run as plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparserank._kernels import block_max
from sparserank.data.records import Documents
from sparserank.search import Index, block_maxima, top_k
from sparserank.search.encoded_query import EncodedQuery


@pytest.mark.parametrize("signed", [False, True])
def test_pruned_search_equals_the_exhaustive_search(monkeypatch, signed):
    for module, name in ((block_maxima, "MIN_DOCUMENTS"), (top_k, "MIN_PRUNED_POSTINGS")):
        monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(top_k, "MIN_PRUNED_POSTINGS_PER_TERM", 0)
    rng, n_docs, terms, words = np.random.default_rng(3), 700, 6, 3
    weights = rng.integers(-2 if signed else 1, 4, (n_docs, 2 * terms)).astype(np.float32)
    weights *= rng.random(weights.shape) < np.tile([0.005, 0.013, 0.3], 4)
    W = csr_array(rng.normal(size=(words, terms)).astype(np.float32))
    own = csr_array(rng.integers(0, 2, (4, 2 * terms)).astype(np.float32))
    queries = EncodedQuery(own, csr_array(rng.random((4, words)).astype(np.float32)), W, 0.5, terms)
    ids = tuple(f"{i:03d}" for i in range(n_docs))
    metadata = tuple({"n": i} for i in range(n_docs))
    index = Index.build(csr_array(weights), Documents(ids, ids, ids, metadata)).without(ids[100:110])
    (blocks,) = (segment.blocks for segment in index.segments)
    assert len(blocks.entries) > 0
    assert len(blocks.levels) > 0
    for k in (1, 7):
        pruned, wanted = (index.top(queries, k, skip=["650"] * 4, plan=plan) for plan in ("query", "exhaustive"))
        assert all(np.array_equal(a, b) for a, b in zip(pruned, wanted, strict=True))
    found, wanted = (
        index.filtered("n<15").top(queries, 7, skip=["003"] * 4, plan=plan) for plan in ("auto", "exhaustive")
    )
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_the_nth_largest_value_counts_positive_values_only():
    values = np.array([3.0, 0.0, 1.0, 2.0], np.float32)
    assert [float(block_max.nth_largest(values, n)) for n in (1, 2, 3)] == [3.0, 2.0, 1.0]
    assert 0.0 < block_max.nth_largest(values, 4) < 1e-40

"""Groups of near-duplicate queries, against the definition written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparserank.text_ranker.query_groups import LARGEST_SHARE, THRESHOLDS, query_groups


def literal_groups(tokens, relevant, threshold):
    """Connected components of "the same relevant documents, or similar tokens", by repeated relabelling."""

    def near(a, b, threshold):
        union = a | b
        return bool(union) and len(a & b) / len(union) >= threshold

    n = len(tokens)
    labels = list(range(n))
    for i in range(n):
        for j in range(n):
            if near(tokens[i], tokens[j], threshold) or near(relevant[i], relevant[j], 1.0):
                labels = [labels[i] if label == labels[j] else label for label in labels]
    return labels


def matrix(sets, width):
    out = np.zeros((len(sets), width), np.float32)
    for row, elements in zip(out, sets, strict=True):
        row[list(elements)] = 1.0
    return csr_array(out)


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_the_connected_components_of_near_duplicates(seed):
    rng = np.random.default_rng(seed)
    words = [set(rng.choice(30, rng.integers(0, 7), replace=False).tolist()) for _ in range(40)]
    words += [set(words[i]) for i in rng.integers(0, 40, 6)]
    relevant = [set(rng.choice(12, rng.integers(0, 3), replace=False).tolist()) for _ in words]
    found = query_groups(matrix(words, 30), matrix(relevant, 12)).tolist()
    for threshold in THRESHOLDS:
        expected = literal_groups(words, relevant, threshold)
        if max(expected.count(label) for label in expected) <= LARGEST_SHARE * len(words):
            break
    assert same_partition(found, expected)


def test_a_hundred_thousand_equal_queries_are_one_group():
    tokens = csr_array((np.ones(200_000, np.float32), np.tile([3, 5], 100_000), np.arange(0, 200_001, 2)))
    assert set(query_groups(tokens).tolist()) == {0}


def test_queries_without_tokens_are_not_alike():
    assert query_groups(csr_array((3, 4), dtype=np.float32)).tolist() == [0, 1, 2]


def test_declared_groups_stay_together_and_join_near_duplicates():
    tokens = matrix([{0}, {1}, {2}, {3}, {3, 4}, {5}, {6}, {7}, {8}, {9}], 10)
    declared = np.array([7, -1, 7, 7, -1, -1, 2, -1, -1, 2])
    groups = query_groups(tokens, declared=declared).tolist()
    assert same_partition(groups, [0, 1, 0, 0, 0, 2, 3, 4, 5, 3])

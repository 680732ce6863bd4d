"""Groups of near-duplicate queries, so that no query is held out while its near-duplicate trains.

Two queries are near-duplicates if they have the same relevant documents, or if the Jaccard similarity of their token
sets reaches a threshold. Groups are the connected components of that relation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Labels = NDArray[np.int64]

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Jaccard similarities of token sets, tried in this order until no group is too large."""
LARGEST_SHARE = 0.25
"""A group with a larger share of the queries comes from chains of weak similarities: the next threshold is tried."""


def query_groups(tokens: csr_array, relevant: csr_array | None = None, declared: Labels | None = None) -> Labels:
    """One group number per query; its tokens and relevant documents are the columns of its stored entries.

    declared : groups to keep together in any case; a number below 0 is no group.

    >>> from scipy.sparse import csr_array
    >>> tokens = np.eye(8)
    >>> tokens[1, 0] = 1.0  # half of the tokens of queries 0 and 1 are shared
    >>> query_groups(csr_array(tokens)).tolist()
    [0, 0, 1, 2, 3, 4, 5, 6]
    """
    n = int(tokens.shape[0])
    edges = [_equal_rows(tokens)] + ([] if relevant is None else [_equal_rows(relevant)])
    distinct = np.setdiff1d(np.flatnonzero(np.diff(tokens.indptr)), edges[0][1])
    labels = np.arange(n)
    for threshold in THRESHOLDS:
        first, second = _connect_similar(tokens[distinct], threshold)
        labels = _components(n, *edges, (distinct[first], distinct[second]))
        if n == 0 or np.bincount(labels).max() <= LARGEST_SHARE * n:
            break
    return labels if declared is None else _components(n, _same_group(labels), _same_group(declared))


def _components(n: int, *edges: tuple[Labels, Labels]) -> Labels:
    """The connected components of n queries."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    i, j = (np.concatenate(ends) for ends in zip(*edges, strict=True))
    graph = csr_array((np.ones(len(i), np.int8), (i, j)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _same_group(declared: Labels) -> tuple[Labels, Labels]:
    """The first query of each declared group, and each query of the group."""
    queries = np.flatnonzero(declared >= 0)
    _, first, group = np.unique(declared[queries], return_index=True, return_inverse=True)
    return queries[first][group], queries


def _sets(X: csr_array) -> csr_array:
    """X with 1 for every stored entry, columns in order."""
    from scipy.sparse import csr_array

    X = csr_array((np.ones(X.nnz, np.float32), X.indices, X.indptr), shape=X.shape)
    X.sort_indices()
    return X


def _equal_rows(X: csr_array) -> tuple[Labels, Labels]:
    """Every nonempty row that repeats an earlier one: the first row like it, and the row itself."""
    X = _sets(X)
    seen: dict[bytes, int] = {}
    spans = enumerate(zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True))
    first = np.array([seen.setdefault(X.indices[a:b].tobytes(), i) for i, (a, b) in spans], np.int64)
    repeats = np.flatnonzero((first != np.arange(len(first))) & (np.diff(X.indptr) > 0))
    return first[repeats], repeats


def _connect_similar(X: csr_array, threshold: float) -> tuple[Labels, Labels]:
    """Pairs of rows that connect all rows with a Jaccard similarity of at least `threshold`; no row is empty."""
    from .._kernels.similar_sets import connect_similar

    size = np.diff(X.indptr).astype(np.int64)
    by_size = np.argsort(size, kind="stable")
    rarity = np.empty(X.shape[1], np.int32)
    rarity[np.argsort(np.bincount(X.indices, minlength=X.shape[1]), kind="stable")] = np.arange(X.shape[1])
    row = np.repeat(np.argsort(by_size), size)
    element = rarity[X.indices]
    element = element[np.lexsort((element, row))]
    start = np.append(0, np.cumsum(size[by_size]))
    ends = np.empty((2, max(len(size), 1)), np.int64)
    n_edges = connect_similar(start, element, X.shape[1], threshold, *ends)
    first, second = by_size[ends[:, :n_edges]]
    return first, second

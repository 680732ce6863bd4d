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
_ROWS_AT_ONCE = 2000
_PAIRS_AT_ONCE = 200_000


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
    first, second, similarity = _similar_sets(_sets(tokens[distinct]), THRESHOLDS[0])
    labels = np.arange(n)
    for threshold in THRESHOLDS:
        near = similarity >= threshold
        labels = _components(n, *edges, (distinct[first[near]], distinct[second[near]]))
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


def _similar_sets(X: csr_array, threshold: float) -> tuple[Labels, Labels, NDArray[np.float64]]:
    """Pairs of rows, all different, with a Jaccard similarity of at least `threshold`, and that similarity.

    Two sets of similarity t share an element among the ⌊(1 − t)·size⌋ + 1 rarest of each, so only those are matched.
    """
    size, prefix = np.diff(X.indptr), _rarest(X, threshold)
    similar: list[tuple[Labels, Labels, NDArray[np.float64]]] = []
    for at in range(0, X.shape[0], _ROWS_AT_ONCE):
        candidates = (prefix[at : at + _ROWS_AT_ONCE] @ prefix.T).tocoo()
        i, j = candidates.row.astype(np.int64) + at, candidates.col.astype(np.int64)
        close = (i < j) & (np.minimum(size[i], size[j]) >= threshold * np.maximum(size[i], size[j]))
        i, j = i[close], j[close]
        for k in range(0, len(i), _PAIRS_AT_ONCE):
            a, b = i[k : k + _PAIRS_AT_ONCE], j[k : k + _PAIRS_AT_ONCE]
            both = np.asarray(X[a].multiply(X[b]).sum(axis=1), np.float64).ravel()
            similarity = both / (size[a] + size[b] - both)
            near = similarity >= threshold
            similar.append((a[near], b[near], similarity[near]))
    if not similar:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    first, second, similarity = (np.concatenate(part) for part in zip(*similar, strict=True))
    return first, second, similarity


def _rarest(X: csr_array, threshold: float) -> csr_array:
    """The rarest elements of each set, of which two sets this similar share at least one."""
    from scipy.sparse import csr_array

    size, n = np.diff(X.indptr), X.shape[1]
    rarity = np.empty(n, np.int64)
    rarity[np.argsort(np.bincount(X.indices, minlength=n), kind="stable")] = np.arange(n)
    row = np.repeat(np.arange(X.shape[0]), size)
    order = np.lexsort((rarity[X.indices], row))
    is_rare = np.arange(X.nnz) - X.indptr[:-1][row] < (size - np.ceil(threshold * size) + 1)[row]
    return csr_array(
        (np.ones(int(is_rare.sum()), np.float32), (row[is_rare], X.indices[order][is_rare])), shape=X.shape
    )

"""Class-labelled data: every item is a query, all others are ranked, and those of its class are relevant.

A triple (query, d⁺ of its class, d⁻ of another class) is wrong if s(d⁺) ≤ s(d⁻). All triples are counted; none are
sampled. `error` is the mean over queries of the share of a query's triples that are wrong. `error_of_triples` is the
share of all triples that are wrong, so a query of a large class counts more. Scores are computed in blocks of rows, at
most `WORKERS` blocks of about `BLOCK_BYTES` at once, so memory grows with the number of items and not with its square.
Rows are measured one by one, so the number of threads and the size of the blocks do not change the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..deprecated import renamed_parameters
from ..errors import DataError
from ..validation import count, threads
from .items import Floats, as_single, tie_ranks
from .significance import Estimate, estimate_ratios

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BlockScores: TypeAlias = Callable[[int, int], NDArray[Any]]
"""block_scores(start, stop)[r, j] = the score of item j for query start + r; called from several threads."""

BLOCK_BYTES = 8 << 20
WORKERS = 8


@dataclass(frozen=True)
class ClassEvaluation:
    """MAP and errors of class-labelled data.

    Attributes
    ----------
    map, error, error_of_triples : Estimate
        Mean average precision, the mean error over queries and the share of all triples that are wrong.
    queries : ndarray of int
        The items that are queries: those with another item in their class.
    average_precisions, errors : ndarray
        The values of each query.
    left_out : int
        Items that are alone in their class: no queries, but ranked for the others.
    """

    map: Estimate
    error: Estimate
    error_of_triples: Estimate
    queries: NDArray[np.int64]
    average_precisions: Floats
    errors: Floats
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        estimates = {name: getattr(self, name).to_dict() for name in ("map", "error", "error_of_triples")}
        return estimates | {"queries": len(self.queries), "left_out": self.left_out}


@renamed_parameters({"seed": "random_state"})
def evaluate_classes(
    block_scores: BlockScores,
    y: ArrayLike,
    *,
    ids: Sequence[str] | None = None,
    block_rows: int | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> ClassEvaluation:
    """Measure a scorer on items with class labels.

    Parameters
    ----------
    block_scores : callable
        ``block_scores(start, stop)[r, j]`` is the score of item j for query start + r. Several threads call it.
    y : array-like of shape (n_items,)
        Class labels.
    ids : sequence of str, default=None
        Item ids, which break ties. None means the item numbers, as text.
    block_rows : int, default=None
        Queries per block. None means blocks of 8 MB.
    n_jobs : int, default=None
        Threads. None means all cores.
    random_state : int, default=0
        Seed of the intervals.

    Examples
    --------
    >>> scores = np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    >>> evaluate_classes(lambda start, stop: scores[start:stop], [5, 5, 9]).error.value
    0.5
    """
    label, member, member_start = _classes(y)
    n = len(label)
    tie = tie_ranks(n, ids)
    rows = default_block_rows(n) if block_rows is None else count("block_rows", block_rows, low=1)
    precision, error = np.full(n, np.nan), np.full(n, np.nan)

    def measure(start: int) -> None:
        from .._kernels.ranking import class_rows

        stop = min(start + rows, n)
        block = np.asarray(block_scores(start, stop))
        if block.shape != (stop - start, n):
            raise DataError(f"block_scores({start}, {stop}) must have shape {(stop - start, n)}; got {block.shape}")
        single = np.ascontiguousarray(as_single(block))
        bad = class_rows(single.view(np.uint32), start, label, member, member_start, tie, precision, error)
        if bad >= 0:
            raise DataError(f"the score of item {bad % n} for query {start + bad // n} is not a number")

    workers = min(threads(n_jobs), WORKERS, -(-n // rows))
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(measure, range(0, n, rows)):
            pass
    others = np.bincount(label)[label] - 1
    return _evaluation(precision, error, others * (n - 1 - others), count("random_state", random_state))


def default_block_rows(n: int) -> int:
    """Rows of n float32 scores that fill a block; a function of n alone, so that threads change nothing."""
    return max(1, min(n, BLOCK_BYTES // (4 * n)))


def bilinear_blocks(Q: Any, W: Any, D: Any) -> BlockScores:
    """Return a function that computes blocks of scores qᵀWd in float32, for `evaluate_classes`.

    Parameters
    ----------
    Q : array or sparse matrix of shape (n_queries, n_query_features)
        Query vectors.
    W : array, sparse matrix or None
        Weights of shape (n_query_features, n_features). None means the identity.
    D : array or sparse matrix of shape (n_items, n_features)
        Item vectors.

    Examples
    --------
    >>> bilinear_blocks(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2))(1, 2)
    array([[3., 4.]], dtype=float32)
    """
    left, right = _single_matrix(Q), _single_matrix(D)
    weights = None if W is None else _single_matrix(W)
    shapes = (left.shape[1], right.shape[1])
    if (weights.shape if weights is not None else (shapes[0], shapes[0])) != shapes:
        remedy = f"W must be {shapes[0]} × {shapes[1]}" if weights is not None else "without W both need the same"
        raise DataError(f"Q has {shapes[0]} columns and D {shapes[1]}: {remedy}")
    transposed = right.T if isinstance(right, np.ndarray) else right.T.tocsr()

    def block_scores(start: int, stop: int) -> NDArray[Any]:
        queries = left[start:stop] if weights is None else left[start:stop] @ weights
        return _dense_product(queries, right, transposed)

    return block_scores


def _dense_product(queries: Any, right: Any, transposed: Any) -> NDArray[Any]:
    """queries @ right.T, dense; the product of two sparse matrices is fast only if the first is very sparse."""
    if isinstance(queries, np.ndarray) or queries.nnz > 0.1 * np.prod(queries.shape):
        full = queries if isinstance(queries, np.ndarray) else queries.toarray()
        return np.asarray(full @ transposed if isinstance(right, np.ndarray) else (right @ full.T).T)
    if isinstance(right, np.ndarray):
        return np.asarray(queries @ transposed)
    from .._kernels.ranking import sparse_rows

    queries.sort_indices()
    arrays = (array for matrix in (queries, transposed) for array in (matrix.indptr, matrix.indices, matrix.data))
    scores: NDArray[Any] = sparse_rows(*arrays, right.shape[0])
    return scores


def _single_matrix(matrix: Any) -> NDArray[np.float32] | csr_array:
    from scipy.sparse import csr_array, issparse

    if issparse(matrix):
        single = csr_array(matrix, dtype=np.float32)
        single.sort_indices()
        return single
    return np.ascontiguousarray(matrix, dtype=np.float32)


def _classes(y: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Labels 0, 1, …; the items sorted by label; where each label's items start."""
    classes = np.asarray(y)
    if classes.ndim != 1 or len(classes) == 0:
        raise DataError(f"y must be a list of classes, one per item; got shape {classes.shape}")
    _, label, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    if len(sizes) == 1:
        raise DataError("all items are of one class: every ranking is perfect")
    if sizes.max() == 1:
        raise DataError("every item is alone in its class: no query has a relevant item")
    start = np.concatenate(([0], np.cumsum(sizes)))
    return label.astype(np.int64), np.argsort(label, kind="stable").astype(np.int64), start.astype(np.int64)


def _evaluation(precision: Floats, error: Floats, triples: NDArray[np.int64], random_state: int) -> ClassEvaluation:
    """All measures; query q has triples[q] triples."""
    queries = np.flatnonzero(~np.isnan(precision))
    precision_, error_, counts = precision[queries], error[queries], triples[queries].astype(np.float64)
    ones = np.ones(len(queries))
    ratios = [(precision_, ones), (error_, ones), (error_ * counts, counts)]
    map_, mean_error, of_triples = estimate_ratios(ratios, random_state=random_state)
    left_out = len(precision) - len(queries)
    return ClassEvaluation(map_, mean_error, of_triples, queries, precision_, error_, left_out)

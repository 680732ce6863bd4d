"""Class-labelled data: every item is a query, all others are ranked, and those of its class are relevant.

A triple (query, d⁺ of its class, d⁻ of another) is wrong if s(d⁺) ≤ s(d⁻). All triples are counted, none are sampled,
and there are two means: `error` is the mean over queries of the share of a query's triples that are wrong;
`error_of_triples` is the share of all triples that are wrong, to which a query of a large class contributes more. The
scores are asked for in blocks of rows, so that memory grows with the number of items and not with its square: at most
`WORKERS` blocks of about `BLOCK_BYTES` are alive at once. Rows are measured one by one, so the number of threads and
the size of the blocks change no bit of the result (as far as `block_scores` gives the same scores).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError
from ..validation import count, threads
from .intervals import Estimate, Floats, ratio_estimates
from .measures import as_single, tie_ranks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BlockScores: TypeAlias = Callable[[int, int], NDArray[Any]]
"""block_scores(start, stop)[r, j] = the score of item j for query start + r; called from several threads."""

BLOCK_BYTES = 8 << 20
WORKERS = 8


@dataclass(frozen=True)
class ClassEvaluation:
    """MAP and errors with their 95 % intervals over queries; query queries[i] has the AP and the error at place i.

    `error` is the mean of `errors` over queries; `error_of_triples` is the share of all triples that are wrong.

    An item that is alone in its class has nothing to find: it is no query (but is ranked for the others). There are
    `left_out` of these.
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
        return {
            "map": self.map.to_dict(),
            "error": self.error.to_dict(),
            "error_of_triples": self.error_of_triples.to_dict(),
            "queries": len(self.queries),
            "left_out": self.left_out,
        }


def evaluate_classes(
    block_scores: BlockScores,
    y: ArrayLike,
    *,
    ids: Sequence[str] | None = None,
    block_rows: int | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> ClassEvaluation:
    """Measure a scorer on items of classes y; ties go by `ids`, or by the items' numbers as text.

    >>> scores = np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    >>> evaluate_classes(lambda start, stop: scores[start:stop], [5, 5, 9]).to_dict()["error"]["value"]
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
        single = np.ascontiguousarray(as_single(_block(block_scores, start, stop, n)))
        bad = class_rows(single.view(np.uint32), start, label, member, member_start, tie, precision, error)
        if bad >= 0:
            raise DataError(f"the score of item {bad % n} for query {start + bad // n} is not a number")

    workers = min(threads(n_jobs), WORKERS, -(-n // rows))
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(measure, range(0, n, rows)):
            pass
    others = np.bincount(label)[label] - 1
    return _evaluation(precision, error, others * (n - 1 - others), count("seed", seed))


def default_block_rows(n: int) -> int:
    """Rows of n float32 scores that fill a block; it depends on n alone, so that threads change nothing."""
    return max(1, min(n, BLOCK_BYTES // (4 * n)))


def bilinear_blocks(Q: Any, W: Any, D: Any) -> BlockScores:
    """Scores qᵀWd in float32 for `evaluate_classes`; Q, W and D are sparse or dense, W None for the identity.

    >>> bilinear_blocks(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2))(1, 2)
    array([[3., 4.]], dtype=float32)
    """
    left, right = _single_matrix(Q), _single_matrix(D)
    weights = None if W is None else _single_matrix(W)
    shapes = (left.shape[1], right.shape[1])
    if (weights.shape if weights is not None else (shapes[0], shapes[0])) != shapes:
        wanted = f"W must be {shapes[0]} × {shapes[1]}" if weights is not None else "without W both need the same"
        raise DataError(f"Q has {shapes[0]} columns and D {shapes[1]}: {wanted}")
    turned = right.T if isinstance(right, np.ndarray) else right.T.tocsr()

    def block_scores(start: int, stop: int) -> NDArray[Any]:
        queries = left[start:stop] if weights is None else left[start:stop] @ weights
        return _times(queries, right, turned)

    return block_scores


def _times(queries: Any, right: Any, turned: Any) -> NDArray[Any]:
    """queries @ right.T, dense. A product of two sparse matrices is quick only while the first is really sparse."""
    if isinstance(queries, np.ndarray) or queries.nnz > 0.1 * np.prod(queries.shape):
        full = queries if isinstance(queries, np.ndarray) else queries.toarray()
        return np.asarray(full @ turned if isinstance(right, np.ndarray) else (right @ full.T).T)
    if isinstance(right, np.ndarray):
        return np.asarray(queries @ turned)
    from .._kernels.ranking import sparse_rows

    queries.sort_indices()
    scores: NDArray[Any] = sparse_rows(
        queries.indptr, queries.indices, queries.data, turned.indptr, turned.indices, turned.data, right.shape[0]
    )
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
        raise DataError(f"y must be a list of classes, one an item; got shape {classes.shape}")
    _, label, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    if len(sizes) == 1:
        raise DataError("all items are of one class: there is nothing to tell apart")
    if sizes.max() == 1:
        raise DataError("every item is alone in its class: there is nothing to find")
    start = np.concatenate(([0], np.cumsum(sizes)))
    return label.astype(np.int64), np.argsort(label, kind="stable").astype(np.int64), start.astype(np.int64)


def _block(block_scores: BlockScores, start: int, stop: int, n: int) -> NDArray[Any]:
    block = np.asarray(block_scores(start, stop))
    if block.shape != (stop - start, n):
        raise DataError(f"block_scores({start}, {stop}) must have shape {(stop - start, n)}; got {block.shape}")
    return block


def _evaluation(precision: Floats, error: Floats, triples: NDArray[np.int64], seed: int) -> ClassEvaluation:
    """All measures; query q has triples[q] triples."""
    queries = np.flatnonzero(~np.isnan(precision))
    found, wrong, counts = precision[queries], error[queries], triples[queries].astype(np.float64)
    ones = np.ones(len(queries))
    map_, error_, of_triples = ratio_estimates([(found, ones), (wrong, ones), (wrong * counts, counts)], seed=seed)
    return ClassEvaluation(
        map=map_,
        error=error_,
        error_of_triples=of_triples,
        queries=queries,
        average_precisions=found,
        errors=wrong,
        left_out=len(precision) - len(queries),
    )

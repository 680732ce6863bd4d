"""The ridge solution of a list problem in closed form. It has two forms, and each side may use either:

    W = Qᵀ (Q Qᵀ + a V⁻¹)⁻¹ Y (D Dᵀ + b I)⁻¹ D          from items: queries, documents
      = (QᵀVQ + a I)⁻¹ QᵀVYD (DᵀD + b I)⁻¹              from words: query words, document words

A side uses the form with the smaller Gram matrix. If both are larger than `max_size`, the side uses its `max_size`
heaviest words, and the other words have no pairs. W is computed in blocks of rows, which are pruned as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..thread_pool import map_in_threads
from .document_source import DocumentSource
from .penalties import Ridge
from .problems import ListProblem, Matrix, compute_squared_norms, csr_arrays
from .pruning import RowPruning
from .row_blocks import LazyRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RowBlocks = Iterator[tuple[NDArray[np.intp], Matrix]]
"""Row numbers of W, and those rows, dense."""
BLOCK_ROWS = 64
"""Rows of W in a block, which one thread makes."""
MAX_SIZE = 12_000
"""The largest Gram matrix of a side (576 MB)."""
ROUNDING = 1.001
"""A bound of a row is larger by this factor, so that rounding cannot hide a pair."""
MAX_PRODUCT = 1 << 28
"""Numbers of M D, dense, up to which it is multiplied before the rows of W are made (1 GB)."""


@dataclass(frozen=True)
class Side:
    """One side of the closed form: the rows X of queries or documents.

    weight : v of each row; None is 1 each.
    words : the columns that the Gram matrix XᵀVX has; None: the Gram matrix is X Xᵀ.
    """

    X: csr_array
    weight: NDArray[np.float64] | None = None
    words: NDArray[np.intp] | None = None
    _factors: dict[float, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, X: csr_array, weight: NDArray[np.float64] | None = None, max_size: int = MAX_SIZE) -> Side:
        """Choose the form with the smaller Gram matrix; beyond `max_size`, the heaviest words."""
        norms = compute_squared_norms(X, weight)
        live = np.flatnonzero(norms)
        if X.shape[0] <= min(len(live), max_size):
            return cls(X, weight)
        heaviest = np.argsort(-norms[live], kind="stable")[:max_size]
        return cls(X, weight, np.sort(live[heaviest]))

    def __len__(self) -> int:
        return int(self.X.shape[0]) if self.words is None else len(self.words)

    @cached_property
    def weighted(self) -> csr_array:
        """V X at the words, or X."""
        from scipy.sparse import csr_array

        X = self.X if self.words is None else self.X[:, self.words]
        if self.words is None or self.weight is None:
            return X
        return csr_array(X.multiply(self.weight[:, None])).astype(np.float32)

    def compute_gram(self, threads: int | None = None) -> Matrix:
        """X Xᵀ, or XᵀVX at the words."""
        if isinstance(self.X, DocumentSource):
            return self.X.gram(self.words)
        if self.words is None:
            return compute_gram(self.X, threads=threads)
        return transposed_product(self.X[:, self.words], self.weighted, threads)

    def factorize(self, ridge: float) -> Any:
        """The Cholesky factor of X Xᵀ + r V⁻¹, or of XᵀVX + r I; it is kept for the next solve with this ridge."""
        if ridge not in self._factors:
            self._factors.clear()
            self._factors[ridge] = factorize(self.compute_gram(), self.ridge_diagonal(ridge), copy=False)
        return self._factors[ridge]

    def ridge_diagonal(self, ridge: float) -> float | NDArray[np.float64]:
        """r V⁻¹, or r."""
        return ridge if self.words is not None or self.weight is None else ridge / self.weight

    def project(self, X: csr_array) -> Matrix:
        """X selfᵀ, or X at the words, dense: the factor that applies the solution of this side to other rows."""
        return compute_gram(X, self.X) if self.words is None else np.asarray(X[:, self.words].toarray(), np.float32)

    @property
    def ones(self) -> Matrix:
        """1 for each item, or XᵀV1 at the words."""
        if self.words is None:
            return np.ones(len(self), np.float32)
        if isinstance(self.X, DocumentSource):
            return self.X.sums(self.words)
        return np.asarray(self.weighted.sum(axis=0), dtype=np.float32).ravel()

    def gather(self, Y: Any) -> Any:
        """Y, or XᵀVY at the words, for the left side; the right side passes Yᵀ."""
        return Y if self.words is None else self.weighted.T @ Y


@dataclass(frozen=True)
class ClosedForm:
    """The documents' side, kept for any number of solves with other queries; `max_size` bounds both sides."""

    D: csr_array
    max_size: int = MAX_SIZE

    @cached_property
    def documents(self) -> Side:
        """The side of the documents."""
        return Side.of(self.D, max_size=self.max_size)

    def iterate_rows(self, problem: ListProblem, ridge: Ridge, Y: Matrix | None = None) -> RowBlocks:
        """The rows of W, without those of words that occur in no query. Y : other targets than the problem's, dense."""
        left, M = self._solve(problem, ridge, Y)
        return iterate_rows(left, self.documents, M, problem.shape[1])

    def compute_weights(self, problem: ListProblem, ridge: Ridge, prune: RowPruning) -> csr_array:
        """W, pruned block by block."""
        left, M = self._solve(problem, ridge)
        D = self.documents.X
        if isinstance(D, DocumentSource) and self.documents.words is None:
            return D.prune_products(left, M, replace(prune, report=None))
        words = self.documents.words
        importance = prune.importance.columns if words is None else prune.importance.columns[words]
        return prune(make_row_blocks(left, self.documents, M, importance=importance), words)

    def _solve(self, problem: ListProblem, ridge: Ridge, Y: Matrix | None = None) -> tuple[Side, Matrix]:
        """The side of the queries, and the middle matrix solved for both sides."""
        left, right = Side.of(problem.Q, problem.weight, self.max_size), self.documents
        M = solve_factorized(left.factorize(ridge.query), compute_middle(left, right, problem, Y))
        M = solve_factorized(right.factorize(ridge.document), np.ascontiguousarray(M.T))
        return left, M.T


def compute_middle(left: Side, right: Side, problem: ListProblem, Y: Matrix | None = None) -> Matrix:
    """The middle matrix between the two sides: Y, QᵀVY, YD or QᵀVYD, dense, with the mean of Y subtracted."""

    if Y is not None:
        return np.asarray(right.gather(left.gather(Y).T).T, np.float32, order="C")
    middle = multiply_targets(None if left.words is None else left.weighted, problem.targets, right)
    middle -= np.float32(problem.target_mean) * np.outer(left.ones, right.ones)
    return np.asarray(middle, np.float32)


def multiply_targets(left: csr_array | None, targets: csr_array, right: Side, threads: int | None = None) -> Matrix:
    """leftᵀ Y, or leftᵀ Y D at the words of the right side, dense; left is 1 if it is None."""
    from scipy.sparse import csr_array

    if isinstance(right.X, DocumentSource) and right.words is not None:
        return right.X.middle(left, targets, right.words)
    Y_D = targets if right.words is None else targets @ right.X[:, right.words]
    return csr_array(Y_D).toarray() if left is None else transposed_product(left, Y_D, threads)


def make_row_blocks(
    left: Side, right: Side, M: Matrix, part: tuple[int, int] = (0, 1), importance: Matrix | None = None
) -> Iterator[LazyRows]:
    """The rows of W = Qᵀ M D, or part i of n of these rows, in blocks that are made when they are needed.

    A side of words has its rows or columns in M already. The blocks have the columns of `right.words` alone.
    importance : of the columns; with it, blocks have bounds where that saves work.
    """
    from .._kernels.row_pruning import times_columns, times_dense

    by_word = left.X.T.tocsr() if left.words is None else None
    live = np.flatnonzero(np.diff(by_word.indptr)) if by_word is not None else left.words
    columns = csr_arrays(right.X.tocsc()) if right.words is None else None
    width = int(right.X.shape[1]) if right.words is None else len(right.words)
    M = np.ascontiguousarray(M)
    assert live is not None
    if columns is not None and by_word is not None and len(M) < len(live) and len(M) * width <= MAX_PRODUCT:
        product = np.empty((len(M), width), np.float32)  # Qᵀ (M D): M D has fewer rows than Qᵀ M
        for at in range(0, len(M), BLOCK_ROWS):
            times_columns(np.ascontiguousarray(M[at : at + BLOCK_ROWS].T), *columns, product[at : at + BLOCK_ROWS])
        M, columns = product, None

    def make(some: NDArray[np.intp]) -> Matrix:
        block = M[np.searchsorted(live, some)] if by_word is None else np.empty((len(some), M.shape[1]), np.float32)
        if by_word is not None:
            times_dense(*csr_arrays(by_word[some]), M, block)
        if columns is not None:
            out = np.empty((len(some), width), np.float32)
            times_columns(np.ascontiguousarray(block.T), *columns, out)
            block = out
        return block

    bounds = None
    if importance is not None and by_word is not None and columns is None:  # |Σ x m| ≤ Σ |x| |m|
        largest = np.array([np.max(np.abs(row) * importance, initial=0.0) for row in M], np.float64)
        bounds = ROUNDING * (abs(by_word[live]) @ largest)

    def block(at: int) -> LazyRows:
        span = slice(at, at + BLOCK_ROWS)
        return LazyRows(live[span], make, None if bounds is None else bounds[span])

    return map(block, range(part[0] * BLOCK_ROWS, len(live), part[1] * BLOCK_ROWS))


def iterate_rows(left: Side, right: Side, M: Matrix, width: int) -> RowBlocks:
    """The rows of W = Qᵀ M D, with all columns."""
    for lazy in make_row_blocks(left, right, M):
        some, block = lazy.make_all()
        if right.words is not None:
            rows = np.zeros((len(some), width), np.float32)
            rows[:, right.words] = block
            block = rows
        yield some, block


def compute_gram(X: Any, other: Any = None, threads: int | None = None) -> Matrix:
    """X Xᵀ, or X otherᵀ, dense; sums are in float64 and do not depend on the number of threads."""
    return transposed_product(X.T, (X if other is None else other).T, threads)


def transposed_product(A: Any, B: Any, threads: int | None = None) -> Matrix:
    """Aᵀ B, dense."""
    from scipy.sparse import csc_array, csr_array

    from .._kernels import products

    threads = validation.threads(threads)
    A, B, out = csc_array(A), csr_array(B), np.empty((A.shape[1], B.shape[1]), np.float32)
    cuts = np.searchsorted(A.indptr, np.linspace(0, A.indptr[-1], 8 * threads + 1)[1:-1])
    bounds = pairwise(np.unique([0, *cuts.tolist(), A.shape[1]]).tolist())
    left, right = csr_arrays(A), csr_arrays(B)
    map_in_threads(lambda bound: products.transposed_product(*bound, *left, *right, out), bounds, threads)
    return out


def factorize(K: Matrix, ridge: Any, copy: bool = True) -> Any:
    """The Cholesky factor of K + ridge · I (or K + diag(ridge)); without a copy it overwrites K."""
    from scipy.linalg import cho_factor

    K = K.copy() if copy else K
    K[np.diag_indices(len(K))] += np.asarray(ridge, dtype=np.float32)
    return cho_factor(K, overwrite_a=True, check_finite=False)


def solve_factorized(factor: Any, Y: Matrix) -> Matrix:
    """(K + ridge · I)⁻¹ Y"""
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve(factor, Y, check_finite=False), dtype=np.float32)

"""The ridge solution of a list problem in closed form:

    W = Qᵀ (Q Qᵀ + a V⁻¹)⁻¹ Y (D Dᵀ + b I)⁻¹ D

Only the two Gram matrices are dense. W is made some rows at a time and pruned on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .penalties import Ridge
from .problems import ListProblem, Matrix, compute_squared_norms

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RowBlocks = Iterator[tuple[NDArray[np.intp], Matrix]]
"""Row numbers of W, and those rows, dense."""
BLOCK_ROWS = 256
"""Rows of W that are made at a time."""
LARGEST_GRAM = 20_000
"""Queries or documents beyond which a Gram matrix is too large (1.6 GB); pairs are then found by their first step."""


@dataclass(frozen=True)
class ClosedForm:
    """Documents; their Gram matrix is computed once for any number of solves."""

    D: csr_array

    @cached_property
    def gram(self) -> Matrix:
        """D Dᵀ"""
        return compute_gram(self.D)

    def factorize(self, ridge_document: float) -> Any:
        """The Cholesky factor of D Dᵀ + b I."""
        return factorize(self.gram, ridge_document)

    def solve_duals(self, problem: ListProblem, ridge: Ridge, Y: Matrix | None = None) -> Matrix:
        """A = (Q Qᵀ + a V⁻¹)⁻¹ Y (D Dᵀ + b I)⁻¹, queries × documents: W = Qᵀ A D. Y: the targets, or any other."""
        Y = problem.dense_targets() if Y is None else Y
        left = solve_factorized(factorize(compute_gram(problem.Q), ridge.query / problem.query_weights), Y)
        return np.ascontiguousarray(solve_factorized(self.factorize(ridge.document), np.ascontiguousarray(left.T)).T)


def compute_gram(X: Any, other: Any = None) -> Matrix:
    """X Xᵀ, or X otherᵀ."""
    return np.asarray((X @ (X if other is None else other).T).toarray(), dtype=np.float32)


def factorize(K: Matrix, ridge: float | NDArray[np.float64]) -> Any:
    """The Cholesky factor of K + ridge · I (or K + diag(ridge))."""
    from scipy.linalg import cho_factor

    K = K.copy()
    K[np.diag_indices(len(K))] += np.asarray(ridge, dtype=np.float32)
    return cho_factor(K, overwrite_a=True, check_finite=False)


def solve_factorized(factor: Any, Y: Matrix) -> Matrix:
    """(K + ridge · I)⁻¹ Y"""
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve(factor, Y, check_finite=False), dtype=np.float32)


def iterate_weight_rows(problem: ListProblem, duals: Matrix) -> RowBlocks:
    """The rows of W = Qᵀ A D; rows of words that no query has are left out."""
    by_word, columns = problem.Q.T.tocsr(), problem.D.T.tocsr()
    for some in _live_blocks(by_word):
        yield some, np.ascontiguousarray((columns @ (by_word[some] @ duals).T).T)


def iterate_gradient_rows(problem: ListProblem) -> RowBlocks:
    """The rows of Qᵀ V Y D, minus half the gradient at W = 0: no Gram matrix is needed."""
    by_word, D, mean = problem.weighted_queries.T.tocsr(), problem.D, np.float32(problem.target_mean)
    words, documents = np.asarray(by_word.sum(axis=1)).ravel(), np.asarray(D.sum(axis=0)).ravel()
    for some in _live_blocks(by_word):
        rows = ((by_word[some] @ problem.targets) @ D).toarray() - mean * np.outer(words[some], documents)
        yield some, np.asarray(rows, dtype=np.float32)


def iterate_first_step_rows(problem: ListProblem, ridge: Ridge) -> RowBlocks:
    """The rows of (Qᵀ V Y D)_ij / ((Qᵀ V Q)_ii + a) ((DᵀD)_jj + b): each entry as if W had no other."""
    queries = compute_squared_norms(problem.Q, problem.weight) + ridge.query
    documents = compute_squared_norms(problem.D) + ridge.document
    for some, rows in iterate_gradient_rows(problem):
        yield some, (rows / np.outer(queries[some], documents)).astype(np.float32)


def _live_blocks(by_word: csr_array) -> Iterator[NDArray[np.intp]]:
    """The rows with an entry, BLOCK_ROWS at a time."""
    live = np.flatnonzero(np.diff(by_word.indptr))
    return (live[at : at + BLOCK_ROWS] for at in range(0, len(live), BLOCK_ROWS))

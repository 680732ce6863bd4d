"""The least squared loss over all queries and documents, in closed form:

    W = Qᵀ (Q Qᵀ + a I)⁻¹ Y (D Dᵀ + b I)⁻¹ D

Only the two Gram matrices are ever dense. W itself is made some rows at a time and cut as it is made, so that memory is
bounded by the pairs that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .list_problem import JudgedLists, Matrix, Ridge, squared_lengths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROWS = 256
"""Rows of W that are made at a time."""
LARGEST_GRAM = 20_000
"""Queries or documents beyond which a Gram matrix is too large (1.6 GB) and pairs are found by `first_step_rows`."""


@dataclass(frozen=True)
class GramForm:
    """Documents, whose Gram matrix and its factors serve any number of solves."""

    D: csr_array

    @cached_property
    def gram(self) -> Matrix:
        """D Dᵀ"""
        return gram(self.D)

    def factor(self, b: float) -> Any:
        """(D Dᵀ + b I), factored."""
        return factored(self.gram, b)

    def duals(self, lists: JudgedLists, evenness: float, ridge: Ridge) -> Matrix:
        """A = (Q Qᵀ + a I)⁻¹ Y (D Dᵀ + b I)⁻¹, queries × documents: W = Qᵀ A D."""
        return self.duals_of(lists, dense_targets(lists, evenness), ridge)

    def duals_of(self, lists: JudgedLists, Y: Matrix, ridge: Ridge) -> Matrix:
        """The same for any Y."""
        left = solved(factored(gram(lists.Q), ridge.a / lists.weights), Y)
        return np.ascontiguousarray(solved(self.factor(ridge.b), np.ascontiguousarray(left.T)).T)


def dense_targets(lists: JudgedLists, evenness: float) -> Matrix:
    """Y, dense."""
    found, mean = lists.targets(evenness)
    return np.asarray(found.toarray() - np.float32(mean), dtype=np.float32)


def gram(X: Any, other: Any = None) -> Matrix:
    """X Xᵀ, or X otherᵀ."""
    return np.asarray((X @ (X if other is None else other).T).toarray(), dtype=np.float32)


def factored(K: Matrix, ridge: float | NDArray[np.float64]) -> Any:
    """K + ridge · I (or K + diag(ridge)), by Cholesky."""
    from scipy.linalg import cho_factor

    K = K.copy()
    K[np.diag_indices(len(K))] += np.asarray(ridge, dtype=np.float32)
    return cho_factor(K, overwrite_a=True, check_finite=False)


def solved(factor: Any, Y: Matrix) -> Matrix:
    """(K + ridge · I)⁻¹ Y"""
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve(factor, Y, check_finite=False), dtype=np.float32)


def rows_of_w(lists: JudgedLists, duals: Matrix) -> Iterator[tuple[NDArray[np.intp], Matrix]]:
    """W = Qᵀ A D, some rows at a time: which they are, and those rows, dense. Rows without a query are left out."""
    by_word, columns = lists.Q.T.tocsr(), lists.D.T.tocsr()
    live = np.flatnonzero(np.diff(by_word.indptr))
    for at in range(0, len(live), ROWS):
        some = live[at : at + ROWS]
        yield some, np.ascontiguousarray((columns @ (by_word[some] @ duals).T).T)


def screened_rows(lists: JudgedLists, evenness: float) -> Iterator[tuple[NDArray[np.intp], Matrix]]:
    """Qᵀ V Y D, half the gradient at W = 0 with its sign turned, some rows at a time: no Gram matrix is needed."""
    found, mean = lists.targets(evenness)
    by_word, D = lists.weighted.T.tocsr(), lists.D
    words, documents = np.asarray(by_word.sum(axis=1)).ravel(), np.asarray(D.sum(axis=0)).ravel()
    live = np.flatnonzero(np.diff(by_word.indptr))
    for at in range(0, len(live), ROWS):
        some = live[at : at + ROWS]
        rows = ((by_word[some] @ found) @ D).toarray() - np.float32(mean) * np.outer(words[some], documents)
        yield some, np.asarray(rows, dtype=np.float32)


def first_step_rows(lists: JudgedLists, evenness: float, ridge: Ridge) -> Iterator[tuple[NDArray[np.intp], Matrix]]:
    """(Qᵀ V Y D)_ij / ((Qᵀ V Q)_ii + a) ((DᵀD)_jj + b), some rows at a time: each entry as if W had no other.

    On the scale of W, where `screened_rows` is on that of the gradient: a pattern can be refitted from there.
    """
    left, right = squared_lengths(lists.Q, lists.weight) + ridge.a, squared_lengths(lists.D) + ridge.b
    for some, rows in screened_rows(lists, evenness):
        yield some, (rows / np.outer(left[some], right)).astype(np.float32)

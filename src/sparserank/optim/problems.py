"""Problems: the data and the loss that a solver minimizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..preferences import Triples
from ..preferences.queries import Queries
from .document_source import DocumentSource
from .losses import Domination, Hinge, Squared
from .scores import Bilinear, Linear

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class ListProblem:
    """The squared loss of all queries and documents: sum_q v_q ‖Y_q - Q_q W Dᵀ‖².

    Y holds the grades, each divided by (sum of its query's |grades|)^query_normalization, less the weighted mean of
    all. An unjudged document has grade 0, so its target is below the mean; a negative grade gives a lower one.

    Q, D : one row for each query, one for each document.
    grades : queries × documents.
    weight : v_q > 0, the weight of each query; None is 1 each.
    query_normalization : with 0 every judgment has the same influence, with 1 every query.
    """

    Q: csr_array
    D: csr_array
    grades: csr_array
    weight: NDArray[np.float64] | None = None
    query_normalization: float = 0.0
    loss: ClassVar[Squared] = Squared()

    def __post_init__(self) -> None:
        expected = (self.Q.shape[0], self.D.shape[0])
        if self.grades.shape != expected:
            raise DataError(f"grades must be queries × documents, {expected}; got {self.grades.shape}")
        if self.weight is not None and self.weight.shape != expected[:1]:
            raise DataError(f"{expected[0]} queries need as many weights; got {self.weight.shape}")
        if self.weight is not None and not (np.isfinite(self.weight) & (self.weight > 0.0)).all():
            wrong = int(np.flatnonzero(~(np.isfinite(self.weight) & (self.weight > 0.0)))[0])
            raise DataError(f"a query weight must be finite and above 0; that of query {wrong} is not")

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W."""
        return int(self.Q.shape[1]), int(self.D.shape[1])

    def select_queries(self, queries: NDArray[np.intp]) -> ListProblem:
        """The problem of some of the queries."""
        weight = None if self.weight is None else self.weight[queries]
        return ListProblem(self.Q[queries], self.D, self.grades[queries], weight, self.query_normalization)

    @cached_property
    def relevant(self) -> csr_array:
        """The grades above 0. A negative grade makes no document relevant."""
        positive = self.grades.copy()
        positive.data = np.maximum(positive.data, np.float32(0.0))
        positive.eliminate_zeros()
        return positive

    @property
    def query_weights(self) -> NDArray[np.float64]:
        """v_q of every query."""
        return np.ones(self.Q.shape[0]) if self.weight is None else self.weight

    @cached_property
    def weighted_queries(self) -> csr_array:
        """V Q"""
        from scipy.sparse import csr_array

        return self.Q if self.weight is None else csr_array(self.Q.multiply(self.weight[:, None])).astype(np.float32)

    @cached_property
    def query_gram(self) -> csr_array:
        """Qᵀ V Q"""
        return self.Q.T @ self.weighted_queries

    @cached_property
    def targets(self) -> csr_array:
        """Y before its mean is taken off."""
        from scipy.sparse import csr_array

        total = np.asarray(abs(self.grades).sum(axis=1), dtype=np.float64).ravel()
        share = np.where(total > 0.0, total, 1.0) ** -self.query_normalization
        return csr_array(self.grades.multiply(share[:, None])).astype(np.float32)

    @cached_property
    def target_mean(self) -> float:
        """The mean of the targets over all queries and documents, weighted."""
        targets, n_queries, n_documents = self.targets, int(self.Q.shape[0]), int(self.D.shape[0])
        if self.weight is None:
            return float(targets.sum(dtype=np.float64)) / max(n_queries * n_documents, 1)
        total = float(self.weight @ np.asarray(targets.sum(axis=1, dtype=np.float64)).ravel())
        return total / (float(self.weight.sum()) * n_documents or 1.0)

    def dense_targets(self) -> Matrix:
        """Y, dense."""
        return np.asarray(self.targets.toarray() - np.float32(self.target_mean), dtype=np.float32)


def compute_squared_norms(X: Any, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """out[j] = sum_i weight[i] X[i, j]²"""
    if isinstance(X, DocumentSource):
        return X.squared_norms()
    squares = X.data.astype(np.float64) ** 2
    if weight is not None:
        squares *= np.repeat(weight, np.diff(X.indptr))
    return np.bincount(X.indices, squares, minlength=X.shape[1]).astype(np.float64)


def csr_arrays(X: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """The arrays of a CSR or CSC matrix in the types that kernels are compiled for."""
    return (
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.data.astype(np.float32, copy=False),
    )


@dataclass(frozen=True)
class RowProblem:
    """Rows of features, dense or sparse, by query and grade; boosting brings its own loss."""

    X: Any
    queries: Queries
    loss: ClassVar[None] = None


@dataclass(frozen=True)
class LabelProblem:
    """Items X with class labels 0, 1, …: items of one class should score high together, others low."""

    X: csr_array
    labels: NDArray[np.int64]
    loss: ClassVar[None] = None


@dataclass(frozen=True)
class BilinearProblem:
    """The hinge loss of triples, in their order, by the score qᵀWd."""

    score: Bilinear
    triples: Triples
    loss: ClassVar[Hinge] = Hinge()


@dataclass(frozen=True)
class LinearProblem:
    """The domination loss of s(x) = w·x over the rows of each query."""

    score: Linear
    queries: Queries
    loss: Domination

    @cached_property
    def offsets(self) -> NDArray[np.float64]:
        """The margin m of each row, less the smallest: what is subtracted from its score."""
        queries = self.queries
        with np.errstate(over="ignore", invalid="ignore"):
            offset = _grade_margins(self.loss, queries.grade) + queries.margin
            offset = offset - offset.min(initial=0.0)
        if not np.isfinite(offset).all():
            raise DataError(
                f"margin {self.loss.margin} and a grade of {np.abs(queries.grade).max():g} give no finite number"
            )
        offset = np.asarray(queries.by_row(offset))
        _check_margins(select_windows(self.loss, queries), offset)
        return offset


def select_windows(loss: Domination, queries: Queries) -> Queries:
    """The rows by query, with the windows that the loss compares."""
    if loss.windows == "graded":
        return queries
    relevant = queries.by_row(queries.grade > 0)
    return Queries.of(relevant, queries.by_row(queries.query), queries.by_row(queries.weight))


def _grade_margins(loss: Domination, grade: NDArray[np.float64]) -> NDArray[np.float64]:
    by_grade = loss.margin_by_grade()
    if by_grade is None:
        return np.asarray(loss.margin * (grade - grade.min(initial=0.0)))
    levels, level = np.unique(grade, return_inverse=True)
    missing = [value for value in levels.tolist() if value not in by_grade]
    if missing:
        known = ", ".join(f"{value:g}" for value in by_grade)
        raise DataError(f"margin has no number for grade {missing[0]:g} (it has: {known}); add it, or give a number")
    return np.array([by_grade[value] for value in levels.tolist()], dtype=np.float64)[level]


def _check_margins(windows: Queries, offset: NDArray[np.float64]) -> None:
    """Raise DataError if an item has a smaller m than an item below it."""
    m = offset[windows.order]
    first, end = windows.first_loser, windows.query_end
    wins = first < end
    if not wins.any() or not m.any():
        return
    highest = np.full(len(m) + 1, -np.inf)
    for query, last in zip(windows.start.tolist(), windows.start[1:].tolist(), strict=False):
        highest[query:last] = np.maximum.accumulate(m[query:last][::-1])[::-1]
    bad = np.flatnonzero(wins & (m < np.where(wins, highest[np.minimum(first, len(m))], -np.inf)))
    if len(bad):
        i = int(bad[0])
        j = int(first[i] + np.argmax(m[first[i] : end[i]]))
        rows = int(windows.order[i]), int(windows.order[j])
        raise DataError(
            f"the margin between row {rows[0]} and row {rows[1]}, which it should beat, is {m[i] - m[j]:g}; "
            "margins must not decrease with the grade: give the better row at least the margin of the worse one"
        )

"""JudgedLists: queries, documents and what the score of each should be; the squared loss over all of them at once.

    min over W   ‖Y - Q W Dᵀ‖² + a ‖W Dᵀ‖² + b ‖Q W‖² + a b ‖W‖²

Y is what the judgments say, less its mean: a document nobody judged is wanted below the mean, and one of a grade below
0 is wanted below those. W without a pattern has a
closed form (`closed_form`); on the pairs of a pattern it is found by conjugate gradients (`pattern_ridge`).

A query of weight v counts as v queries, wherever queries are summed over: in the first and the third term, and in the
mean. So QᵀQ becomes Qᵀ V Q, QᵀY becomes Qᵀ V Y, and in the closed form (Q Qᵀ + a I)⁻¹ becomes (Q Qᵀ + a V⁻¹)⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Ridge:
    """How far W is held back: a on the side of queries, b on the side of documents."""

    a: float = 1.0
    b: float = 1.0


@dataclass(frozen=True)
class JudgedLists:
    """Rows of queries and documents, and grades of queries × documents; whatever is not there has grade 0.

    weight : how many queries each one counts as, above 0; None is 1 each.
    """

    Q: csr_array
    D: csr_array
    grades: csr_array
    weight: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        wanted = (self.Q.shape[0], self.D.shape[0])
        if self.grades.shape != wanted:
            raise DataError(f"grades must be queries × documents, {wanted}; got {self.grades.shape}")
        if self.weight is not None and self.weight.shape != wanted[:1]:
            raise DataError(f"{wanted[0]} queries need as many weights; got {self.weight.shape}")
        if self.weight is not None and not (np.isfinite(self.weight) & (self.weight > 0.0)).all():
            wrong = int(np.flatnonzero(~(np.isfinite(self.weight) & (self.weight > 0.0)))[0])
            raise DataError(f"a query's weight must be finite and above 0; that of query {wrong} is not")

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W."""
        return int(self.Q.shape[1]), int(self.D.shape[1])

    def of(self, queries: NDArray[np.intp]) -> JudgedLists:
        """Some of the queries."""
        weight = None if self.weight is None else self.weight[queries]
        return JudgedLists(self.Q[queries], self.D, self.grades[queries], weight)

    @cached_property
    def relevant(self) -> csr_array:
        """The grades above 0. A grade below 0 makes no document relevant, and takes nothing from those that are."""
        positive = self.grades.copy()
        positive.data = np.maximum(positive.data, np.float32(0.0))
        positive.eliminate_zeros()
        return positive

    @property
    def weights(self) -> NDArray[np.float64]:
        """What each query counts."""
        return np.ones(self.Q.shape[0]) if self.weight is None else self.weight

    @property
    def weighted(self) -> csr_array:
        """V Q: the queries' rows times their weights."""
        from scipy.sparse import csr_array

        return self.Q if self.weight is None else csr_array(self.Q.multiply(self.weight[:, None])).astype(np.float32)

    def targets(self, evenness: float) -> tuple[csr_array, float]:
        """Grades / (sum of the query's grades, whatever their sign)^evenness, and the mean of that over all queries and
        documents, weighted.

        0 lets every judgment count alike, 1 every query.
        """
        from scipy.sparse import csr_array

        total = np.asarray(abs(self.grades).sum(axis=1), dtype=np.float64).ravel()
        share = np.where(total > 0.0, total, 1.0) ** -evenness
        found = csr_array(self.grades.multiply(share[:, None])).astype(np.float32)
        if self.weight is None:
            return found, float(found.sum(dtype=np.float64)) / max(found.shape[0] * found.shape[1], 1)
        wanted = float(self.weight @ np.asarray(found.sum(axis=1, dtype=np.float64)).ravel())
        return found, wanted / (float(self.weight.sum()) * found.shape[1] or 1.0)

    def objective(self, W: Any, evenness: float, ridge: Ridge) -> float:
        """The literal objective, for small problems."""
        Q, D, W = (np.asarray(M.toarray(), dtype=np.float64) for M in (self.Q, self.D, W))
        found, mean = self.targets(evenness)
        missed, v = found.toarray() - mean - Q @ W @ D.T, self.weights[:, None]
        held = ridge.a * np.sum((W @ D.T) ** 2) + ridge.b * np.sum(v * (Q @ W) ** 2) + ridge.a * ridge.b * np.sum(W**2)
        return float(np.sum(v * missed**2) + held)


def squared_lengths(X: Any, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """out[j] = sum_i weight[i] X[i, j]²"""
    squares = X.data.astype(np.float64) ** 2
    if weight is not None:
        squares *= np.repeat(weight, np.diff(X.indptr))
    return np.bincount(X.indices, squares, minlength=X.shape[1]).astype(np.float64)

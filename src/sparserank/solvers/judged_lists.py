"""JudgedLists: queries, documents and what the score of each should be; the squared loss over all of them at once.

    min over W   ‖Y - Q W Dᵀ‖² + a ‖W Dᵀ‖² + b ‖Q W‖² + a b ‖W‖²

Y is what the judgments say, less its mean: a document nobody judged is wanted below the mean. W without a pattern has a
closed form (`closed_form`); on the pairs of a pattern it is found by conjugate gradients (`pattern_ridge`).
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """Rows of queries and documents, and grades of queries × documents; whatever is not there has grade 0."""

    Q: csr_array
    D: csr_array
    grades: csr_array

    def __post_init__(self) -> None:
        wanted = (self.Q.shape[0], self.D.shape[0])
        if self.grades.shape != wanted:
            raise DataError(f"grades must be queries × documents, {wanted}; got {self.grades.shape}")

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W."""
        return int(self.Q.shape[1]), int(self.D.shape[1])

    def of(self, queries: NDArray[np.intp]) -> JudgedLists:
        """Some of the queries."""
        return JudgedLists(self.Q[queries], self.D, self.grades[queries])

    def targets(self, evenness: float) -> tuple[csr_array, float]:
        """Grades / (sum of the query's grades)^evenness, and the mean of that over all queries and documents.

        0 lets every judgment count alike, 1 every query.
        """
        from scipy.sparse import csr_array

        total = np.asarray(self.grades.sum(axis=1), dtype=np.float64).ravel()
        share = np.where(total > 0.0, total, 1.0) ** -evenness
        found = csr_array(self.grades.multiply(share[:, None])).astype(np.float32)
        return found, float(found.sum(dtype=np.float64)) / max(found.shape[0] * found.shape[1], 1)

    def objective(self, W: Any, evenness: float, ridge: Ridge) -> float:
        """The literal objective, for small problems."""
        Q, D, W = (np.asarray(M.toarray(), dtype=np.float64) for M in (self.Q, self.D, W))
        found, mean = self.targets(evenness)
        missed = found.toarray() - mean - Q @ W @ D.T
        held = ridge.a * np.sum((W @ D.T) ** 2) + ridge.b * np.sum((Q @ W) ** 2) + ridge.a * ridge.b * np.sum(W**2)
        return float(np.sum(missed**2) + held)


def squared_lengths(X: Any) -> NDArray[np.float64]:
    """out[j] = sum_i X[i, j]²"""
    return np.bincount(X.indices, X.data.astype(np.float64) ** 2, minlength=X.shape[1]).astype(np.float64)

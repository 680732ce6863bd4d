"""Queries encoded for an index: term weights, and words that W expands at search time.

weights of a query = q in the term columns + pair_weight * words @ W in the columns from `pair_offset` on
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class EncodedQuery:
    """A batch of queries, one per row.

    terms : weights in the columns of the index.
    words : weights of the words that W expands; None if the model has no pairs.
    W : the learned word pairs, query words × document words.
    pair_offset : index column of the first column of W.
    pairs_digest : identifies W and `pair_weight`.

    >>> from scipy.sparse import csr_array
    >>> query = EncodedQuery(csr_array([[1.0, 0.0]]), csr_array([[1.0]]), csr_array([[0.5]]), pair_offset=1)
    >>> query.expand().toarray()
    array([[1. , 0.5]])
    """

    terms: csr_array
    words: csr_array | None = None
    W: csr_array | None = None
    pair_weight: float = 1.0
    pair_offset: int = 0
    pairs_digest: str = ""

    def __post_init__(self) -> None:
        if not np.isfinite(self.terms.data).all():
            raise DataError("a query weight is not finite")
        if self.words is None or self.W is None:
            return
        if self.words.shape != (len(self), self.W.shape[0]):
            raise DataError(f"words must have shape {(len(self), self.W.shape[0])}; got {self.words.shape}")
        if self.terms.shape[1] < self.pair_offset + self.W.shape[1]:
            raise DataError(
                f"W needs {self.W.shape[1]} columns from column {self.pair_offset} on; "
                f"the queries have {self.terms.shape[1]} columns"
            )
        if not (np.isfinite(self.words.data).all() and np.isfinite(self.pair_weight)):
            raise DataError("a query weight is not finite")

    def __len__(self) -> int:
        return int(self.terms.shape[0])

    def take(self, rows: Any) -> EncodedQuery:
        """Select queries by row number."""
        return replace(self, terms=self.terms[rows], words=None if self.words is None else self.words[rows])

    def expand(self) -> csr_array:
        """Return each query as one row of index columns, in float64."""
        from scipy.sparse import csr_array, hstack

        terms = self.terms.astype(np.float64)
        if self.words is None or self.W is None:
            return csr_array(terms)
        pairs = self.pair_weight * (self.words.astype(np.float64) @ self.W.astype(np.float64))
        after = terms.shape[1] - self.pair_offset - self.W.shape[1]
        left, right = (csr_array((len(self), width)) for width in (self.pair_offset, after))
        return csr_array(terms + hstack([left, pairs, right], format="csr"))

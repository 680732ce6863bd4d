"""Search candidates for training queries: hard negatives, and the documents on which held-out rankings are compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.records import Documents
from ..optim.document_source import DocumentSource
from ..search import Index
from ..search.encoded_query import EncodedQuery

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .training_data import TrainingMatrices

ALL_DOCUMENTS = 5_000
"""Up to this many documents, a held-out ranking is that of all documents."""
POOL_DEPTH = 500
"""Beyond it, of the best documents by the lexical score, by the pairs, and of all relevant ones."""


@dataclass(frozen=True)
class CandidateSearch:
    """An index of the training documents, with lexical columns and pair columns."""

    lexical_rows: csr_array
    D: csr_array
    n_jobs: int | None = None

    @classmethod
    def of(cls, data: TrainingMatrices, n_jobs: int | None = None) -> CandidateSearch:
        """Search the documents of this training data."""
        return cls(data.lexical.documents, data.lists.D, n_jobs)

    @cached_property
    def _index(self) -> Any:
        from scipy.sparse import hstack

        if isinstance(self.D, DocumentSource):
            return self.D.index()
        n = int(self.D.shape[0])
        ids = tuple(f"{n - i:012d}" for i in range(n))  # an index has its documents by descending id
        blank = ("",) * n
        return Index.build(hstack([self.lexical_rows, self.D], format="csr"), Documents(ids, blank, blank))

    def top(
        self, data: TrainingMatrices, k: int, W: csr_array | None = None, pair_weight: float = 0.0, lexical: bool = True
    ) -> NDArray[np.int64]:
        """The best k documents of every query without its excluded document; -1 after the last result.

        With W, the score includes the pairs; with lexical=False it has only the pairs.
        """
        from scipy.sparse import csr_array

        shape = (len(data), self._index.n_terms)
        terms = csr_array(data.lexical.queries if lexical else csr_array(shape, dtype=np.float32), copy=True)
        terms.resize(shape)
        queries = EncodedQuery(terms)
        if W is not None:
            queries = EncodedQuery(terms, data.lists.Q, W, pair_weight, int(self.lexical_rows.shape[1]))
        docs, _, counts = self._index.top(queries, k + 1, n_jobs=self.n_jobs)
        ranked = np.where(np.arange(docs.shape[1]) < counts[:, None], docs, -1)
        ranked[ranked == data.excluded[:, None]] = -1
        order = np.argsort(ranked < 0, axis=1, kind="stable")[:, :k]  # the excluded one goes to the end
        return np.take_along_axis(ranked, order, axis=1)

"""Candidate lists: for each query the documents that a listwise loss compares, instead of the whole collection.

A list has the relevant documents of a query, hard negatives that a search found, and some random documents. Its size
does not depend on the number of documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..thread_pool import map_in_threads
from .document_source import DocumentSource
from .problems import ListProblem, csr_arrays

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class CandidateLists:
    """The documents of query i are document[start[i] : start[i + 1]], in ascending order.

    base : the score of each document without the pairs, such as the lexical score.
    grade : the grade of each document if it is relevant, else 0.
    share : v_q times the share of the document in the relevant grades of its query; 0 if it is not relevant.
    """

    start: NDArray[np.int64]
    document: NDArray[np.int32]
    base: NDArray[np.float32]
    grade: NDArray[np.float32]
    share: NDArray[np.float32]

    @classmethod
    def build(
        cls, lists: ListProblem, excluded: NDArray[np.int64], retrieved: NDArray[np.int64], n_random: int, seed: int = 0
    ) -> CandidateLists:
        """Lists of the relevant documents, of those in the rows of `retrieved` (-1 is none) and of random ones.

        The excluded document of a query, if it is not -1, is in no list. Base scores are 0.
        """
        n, m = lists.grades.shape
        rng, relevant = np.random.default_rng(seed), lists.relevant
        drawn = rng.integers(0, max(m, 1), (n, n_random if m else 0))
        query = np.concatenate([_rows(relevant), np.repeat(np.arange(n), retrieved.shape[1] + drawn.shape[1])])
        document = np.concatenate([relevant.indices, np.hstack([retrieved, drawn]).ravel()])
        usable = (document >= 0) & (document != excluded[query])
        key = np.sort(query[usable] * np.int64(m) + document[usable])
        key = key[np.diff(key, prepend=-1) > 0]
        query, document = np.divmod(key, max(m, 1))
        start = np.searchsorted(query, np.arange(n + 1)).astype(np.int64)
        base, grade, share = np.zeros((3, len(key)), np.float32)
        row = _rows(relevant)
        is_allowed = relevant.indices != excluded[row]
        place = np.searchsorted(key, (row * np.int64(m) + relevant.indices)[is_allowed])
        grade[place] = relevant.data[is_allowed]
        share[place] = (relevant.data * _share_factors(lists)[row])[is_allowed]
        return cls(start, document.astype(np.int32), base, grade, share)

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of documents of each list."""
        return np.diff(self.start)

    def find(self, query: NDArray[np.intp], document: NDArray[np.intp]) -> NDArray[np.intp]:
        """The places of these documents in the lists of these queries; they must be there."""
        key = np.repeat(np.arange(len(self)), self.lengths) << 32 | self.document
        return np.searchsorted(key, query.astype(np.int64) << 32 | document)

    def score(self, Q: csr_array, W: csr_array, D: csr_array, threads: int = 1) -> NDArray[np.float32]:
        """qᵀ W d of every document in the list of every query."""
        if isinstance(D, DocumentSource):
            return D.score(self, Q, W)
        from .._kernels.candidate_lists import score

        out = np.zeros(len(self.document), np.float32)
        cuts = np.searchsorted(self.start, np.linspace(0, self.start[-1], 4 * threads + 1)[1:-1])
        bounds = pairwise(np.unique([0, *cuts.tolist(), len(self)]).tolist())

        def run(bound: tuple[int, int]) -> None:
            expanded = np.zeros(W.shape[1], np.float32)
            score(*bound, *csr_arrays(Q), *csr_arrays(W), *csr_arrays(D), self.start, self.document, expanded, out)

        map_in_threads(run, bounds, threads)
        return out

    def score_expanded(
        self, expanded: NDArray[np.float32], D: csr_array, words: NDArray[np.intp] | None = None
    ) -> NDArray[np.float32]:
        """expanded[i] · d of every document in the list of query i; with words, d has these columns only."""
        if isinstance(D, DocumentSource):
            assert words is not None
            return D.score_expanded(self, expanded, words)
        from .._kernels.candidate_lists import score_expanded

        out = np.zeros(len(self.document), np.float32)
        D = D if words is None else D[:, words]
        score_expanded(expanded, *csr_arrays(D), self.start, self.document, out)
        return out


def _rows(X: csr_array) -> NDArray[np.int64]:
    return np.repeat(np.arange(X.shape[0], dtype=np.int64), np.diff(X.indptr))


def _share_factors(lists: ListProblem) -> NDArray[np.float64]:
    """v_q divided by the sum of the relevant grades of each query."""
    total = np.asarray(lists.relevant.sum(axis=1), dtype=np.float64).ravel()
    return np.where(total > 0.0, lists.query_weights / np.where(total > 0.0, total, 1.0), 0.0)


@dataclass(frozen=True)
class RerankingProblem:
    """A loss of s = base + qᵀ W d over candidate lists: W is learned in addition to a given base score.

    loss : a Domination, a Softmax or a Hinge.
    """

    Q: csr_array
    D: csr_array
    candidates: CandidateLists
    loss: Any

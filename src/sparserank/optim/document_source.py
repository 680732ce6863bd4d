"""DocumentSource: rows of documents that are not in this process, such as those on a cluster.

It replaces the CSR matrix D of the documents. Functions that would read D call a method of the source instead, which
returns sums over documents or scores of documents, so no row is sent to this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .candidate_lists import CandidateLists, RerankingProblem
    from .penalties import Ridge
    from .problems import ListProblem

Matrix = NDArray[np.float32]


class DocumentSource(ABC):
    """A matrix D of documents × words that another process stores.

    nnz : the number of entries in this process, for the memory plan.
    """

    shape: tuple[int, int]
    nnz: int = 0

    @abstractmethod
    def squared_norms(self) -> NDArray[np.float64]:
        """The diagonal of DᵀD."""

    @abstractmethod
    def gram(self, words: NDArray[np.intp] | None) -> Matrix:
        """DᵀD at the words, or D Dᵀ."""

    @abstractmethod
    def sums(self, words: NDArray[np.intp]) -> Matrix:
        """Dᵀ1 at the words."""

    @abstractmethod
    def middle(self, left: csr_array | None, targets: csr_array, words: NDArray[np.intp]) -> Matrix:
        """leftᵀ Y D at the words, or Y D; Y are the targets, queries × documents."""

    @abstractmethod
    def prune_products(self, left: Any, M: Matrix, prune: Any) -> csr_array:
        """prune(the rows of Qᵀ M D), where `left` is the side of the queries."""

    @abstractmethod
    def score(self, candidates: CandidateLists, Q: csr_array, W: csr_array) -> Matrix:
        """qᵀ W d of every document in the list of every query."""

    @abstractmethod
    def score_expanded(self, candidates: CandidateLists, expanded: Matrix, words: NDArray[np.intp]) -> Matrix:
        """expanded[i] · d, at the words, of every document in the list of query i."""

    @abstractmethod
    def index(self) -> Any:
        """An index to search, with the columns of lexical rows before those of D."""

    @abstractmethod
    def list_gradient(self, problem: RerankingProblem, pattern: csr_array) -> Any:
        """The gradient of a reranking problem by the weights of a pattern."""

    @abstractmethod
    def operator(self, problem: ListProblem, ridge: Ridge, W: csr_array) -> AbstractContextManager[Any]:
        """The normal equations of `PatternRidge` on the pattern of W."""

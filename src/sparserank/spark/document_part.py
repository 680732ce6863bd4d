"""The documents of one partition as rows, on an executor."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.records import Documents
from ..optim.candidate_lists import CandidateLists
from ..search import Index

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array


class WordColumns:
    """Pair rows, and a selection of their columns."""

    pairs: csr_array
    cache: dict[str, Any]

    def at_words(self, words: NDArray[np.intp]) -> csr_array:
        """The columns of `pairs` at these words; the last selection is cached."""
        if "words" not in self.cache or not np.array_equal(self.cache["words"][0], words):
            self.cache["words"] = words, self.pairs[:, words]
        return self.cache["words"][1]

    def columns_at(self, words: NDArray[np.intp]) -> csc_array:
        """The same as CSC."""
        rows = self.at_words(words)
        if "columns" not in self.cache or self.cache["columns"][0] is not rows:
            self.cache["columns"] = rows, rows.tocsc()
        return self.cache["columns"][1]


@dataclass
class Replica(WordColumns):
    """The pair rows of all documents."""

    pairs: csr_array
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.pairs.shape[0])


@dataclass
class DocumentPart(WordColumns):
    """Ids and rows of the documents of a partition; texts are not kept.

    lexical : the rows of the lexical score.
    pair_weights : the weights that pairs look for, at the same places.
    """

    ids: list[str]
    lexical: csr_array
    pair_weights: NDArray[np.float32]
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def pairs(self) -> csr_array:
        """The rows that pairs look for."""
        from scipy.sparse import csr_array

        return csr_array((self.pair_weights, self.lexical.indices, self.lexical.indptr), shape=self.lexical.shape)

    @cached_property
    def index(self) -> Index:
        """An index of lexical and pair columns, in the order of the rows."""
        from scipy.sparse import csr_array, hstack

        n = len(self)
        ids, blank = tuple(f"{n - i:012d}" for i in range(n)), ("",) * n
        return Index.build(csr_array(hstack([self.lexical, self.pairs], format="csr")), Documents(ids, blank, blank))

    def select(self, candidates: CandidateLists, first: int) -> CandidateLists:
        """The lists with the documents of this part only, numbered by their rows; `first` is the number of row 0."""
        is_here = (candidates.document >= first) & (candidates.document < first + len(self))
        start = np.concatenate([[0], np.cumsum(is_here)])[candidates.start]
        document = (candidates.document[is_here] - first).astype(np.int32)
        none = np.zeros(0, np.float32)
        return CandidateLists(start.astype(np.int64), document, none, none, none)


@dataclass
class CandidateRows:
    """The rows of all documents in the lists of some queries: documents[i], in ascending order, has row i."""

    documents: NDArray[np.int32]
    rows: csr_array
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

"""QueryWords: the query side of learned word pairs.

Its columns are the words of the documents and what the training queries have besides: words that no document has, and
pairs of neighbouring words. A row is count · idf^½ at unit length; a pair of neighbours counts `NEIGHBOURS` times that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors, pack_strings
from ..text import TextFeatures

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NEIGHBOURS = 0.7
"""Checked, as is idf^½, on training queries that were set aside: benchmarks/text_defaults.py."""


@dataclass(frozen=True)
class QueryWords:
    """The documents' features, and the words that only queries have.

    like_documents : queries are documents themselves: their rows are those of `document_rows`, and they have no words
        of their own.
    """

    documents: TextFeatures
    extra: tuple[str, ...] = ()
    like_documents: bool = False

    @classmethod
    def of(cls, documents: TextFeatures, texts: Iterable[str]) -> QueryWords:
        """From the queries that there is something to learn about."""
        return cls(documents).with_words_of(texts)

    def with_words_of(self, texts: Iterable[str]) -> QueryWords:
        """With the words of more queries; those that were there keep their columns."""
        if self.like_documents:
            return self
        known = {*self.documents.vocabulary_, *self.extra}
        seen = TextFeatures("raw", unit=False, analyzer=self._analyzer)
        seen.fit(texts)
        return replace(self, extra=self.extra + tuple(word for word in seen.words_ if word not in known))

    @property
    def _analyzer(self) -> Any:
        analyzer = self.documents.analyzer
        return replace(analyzer, ngrams=max(2, analyzer.ngrams))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The word of every column."""
        return self.documents.words_ + self.extra

    @cached_property
    def _features(self) -> TextFeatures:
        counting = TextFeatures("raw", unit=False, analyzer=self._analyzer)
        return counting.restore(self.words, np.ones(len(self.words), np.int64), 1, 1.0)

    @cached_property
    def _weight(self) -> NDArray[np.float32]:
        idf = np.full(len(self.words), self._rarest, np.float32)
        idf[: len(self.documents.words_)] = self.documents.idf_
        neighbours = np.fromiter((" " in word for word in self.words), np.bool_, len(self.words))
        return np.asarray(np.sqrt(idf) * np.where(neighbours, np.float32(NEIGHBOURS), np.float32(1.0)), np.float32)

    @property
    def _rarest(self) -> float:
        """What a word that no document has would weigh."""
        n = self.documents.documents_
        return float(np.log1p((n + 0.5) / 0.5) if self.documents.weight == "bm25" else 1.0 + np.log(1.0 + n))

    def rows(self, texts: Iterable[str]) -> csr_array:
        """Queries as rows of unit length; one without a known word is empty."""
        from .._kernels.weights import row_lengths, scale_rows

        if self.like_documents:
            return document_rows(self.documents, self.documents.weighted(self.documents.counts(texts).matrix))
        out = self._features.counts(texts).matrix
        out.data *= self._weight[out.indices]
        scale_rows(out.indptr, out.data, row_lengths(out.indptr, out.data))
        return out

    def column(self, word: str) -> int | None:
        """Where a word stands, as it is counted (a stem)."""
        return self._features.vocabulary_.get(word)

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays for a model file."""
        return pack_strings("query_words", self.extra)

    @classmethod
    def from_file(cls, documents: TextFeatures, file: Tensors, like_documents: bool = False) -> QueryWords:
        """What `state` described."""
        return cls(documents, file.strings("query_words"), like_documents)


def document_rows(features: TextFeatures, weighted: csr_array) -> csr_array:
    """The document side: lexical weights · idf^-½ at unit length."""
    from .._kernels.weights import row_lengths, scale_rows

    out = weighted.copy()
    out.data = (out.data / np.sqrt(features.idf_)[out.indices]).astype(np.float32)
    scale_rows(out.indptr, out.data, row_lengths(out.indptr, out.data))
    return out

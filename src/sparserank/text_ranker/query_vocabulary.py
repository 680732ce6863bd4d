"""The rows of queries and documents that word pairs connect.

The columns of queries are the words of the documents, then the words that only training queries have, then pairs of
neighbouring words. A query row is count · idf^½ at unit length; neighbouring words count `NEIGHBOR_WEIGHT` times that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors, pack_strings
from ..text import Analyzer, TextFeatures

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NEIGHBOR_WEIGHT = 0.7
"""Tuned, like the exponent of idf, on held-out training queries: benchmarks/text_defaults.py."""

MAX_SEQUENCES = 100_000
"""The most sequences of neighbouring words that training queries add to the vocabulary."""


@dataclass(frozen=True)
class QueryVocabulary:
    """The vocabulary of the documents, and the words that only queries have.

    queries_are_documents : queries are encoded like documents and have no words of their own.
    """

    documents: TextFeatures
    extra: tuple[str, ...] = ()
    queries_are_documents: bool = False

    @classmethod
    def from_texts(cls, documents: TextFeatures, texts: Iterable[str]) -> QueryVocabulary:
        """Build the vocabulary of training queries."""
        return cls(documents).extend(texts)

    def extend(self, texts: Iterable[str]) -> QueryVocabulary:
        """Return a vocabulary with the words of more queries; existing words keep their columns.

        Of more than MAX_SEQUENCES sequences of neighbouring words, the most frequent are added: a
        sequence of a single query does not help other queries.
        """
        if self.queries_are_documents:
            return self
        known = {*self.documents.vocabulary_, *self.extra}
        features = TextFeatures("raw", unit=False, analyzer=self._analyzer).fit(texts)
        new = np.array([i for i, word in enumerate(features.words_) if word not in known], np.intp)
        sequences = new[[" " in features.words_[i] for i in new]] if len(new) else new
        if len(sequences) > MAX_SEQUENCES:
            rare = sequences[np.argsort(-features.df_[sequences], kind="stable")[MAX_SEQUENCES:]]
            new = np.setdiff1d(new, rare)
        spellings = self.documents.spellings_.most_frequent()  # the queries add how their own words are spelled
        spellings |= {w: s for w, s in features.spellings_.most_frequent().items() if w not in known}
        return replace(self, extra=self.extra + tuple(features.words_[i] for i in new))

    @property
    def _analyzer(self) -> Analyzer:
        analyzer = self.documents.analyzer_
        return replace(analyzer, ngrams=max(2, analyzer.ngrams))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The word of each column."""
        return self.documents.words_ + self.extra

    @cached_property
    def is_neighbors(self) -> NDArray[np.bool_]:
        """Whether each column is a sequence of neighbouring words."""
        return np.fromiter((" " in word for word in self.words), np.bool_, len(self.words))

    @cached_property
    def _features(self) -> TextFeatures:
        counts = TextFeatures("raw", unit=False, analyzer=self._analyzer)
        return counts.restore(self.words, np.ones(len(self.words), np.int64), 1, 1.0)

    @cached_property
    def column_weights(self) -> NDArray[np.float32]:
        """What the count of each column is multiplied by, before a row gets unit length."""
        n = self.documents.documents_
        unseen_idf = float(np.log1p((n + 0.5) / 0.5) if self.documents.weight == "bm25" else 1.0 + np.log(1.0 + n))
        idf = np.full(len(self.words), unseen_idf, np.float32)
        idf[: len(self.documents.words_)] = self.documents.idf_
        scale = np.where(self.is_neighbors, np.float32(NEIGHBOR_WEIGHT), np.float32(1.0))
        return np.asarray(np.sqrt(idf) * scale, np.float32)

    def encode(self, texts: Iterable[str]) -> csr_array:
        """Return queries as rows of unit length; a query without known words is an empty row."""
        if self.queries_are_documents:
            return document_rows(self.documents, self.documents.apply_weights(self.documents.counts(texts).matrix))
        out = self._features.counts(texts).matrix
        self._weight_rows(out.indptr, out.indices, out.data)
        return out

    def encode_row(self, text: str, words: list[str] | None = None) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the columns and the weights of one query, as `encode` does.

        words : those of the text, if they are known.
        """
        if self.queries_are_documents:
            row = self.encode([text])
            return row.indices.astype(np.int32, copy=False), row.data
        columns, weights = self._features.count_words(text, words)
        self._weight_rows(np.array([0, len(columns)], np.int32), columns, weights)
        return columns, weights

    def _weight_rows(self, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[np.float32]) -> None:
        """Convert counts to weights, in place."""
        from .._kernels.weights import row_lengths, scale_rows

        data *= self.column_weights[indices]
        scale_rows(indptr, data, row_lengths(indptr, data))

    def column(self, word: str) -> int | None:
        """Return the column of a stem, or None."""
        return self._features.vocabulary_.get(word)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return arrays for a model file."""
        return pack_strings("query_words", self.extra)

    @classmethod
    def from_file(cls, documents: TextFeatures, file: Tensors, queries_are_documents: bool = False) -> QueryVocabulary:
        """Return the vocabulary that `state` described."""
        return cls(documents, file.strings("query_words"), queries_are_documents)


def document_rows(features: TextFeatures, lexical_rows: csr_array) -> csr_array:
    """Return the rows that pairs look for: lexical weights · idf^-½ at unit length."""
    from .._kernels.weights import row_lengths, scale_rows

    out = lexical_rows.copy()
    out.data = (out.data / np.sqrt(features.idf_)[out.indices]).astype(np.float32)
    scale_rows(out.indptr, out.data, row_lengths(out.indptr, out.data))
    return out

"""Queries encoded for an index: term weights, and words that W expands at search time.

weights of a query = q in the term columns + pair_weight * words @ W in the columns from `pair_offset` on
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class KernelRows(NamedTuple):
    """Rows of a sparse matrix as the search kernels take them: CSR arrays, read-only."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]

    @classmethod
    def of(cls, matrix: csr_array | None, n: int) -> KernelRows:
        """Convert a matrix; None is n rows without entries. Arrays of the right type are not copied."""
        if matrix is None:
            return cls(_read_only(np.zeros(n + 1, np.int64)), *_NO_ENTRIES)
        indptr, indices = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
        arrays = indptr, indices, matrix.data.astype(np.float32, copy=False)
        return cls(*(_read_only(array.view()) for array in arrays))

    @classmethod
    def from_row(cls, indices: NDArray[np.int32], data: NDArray[np.float32]) -> KernelRows:
        """Return one row; its arrays become read-only."""
        return cls(_read_only(np.array([0, len(indices)], np.int64)), _read_only(indices), _read_only(data))

    def csr(self, n_columns: int) -> csr_array:
        """Return the rows as a matrix."""
        from scipy.sparse import csr_array

        return csr_array((self.data, self.indices, self.indptr), shape=(len(self.indptr) - 1, n_columns))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


_NO_ENTRIES = _read_only(np.zeros(0, np.int32)), _read_only(np.zeros(0, np.float32))
_NO_PAIRS, _NO_WORDS = KernelRows.of(None, 0), KernelRows.of(None, 1)


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

    def __init__(
        self, terms: csr_array, words: csr_array | None = None, W: csr_array | None = None,
        pair_weight: float = 1.0, pair_offset: int = 0, pairs_digest: str = "",
    ) -> None:  # fmt: skip
        self.terms, self.words, self.W = terms, words, W
        self.pair_weight, self.pair_offset, self.pairs_digest = float(pair_weight), pair_offset, pairs_digest
        self._shape: tuple[int, int] = terms.shape
        if not np.isfinite(terms.data).all():
            raise DataError("a query weight is not finite")
        if words is None or W is None:
            return
        if words.shape != (len(self), W.shape[0]):
            raise DataError(f"words must have shape {(len(self), W.shape[0])}; got {words.shape}")
        if self.n_columns < pair_offset + W.shape[1]:
            raise DataError(
                f"W needs {W.shape[1]} columns from column {pair_offset} on; the queries have {self.n_columns} columns"
            )
        if not (np.isfinite(words.data).all() and np.isfinite(pair_weight)):
            raise DataError("a query weight is not finite")

    @classmethod
    def from_rows(cls, terms: KernelRows, words: KernelRows | None, like: EncodedQuery) -> EncodedQuery:
        """Return queries for the index and the W of other queries; words=None leaves the pairs out.

        A matrix is made when it is used, because for one query that takes longer than a small search. The caller
        guarantees finite weights and valid columns.
        """
        queries = cls.__new__(cls)
        queries.term_rows, queries._shape = terms, (len(terms.indptr) - 1, like.n_columns)
        if words is None:
            no_words = _NO_WORDS if len(queries) == 1 else KernelRows.of(None, len(queries))
            queries.W, queries.word_rows, queries.pair_rows = None, no_words, _NO_PAIRS
            queries.pair_weight, queries.pair_offset, queries.pairs_digest = 1.0, 0, ""
        else:
            queries.W, queries.word_rows, queries.pair_rows = like.W, words, like.pair_rows
            queries.pair_weight, queries.pair_offset = like.pair_weight, like.pair_offset
            queries.pairs_digest = like.pairs_digest
        return queries

    @cached_property
    def terms(self) -> csr_array:
        """Weights in the columns of the index."""
        return self.term_rows.csr(self.n_columns)

    @cached_property
    def words(self) -> csr_array | None:
        """Weights of the words that W expands, or None."""
        return None if self.W is None else self.word_rows.csr(self.W.shape[0])

    @cached_property
    def term_rows(self) -> KernelRows:
        """`terms` for the kernels."""
        return KernelRows.of(self.terms, len(self))

    @cached_property
    def word_rows(self) -> KernelRows:
        """`words` for the kernels."""
        return KernelRows.of(self.words, len(self))

    @cached_property
    def pair_rows(self) -> KernelRows:
        """W for the kernels."""
        return KernelRows.of(self.W, 0)

    @property
    def kernel_arguments(self) -> tuple[Any, ...]:
        """Terms, words, W, the weight of pairs and their first column, in the order of the kernels."""
        return (*self.term_rows, *self.word_rows, *self.pair_rows, self.pair_weight, self.pair_offset)

    def __len__(self) -> int:
        return self._shape[0]

    @property
    def n_columns(self) -> int:
        """The number of columns of the index."""
        return self._shape[1]

    def take(self, rows: Any) -> EncodedQuery:
        """Select queries by row number."""
        words = None if self.words is None else self.words[rows]
        return EncodedQuery(self.terms[rows], words, self.W, self.pair_weight, self.pair_offset, self.pairs_digest)

    def expand(self) -> csr_array:
        """Return each query as one row of index columns, in float64."""
        from scipy.sparse import csr_array, hstack

        terms = self.terms.astype(np.float64)
        if self.words is None or self.W is None:
            return csr_array(terms)
        pairs = self.pair_weight * (self.words.astype(np.float64) @ self.W.astype(np.float64))
        after = self.n_columns - self.pair_offset - self.W.shape[1]
        left, right = (csr_array((len(self), width)) for width in (self.pair_offset, after))
        return csr_array(terms + hstack([left, pairs, right], format="csr"))

"""Texts to sparse rows: a vocabulary or hashed columns, and weights.

Columns stand in the code-point order of their words, so that the same texts give the same matrix everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError, DataError, NotFitted
from .analyzer import Analyzer, code_points, read

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WEIGHTS = ("raw", "binary", "tfidf", "sublinear", "bm25")


@dataclass(frozen=True)
class Counts:
    """How often each column occurs in each text, and how many tokens had no column."""

    matrix: csr_array
    unseen: NDArray[np.int64]


class TextFeatures:
    """Texts to a sparse float32 matrix, with scikit-learn's manners.

    columns : int or None – keep this many of the most frequent words (ties: the earlier in code-point order), or all.
    hashing : int or None – no vocabulary: 2**hashing columns (at most 24), a word's column is its hash.
    weight : 'raw', 'binary', 'tfidf' (tf · idf), 'sublinear' ((1 + ln tf) · idf, and tf · idf where tf < 1) or 'bm25',
        where idf = 1 + ln((1 + N) / (1 + df)); bm25 is
        ln(1 + (N − df + ½) / (df + ½)) · tf / (tf + k1 (1 − b + b · length / mean length)).
    unit : divide every row by its length.

    >>> features = TextFeatures(weight="raw", unit=False).fit(["red apple", "green apple"])
    >>> features.words_
    ('apple', 'green', 'red')
    >>> features.transform(["apple, Apple pear"]).toarray()
    array([[2., 0., 0.]], dtype=float32)
    """

    def __init__(
        self,
        weight: str = "sublinear",
        *,
        columns: int | None = None,
        hashing: int | None = None,
        unit: bool = True,
        analyzer: Analyzer | None = None,
        k1: float = 0.9,
        b: float = 0.4,
    ) -> None:
        self.weight = weight
        self.columns = columns
        self.hashing = hashing
        self.unit = unit
        self.analyzer = analyzer or Analyzer()
        self.k1 = k1
        self.b = b

    def fit(self, texts: Iterable[str]) -> Self:
        """Learn the vocabulary and the document frequencies."""
        self.fit_counts(texts)
        return self

    def fit_transform(self, texts: Iterable[str]) -> csr_array:
        """`fit` and `transform` in one reading of the texts."""
        return self.weighted(self.fit_counts(texts))

    def transform(self, texts: Iterable[str]) -> csr_array:
        """out[i, j] = weight of word j in text i; words without a column count for nothing (see `counts`)."""
        return self.weighted(self.counts(texts).matrix)

    def fit_counts(self, *fields: Iterable[str], field_weights: Sequence[float] | None = None) -> csr_array:
        """Learn from documents of one or more fields; returns the weighted sum of the fields' counts."""
        self._judge()
        collected = [_collect(self, field) for field in fields]
        names = sorted(set().union(*(words for words, _ in collected))) if self.hashing is None else []
        self._adopt(tuple(names))
        total = _sum([self._aligned(words, raw) for words, raw in collected], field_weights)
        if self.hashing is None:
            kept = _kept(total, self.columns)
            if len(kept) < len(names):
                total = total[:, kept]
                self._adopt(tuple(names[i] for i in kept))
        df = np.bincount(total.indices, minlength=total.shape[1]).astype(np.int64)
        documents = int(total.shape[0])
        self._learned(df, documents, float(total.sum(dtype=np.float64)) / max(documents, 1))
        return total

    def counts(self, texts: Iterable[str]) -> Counts:
        """Counts of the known words, and the number of tokens that have no column, text by text."""
        self._fitted()
        rows = list(_count_chunks(self, texts, self.vocabulary_))
        from scipy.sparse import csr_array, vstack

        if not rows:
            return Counts(csr_array((0, self.n_columns_), dtype=np.float32), np.zeros(0, np.int64))
        matrix = rows[0].matrix if len(rows) == 1 else csr_array(vstack([r.matrix for r in rows], format="csr"))
        return Counts(_sorted(matrix), np.concatenate([r.unseen for r in rows]))

    def field_counts(self, *fields: Iterable[str], field_weights: Sequence[float] | None = None) -> csr_array:
        """The weighted sum of several fields' counts, on the columns learned before."""
        return _sum([self.counts(field).matrix for field in fields], field_weights)

    def weighted(self, counts: csr_array) -> csr_array:
        """Counts to weights, by `weight` and `unit`."""
        from .._kernels.weights import row_lengths, scale_rows

        self._fitted()
        out = counts.astype(np.float32, copy=True)
        tf = out.data
        if self.weight == "binary":
            tf[:] = 1.0
        elif self.weight in ("tfidf", "sublinear"):
            if self.weight == "sublinear":
                part = np.flatnonzero(tf < 1.0)  # of a field that counts less than 1: its logarithm would fall below 0
                linear = tf[part]
                np.log(tf, out=tf)
                tf += 1.0
                tf[part] = linear
            tf *= self.idf_[out.indices]
        elif self.weight == "bm25":
            length = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
            norm = self.k1 * (1.0 - self.b + self.b * length / (self.mean_length_ or 1.0))
            tf /= tf + np.repeat(norm, np.diff(out.indptr)).astype(np.float32)
            tf *= self.idf_[out.indices]
        if self.unit:
            scale_rows(out.indptr, tf, row_lengths(out.indptr, tf))
        return out

    @property
    def n_columns_(self) -> int:
        """Columns of the matrix."""
        self._fitted()
        return len(self.words_) if self.hashing is None else 1 << self.hashing

    def restore(self, words: tuple[str, ...], df: NDArray[np.int64], documents: int, mean_length: float) -> Self:
        """Take over what another fit has learned (a model file's content)."""
        self._judge()
        self._adopt(words)
        if len(df) != self.n_columns_:
            raise DataError(f"{len(df)} document frequencies for {self.n_columns_} columns")
        self._learned(df, documents, mean_length)
        return self

    def _learned(self, df: NDArray[np.int64], documents: int, mean_length: float) -> None:
        self.df_, self.documents_, self.mean_length_ = df, documents, mean_length
        if self.weight == "bm25":
            idf = np.log1p((documents - df + 0.5) / (df + 0.5))
        else:
            idf = 1.0 + np.log((1.0 + documents) / (1.0 + df))
        self.idf_ = idf.astype(np.float32)

    def _judge(self) -> None:
        validation.choice("weight", self.weight, WEIGHTS)
        validation.number("k1", self.k1, low=0)
        validation.number("b", self.b, low=0, high=1)
        if self.columns is not None:
            validation.count("columns", self.columns, low=1)
        if self.hashing is not None:
            validation.count("hashing", self.hashing, low=1, high=24)
            if self.columns is not None:
                raise ConfigError("'columns' keeps the most frequent words and 'hashing' keeps none; give one of them")

    def _fitted(self) -> None:
        if not hasattr(self, "words_"):
            raise NotFitted("these features have no vocabulary yet; call fit first")

    def _adopt(self, words: tuple[str, ...]) -> None:
        self.words_ = words
        self.vocabulary_ = {word: column for column, word in enumerate(words)}

    def _aligned(self, words: list[str], counts: csr_array) -> csr_array:
        """Move columns numbered by first appearance to the places of their words."""
        if self.hashing is not None:
            return _sorted(counts)
        from scipy.sparse import csr_array

        place = np.fromiter((self.vocabulary_[word] for word in words), np.int32, len(words))
        indices = place[counts.indices] if len(words) else counts.indices
        shape = (counts.shape[0], len(self.words_))
        return _sorted(csr_array((counts.data, indices, counts.indptr), shape=shape))


def _sorted(counts: csr_array) -> csr_array:
    """Rows with rising column numbers; two transpositions are linear where a sort is not, but pay for every column."""
    out = counts.copy() if counts.nnz * 8 < counts.shape[1] else counts.tocsc().tocsr()
    out.sort_indices()
    return out


def _kept(counts: csr_array, columns: int | None) -> NDArray[np.intp]:
    """The columns that some text has, and of these the `columns` most frequent ones, in their order."""
    there = np.flatnonzero(np.bincount(counts.indices, minlength=counts.shape[1]))
    if columns is None or columns >= len(there):
        return there
    # in 64 bits: a sum of 32 would stop at 2^24, and depend on the order of the texts
    frequency = np.bincount(counts.indices, counts.data, counts.shape[1])[there]
    return there[np.sort(np.argsort(-frequency, kind="stable")[:columns])]


def _sum(parts: list[csr_array], weights: Sequence[float] | None) -> csr_array:
    weights = [1.0] * len(parts) if weights is None else [validation.number("field weight", w, low=0) for w in weights]
    if len(weights) != len(parts):
        raise ConfigError(f"{len(parts)} fields need {len(parts)} weights; got {len(weights)}")
    if len(parts) == 1 and weights[0] == 1.0:
        return parts[0]
    total = parts[0] * np.float32(weights[0])
    for part, weight in zip(parts[1:], weights[1:], strict=True):
        if part.shape[0] != total.shape[0]:
            raise DataError(f"fields of unequal length: {total.shape[0]} and {part.shape[0]} texts")
        total = total + part * np.float32(weight)
    total.eliminate_zeros()
    return _sorted(total)


def _collect(features: TextFeatures, texts: Iterable[str]) -> tuple[list[str], csr_array]:
    """Counts with one column for every word met, in order of first appearance (hashed: all columns)."""
    from scipy.sparse import csr_array, vstack

    growing: dict[str, int] = {}
    parts = [counts.matrix for counts in _count_chunks(features, texts, growing, grow=True)]
    width = len(growing) if features.hashing is None else 1 << features.hashing
    for part in parts:
        part.resize((part.shape[0], width))
    if not parts:
        return [], csr_array((0, width), dtype=np.float32)
    return list(growing), parts[0] if len(parts) == 1 else csr_array(vstack(parts, format="csr"))


def _count_chunks(
    features: TextFeatures, texts: Iterable[str], vocabulary: dict[str, int], grow: bool = False
) -> Iterator[Counts]:
    """Counts chunk by chunk; with `grow`, a word that is new gets the next free column."""
    from scipy.sparse import csr_array

    from .._kernels.words import count_tokens

    for names, tokens, stops in read(features.analyzer, texts):
        if features.hashing is not None:
            columns = (_hashes(names) & np.uint64((1 << features.hashing) - 1)).astype(np.int32)
            width = 1 << features.hashing
        else:
            if grow:
                columns = np.fromiter((vocabulary.setdefault(n, len(vocabulary)) for n in names), np.int32, len(names))
            else:
                columns = np.fromiter((vocabulary.get(n, -1) for n in names), np.int32, len(names))
            width = len(vocabulary)
        indptr, indices, counts, unseen = count_tokens(tokens, stops, columns)
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        matrix = csr_array((counts, indices, indptr), shape=(len(stops), width))
        if features.hashing is not None:
            matrix.sum_duplicates()
        yield Counts(matrix, unseen)


def _hashes(names: list[str]) -> NDArray[np.uint64]:
    from .._kernels.words import hash_strings

    codes, ends = code_points(names)
    out: NDArray[np.uint64] = hash_strings(codes, np.concatenate([[0], ends]).astype(np.int64))
    return out

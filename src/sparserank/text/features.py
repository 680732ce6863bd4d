"""Convert texts to sparse matrices: a vocabulary or hashed columns, and term weights.

Columns are in the code-point order of their words, so the same texts give the same matrix on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..deprecated import renamed_attribute
from ..errors import ConfigError, DataError, NotFitted
from ..parameters import Parameters
from .analyzer import Analyzer, as_analyzer
from .languages import AUTO
from .sparse_counts import frequent_columns, inverse_document_frequency, sort_columns, stack_rows, weighted_sum
from .spellings import Spellings
from .tokens import count_columns, hash_names, short_text_words, tokenize, with_grams

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHORT_TEXT = 1000
"""Characters of a single text that is counted word by word."""
WEIGHTS = ("raw", "binary", "tfidf", "sublinear", "bm25")


@dataclass(frozen=True)
class Counts:
    """How often each column occurs in each text, and the number of tokens without a column.

    Parameters
    ----------
    matrix : csr_array of shape (n_texts, n_columns)
        The counts.
    unseen : array of shape (n_texts,)
        The number of tokens that have no column.
    """

    matrix: csr_array
    unseen: NDArray[np.int64]


@dataclass(eq=False, repr=False)
class TextFeatures(Parameters):
    """Convert texts to a sparse float32 matrix of term weights. It is a scikit-learn transformer.

    Parameters
    ----------
    weight : {"raw", "binary", "tfidf", "sublinear", "bm25"}, default="sublinear"
        The weight of a word that occurs tf times in a text and in df of N texts. "tfidf" is tf · idf and "sublinear"
        is (1 + ln tf) · idf (tf · idf if tf < 1), with idf = 1 + ln((1 + N) / (1 + df)). "bm25" is
        ln(1 + (N − df + ½) / (df + ½)) · tf / (tf + k1 (1 − b + b · length / mean length)).
    columns : int or None, default=None
        Keep this number of the most frequent words; ties go to the earlier word. None keeps all words.
    hashing : int or None, default=None
        Use 2**hashing columns without a vocabulary; the hash of a word is its column. At most 24.
    unit : bool, default=True
        Whether to divide every row by its Euclidean length.
    analyzer : Analyzer, str or None, default=None
        How texts are split into words. A string is a language, None is `Analyzer()`.
    k1 : float, default=0.9
        BM25's term-frequency saturation.
    b : float, default=0.4
        BM25's length normalization, from 0 to 1.

    Attributes
    ----------
    words_ : tuple of str
        The word of each column.
    vocabulary_ : dict of str to int
        The column of each word.
    idf_ : array of shape (n_columns,)
        The inverse document frequency of each column.
    analyzer_ : Analyzer
        The analyzer, with the detected languages if its language is "auto".
    spellings_ : Spellings
        How the words of each stem are spelled.

    Examples
    --------
    >>> features = TextFeatures(weight="raw", unit=False).fit(["red apple", "green apple"])
    >>> features.words_
    ('apple', 'green', 'red')
    >>> features.transform(["apple, Apple pear"]).toarray()
    array([[2., 0., 0.]], dtype=float32)
    """

    weight: str = "sublinear"
    _: KW_ONLY
    columns: int | None = None
    hashing: int | None = None
    unit: bool = True
    analyzer: Analyzer | str | None = None
    k1: float = 0.9
    b: float = 0.4

    weighted = renamed_attribute("weighted", "apply_weights")

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn the vocabulary and the document frequencies.

        Parameters
        ----------
        texts, y : iterable of str, and object
            The texts; `y` is ignored.
        """
        self.fit_counts(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> csr_array:
        """Fit and transform while reading the texts once.

        Parameters
        ----------
        texts, y : iterable of str, and object
            The texts; `y` is ignored.
        """
        return self.apply_weights(self.fit_counts(texts))

    def transform(self, texts: Iterable[str]) -> csr_array:
        """Return the weights of the words of each text; words without a column are ignored.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        """
        return self.apply_weights(self.counts(texts).matrix)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the word of each column.

        Parameters
        ----------
        input_features : object, default=None
            Ignored.
        """
        self._check_fitted()
        names = self.words_ if self.hashing is None else [str(column) for column in range(self.n_columns_)]
        return np.array(names, dtype=object)

    def fit_counts(
        self, *fields: Iterable[str], field_weights: Sequence[float] | None = None, spellings: Spellings | None = None
    ) -> csr_array:
        """Fit on documents with one or more fields.

        Parameters
        ----------
        *fields : iterables of str
            One text per document, for each field.
        field_weights : sequence of float or None, default=None
            The weight of each field's counts; 1 by default.
        spellings : Spellings or None, default=None
            Where the spellings of stems are counted; those of several collections add up.
        """
        parts = self._collect_fields(fields, spellings or Spellings())
        names, total = self.words_, weighted_sum(parts, field_weights)
        if self.hashing is None:
            frequent = frequent_columns(total, self.columns)
            if len(frequent) < len(names):
                total = total[:, frequent]
                self._set_vocabulary(tuple(names[i] for i in frequent))
        self._learn_statistics(total)
        return total

    def fit_fields(self, *fields: Iterable[str]) -> list[csr_array]:
        """Fit on documents with several fields and return the counts of each; a document has all words of its fields.

        Parameters
        ----------
        *fields : iterables of str
            One text per document, for each field.
        """
        parts = self._collect_fields(fields, Spellings())
        self._learn_statistics(weighted_sum(parts, None))
        return parts

    def _collect_fields(self, fields: tuple[Iterable[str], ...], spellings: Spellings) -> list[csr_array]:
        """Set the vocabulary of all fields and count the spellings of words; return the counts of each field."""
        self._validate()
        analyzer = as_analyzer(self.analyzer)
        if analyzer.language == AUTO or analyzer.compounds is True:  # the texts are read twice
            fields = tuple(map(list, fields))
        self.analyzer_, self.spellings_ = analyzer.resolve(*fields), spellings
        collected = [_collect(self, field, self.spellings_) for field in fields]
        names = sorted(set().union(*(words for words, _ in collected))) if self.hashing is None else []
        self._set_vocabulary(tuple(names))
        return [self._aligned(words, raw) for words, raw in collected]

    def _learn_statistics(self, counts: csr_array) -> None:
        df = np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.int64)
        self._set_statistics(df, counts.shape[0], float(counts.sum(dtype=np.float64)) / max(counts.shape[0], 1))

    def counts(self, texts: Iterable[str]) -> Counts:
        """Count the known words of each text.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        """
        self._check_fitted()
        words = self.short_words(texts[0]) if type(texts) is list and len(texts) == 1 else None
        if words is not None:  # a query: without the arrays that pay for many texts only
            from scipy.sparse import csr_array

            tokens = with_grams(words, self.analyzer_.ngrams)
            columns, counted, unseen = count_columns(tokens, self.vocabulary_)
            row = csr_array((counted, columns, np.array([0, len(columns)], np.int32)), shape=(1, self.n_columns_))
            return Counts(row, np.array([unseen], np.int64))
        rows = list(_count_chunks(self, texts, self.vocabulary_))
        matrix = stack_rows([row.matrix for row in rows], self.n_columns_)
        return Counts(sort_columns(matrix), np.concatenate([np.zeros(0, np.int64), *(row.unseen for row in rows)]))

    def short_words(self, text: str) -> list[str] | None:
        """Return the words of a short text without n-grams; None for a longer one, or if columns are hashed.

        Parameters
        ----------
        text : str
            The text.
        """
        is_text: bool = isinstance(text, str)  # `counts` says what is wrong with other objects
        if is_text and self.hashing is None and len(text) <= SHORT_TEXT:
            return short_text_words(self.analyzer_, text)
        return None

    def count_words(self, text: str, words: list[str] | None = None) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the columns of the known words of one text, in ascending order, and how often each occurs.

        The same as `counts` for one text, without a csr_array, which takes longer to make than a query to count.

        Parameters
        ----------
        text : str
            The text.
        words : list of str, optional
            What `short_words` returned, if it was called already, here or with an analyzer of other n-grams.

        Examples
        --------
        >>> TextFeatures(weight="raw", unit=False).fit(["red apple"]).count_words("Red, red pear")
        (array([1], dtype=int32), array([2.], dtype=float32))
        """
        self._check_fitted()
        words = self.short_words(text) if words is None else words
        if words is not None:
            return count_columns(with_grams(words, self.analyzer_.ngrams), self.vocabulary_)[:2]
        matrix = self.counts([text]).matrix
        return matrix.indices.astype(np.int32, copy=False), matrix.data

    def field_counts(self, *fields: Iterable[str], field_weights: Sequence[float] | None = None) -> csr_array:
        """Count the known words of documents with several fields.

        Parameters
        ----------
        *fields, field_weights : iterables of str, and sequence of float
            As in `fit_counts`.
        """
        return weighted_sum([self.counts(field).matrix for field in fields], field_weights)

    def apply_weights(self, counts: csr_array) -> csr_array:
        """Convert counts to weights.

        Parameters
        ----------
        counts : csr_array of shape (n_texts, n_columns)
            What `counts` or `fit_counts` returned.
        """
        from .._kernels.weights import row_lengths, scale_rows

        self._check_fitted()
        out = counts.astype(np.float32, copy=True)
        tf = out.data
        if self.weight == "binary":
            tf[:] = 1.0
        elif self.weight in ("tfidf", "sublinear"):
            if self.weight == "sublinear":
                part = np.flatnonzero(tf < 1.0)  # fields with a weight below 1: the logarithm could be negative
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
        """The number of columns of the matrix."""
        self._check_fitted()
        return len(self.words_) if self.hashing is None else 1 << self.hashing

    def restore(self, words: tuple[str, ...], df: NDArray[np.int64], documents: int, mean_length: float) -> Self:
        """Set the fitted state, such as the content of a model file.

        Parameters
        ----------
        words, df : tuple of str and array of int64
            The word and the document frequency of each column.
        documents, mean_length : int and float
            The number of documents, and their mean number of tokens.
        """
        self._validate()
        self.analyzer_, self.spellings_ = as_analyzer(self.analyzer), Spellings()
        self._set_vocabulary(words)
        if len(df) != self.n_columns_:
            raise DataError(f"{len(df)} document frequencies for {self.n_columns_} columns")
        self._set_statistics(df, documents, mean_length)
        return self

    def _set_statistics(self, df: NDArray[np.int64], documents: int, mean_length: float) -> None:
        self.df_, self.documents_, self.mean_length_ = df, documents, mean_length
        self.idf_ = inverse_document_frequency(df, documents, self.weight)

    def _validate(self) -> None:
        validation.choice("weight", self.weight, WEIGHTS)
        as_analyzer(self.analyzer)
        validation.number("k1", self.k1, low=0)
        validation.number("b", self.b, low=0, high=1)
        if self.columns is not None:
            validation.count("columns", self.columns, low=1)
        if self.hashing is not None:
            validation.count("hashing", self.hashing, low=1, high=24)
            if self.columns is not None:
                raise ConfigError("'columns' keeps the most frequent words and 'hashing' keeps none; give one of them")

    def _check_fitted(self) -> None:
        if not hasattr(self, "words_"):
            raise NotFitted("TextFeatures has no vocabulary yet; call fit first")

    def _set_vocabulary(self, words: tuple[str, ...]) -> None:
        self.words_ = words
        self.vocabulary_ = {word: column for column, word in enumerate(words)}

    def _aligned(self, words: list[str], counts: csr_array) -> csr_array:
        """Reorder columns that were numbered by first appearance."""
        if self.hashing is not None:
            return sort_columns(counts)
        from scipy.sparse import csr_array

        place = np.fromiter((self.vocabulary_[word] for word in words), np.int32, len(words))
        indices = place[counts.indices] if len(words) else counts.indices
        shape = (counts.shape[0], len(self.words_))
        return sort_columns(csr_array((counts.data, indices, counts.indptr), shape=shape))


def _collect(features: TextFeatures, texts: Iterable[str], spellings: Spellings) -> tuple[list[str], csr_array]:
    """Counts with one column per word, in order of first appearance; hashing gives all columns."""
    growing: dict[str, int] = {}
    counted = None if features.hashing is not None else spellings
    parts = [counts.matrix for counts in _count_chunks(features, texts, growing, grow=True, spellings=counted)]
    width = len(growing) if features.hashing is None else 1 << features.hashing
    for part in parts:
        part.resize((part.shape[0], width))
    return list(growing), stack_rows(parts, width)


def _count_chunks(
    features: TextFeatures, texts: Iterable[str], vocabulary: dict[str, int], grow: bool = False,
    spellings: Spellings | None = None,
) -> Iterator[Counts]:  # fmt: skip
    """Yield counts chunk by chunk; with `grow`, a new word gets the next free column."""
    from scipy.sparse import csr_array

    from .._kernels.words import count_tokens

    for names, tokens, stops in tokenize(features.analyzer_, texts, spellings):
        if features.hashing is not None:
            columns = (hash_names(names) & np.uint64((1 << features.hashing) - 1)).astype(np.int32)
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

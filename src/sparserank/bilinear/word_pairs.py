"""WordPairs: the methods that read a learned W, such as scores, explanations, related words and its largest pairs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import deprecated, validation
from ..data.files import PathLike
from ..errors import DataError, NotFitted
from ..optim.pruning import find_row_largest, keep_largest
from ..optim.scores import Bilinear, in_float32, rows
from ..search.explanation import Contribution, Explanation

if TYPE_CHECKING:
    from scipy.sparse import csr_array


log = logging.getLogger("sparserank")


class EmptyRows(NamedTuple):
    """The rows of Q and D without an entry, such as a query of unknown words; they score 0 for any W.

    `fit` stores the counts in its `Solution`; `scores` logs them.
    """

    queries: NDArray[np.intp]
    documents: NDArray[np.intp]

    @classmethod
    def of(cls, score: Bilinear) -> EmptyRows:
        """Find them from the row pointers."""
        return cls(*(np.flatnonzero(np.diff(side.indptr) == 0) for side in (score.queries, score.items)))

    def report(self, level: int, score: Bilinear) -> None:
        """Log how many there are and which is the first, if there are any."""
        sides = (("queries", self.queries, score.queries), ("documents", self.documents, score.items))
        counts = [
            f"{len(empty):,} of {side.shape[0]:,} {name} (the first is row {empty[0]})"
            for name, empty, side in sides
            if len(empty)
        ]
        if counts:
            log.log(level, "%s: no known word, so every score is 0", " and ".join(counts))


class WordPairs:
    """A matrix W and the names of its rows and columns."""

    W_: csr_array
    query_words_: tuple[str, ...] | None
    document_words_: tuple[str, ...] | None

    def _fitted(self) -> csr_array:
        if not hasattr(self, "W_"):
            raise NotFitted(f"this {type(self).__name__} is not fitted yet; call fit first")
        return self.W_

    def scores(self, Q: Any, D: Any) -> NDArray[np.float32]:
        """Score every row of D for every row of Q: out[i, j] = Q[i]ᵀ W D[j].

        Rows without a known word score 0; a warning is logged that counts them.

        Parameters
        ----------
        Q, D : sparse or dense arrays of shape (n_queries, n_query_features) and (n_documents, n_document_features)
            Query and document vectors.
        """
        score = self._bilinear(Q, D)
        EmptyRows.of(score).report(logging.WARNING, score)
        return score.scores(self.W_)

    def empty_rows(self, Q: Any, D: Any) -> EmptyRows:
        """Return the rows of Q and D without a known word.

        Parameters
        ----------
        Q, D : sparse or dense array
            Query and document vectors.
        """
        return EmptyRows.of(self._bilinear(Q, D))

    def _bilinear(self, Q: Any, D: Any) -> Bilinear:
        """Q and D, which must have the columns of W."""
        W, score = self._fitted(), Bilinear.of(Q, D)
        if score.shape != W.shape:
            raise DataError(f"W is {W.shape}, but Q has {score.shape[0]} columns and D {score.shape[1]}")
        return score

    @property
    def density_(self) -> float:
        """The share of the entries of W that are not 0."""
        W = self._fitted()
        return float(W.nnz / (W.shape[0] * W.shape[1]))

    @property
    def megabytes_(self) -> float:
        """The size of the arrays that hold W."""
        W = self._fitted()
        return float((W.data.nbytes + W.indices.nbytes + W.indptr.nbytes) / 1e6)

    def explain(self, q: Any, d: Any) -> Explanation:
        """Explain a score: what every pair of a query word and a document word adds to qᵀ W d, the largest first.

        Parameters
        ----------
        q, d : sparse or dense row
            One query vector and one document vector.
        """
        W = self._fitted()
        query, item = (rows(name, _as_row(row)) for name, row in (("q", q), ("d", d)))
        if query.shape != (1, W.shape[0]) or item.shape != (1, W.shape[1]):
            raise DataError(
                f"q and d must be one row of {W.shape[0]} and of {W.shape[1]}; got {query.shape}, {item.shape}"
            )
        block = W[query.indices][:, item.indices].tocoo()
        value = query.data.astype(np.float64)[block.row] * block.data * item.data.astype(np.float64)[block.col]
        order = np.argsort(-np.abs(value), kind="stable")
        pairs = tuple(
            self._contribution(query.indices[block.row[k]], item.indices[block.col[k]], value[k])
            for k in order
            if value[k] != 0.0
        )
        return Explanation(float(in_float32(value.sum().reshape(1, 1))[0, 0]), pairs)

    def related(self, word: str | int, k: int = 5) -> list[tuple[str, float]]:
        """Return the document words with the largest weights for a query word, and the weights, the largest first.

        Parameters
        ----------
        word : str or int
            A query word, or its column number.
        k : int, default=5
            The largest number of words.
        """
        W = self._fitted()
        row = word if isinstance(word, int) else _place("query", self.query_words_, word)
        if not 0 <= row < W.shape[0]:
            raise DataError(f"query columns have the numbers 0 to {W.shape[0] - 1}; got {row}")
        best = find_row_largest(W, row, validation.count("k", k, low=1), signed=True)
        return [(self._word(self.document_words_, W.indices[i]), float(W.data[i])) for i in best]

    def top_pairs(self, k: int = 20) -> list[Contribution]:
        """Return the entries of W with the largest absolute values, as (query word, document word, weight).

        Parameters
        ----------
        k : int, default=20
            The largest number of entries.
        """
        W = keep_largest(self._fitted(), validation.count("k", k, low=1)).tocoo()
        order = np.argsort(-np.abs(W.data), kind="stable")
        return [self._contribution(W.row[i], W.col[i], W.data[i]) for i in order]

    def submatrix(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the dense block of W between words: out[i, j] is the weight of words[i] as query and words[j].

        Parameters
        ----------
        words : sequence of str
            Words that are both query words and document words.
        """
        W = self._fitted()
        if isinstance(words, str) or len(words) == 0:
            raise DataError(f"words must be a list of words; got {words!r}")
        sides = (("query", self.query_words_), ("document", self.document_words_))
        row, column = ([_place(side, known, word) for word in words] for side, known in sides)
        return np.asarray(W[row][:, column].toarray(), dtype=np.float32)

    between = deprecated.renamed_attribute("between", "submatrix")

    def heatmap(self, words: Sequence[str], path: PathLike) -> None:
        """Write `submatrix(words)` as a PNG: query words down, document words across, red above 0 and blue below.

        It needs the extra `plot`.

        Parameters
        ----------
        words : sequence of str
            Words that are both query words and document words.
        path : path-like
            The PNG file.
        """
        from ..base.plots import MAX_WORDS, heatmap
        from ..data.files import write_bytes

        if len(words) > MAX_WORDS:
            raise DataError(f"a heat map shows at most {MAX_WORDS} words; got {len(words)}")
        write_bytes(path, heatmap(words, self.submatrix(words)), compress=False)

    def _contribution(self, row: Any, column: Any, value: Any) -> Contribution:
        words = self._word(self.query_words_, row), self._word(self.document_words_, column)
        return Contribution(*words, float(value))

    @staticmethod
    def _word(words: tuple[str, ...] | None, column: Any) -> str:
        return str(int(column)) if words is None else words[int(column)]


def _place(side: str, words: tuple[str, ...] | None, word: str) -> int:
    """The column of a word; an unknown word raises DataError with similar words."""
    if words is None:
        raise DataError(f"the columns have no names; give {side}_words to fit, or use column numbers")
    try:
        return words.index(word)
    except ValueError:
        alike = [other for other in words if other[:1] == str(word)[:1].lower()]  # difflib is slow on all of them
        near = get_close_matches(str(word).lower(), alike, n=3)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise DataError(f"{word!r} is not among the {len(words)} {side} words{hint}") from None


def _as_row(row: Any) -> Any:
    from scipy.sparse import issparse

    if not issparse(row):
        return np.atleast_2d(np.asarray(row))
    return row.reshape(1, -1) if row.ndim == 1 else row  # a row of a csr_array has one dimension


def column_words(
    query_words: Sequence[str] | None, document_words: Sequence[str] | None, shape: tuple[int, int]
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Validate the names of the columns of both sides; None stays None."""
    for side, words, width in zip(("query", "document"), (query_words, document_words), shape, strict=True):
        if words is not None and len(words) != width:
            raise DataError(f"{width} {side} columns need {width} words; got {len(words)}")
    query, document = (None if words is None else tuple(words) for words in (query_words, document_words))
    return query, document

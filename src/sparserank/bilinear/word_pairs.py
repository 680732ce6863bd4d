"""What a learned W can be asked: scores, explanations, related words, its largest pairs, a picture of some of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.files import PathLike
from ..errors import DataError, NotFitted
from ..optim.pruning import keep_largest
from ..optim.scores import Bilinear, in_float32, rows
from ..search.explanation import Contribution, Explanation
from .empty_rows import EmptyRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class WordPairs:
    """W and the names of its rows and columns."""

    W_: csr_array
    query_words_: tuple[str, ...] | None
    document_words_: tuple[str, ...] | None

    def _fitted(self) -> csr_array:
        if not hasattr(self, "W_"):
            raise NotFitted("this ranker has learned nothing yet; call fit first")
        return self.W_

    def scores(self, Q: Any, D: Any) -> NDArray[np.float32]:
        """out[i, j] = Q[i]ᵀ W D[j]; a row without known words scores 0, and a line is logged that counts them."""
        score = self._fitting(Q, D)
        EmptyRows.of(score).report(logging.WARNING, score)
        return score.scores(self.W_)

    def empty_rows(self, Q: Any, D: Any) -> EmptyRows:
        """The rows of Q and of D without a known word, by number: whatever W is, they score 0."""
        return EmptyRows.of(self._fitting(Q, D))

    def _fitting(self, Q: Any, D: Any) -> Bilinear:
        """Q and D, which must have the columns of W."""
        W, score = self._fitted(), Bilinear.of(Q, D)
        if score.shape != W.shape:
            raise DataError(f"W is {W.shape}, but Q has {score.shape[0]} columns and D {score.shape[1]}")
        return score

    @property
    def density_(self) -> float:
        """Nonzeros of W over all its places."""
        W = self._fitted()
        return float(W.nnz / (W.shape[0] * W.shape[1]))

    @property
    def megabytes_(self) -> float:
        """Of the arrays that hold W: values, columns, and where rows start."""
        W = self._fitted()
        return float((W.data.nbytes + W.indices.nbytes + W.indptr.nbytes) / 1e6)

    def explain(self, q: Any, d: Any) -> Explanation:
        """What every pair of a query word and a document word adds to qᵀ W d."""
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
            Contribution(
                self._word(self.query_words_, query.indices[block.row[k]]),
                self._word(self.document_words_, item.indices[block.col[k]]),
                float(value[k]),
            )
            for k in order
            if value[k] != 0.0
        )
        return Explanation(float(in_float32(value.sum().reshape(1, 1))[0, 0]), pairs)

    def related(self, word: str | int, k: int = 5) -> list[tuple[str, float]]:
        """The document words that a query word has learned to look for, and how much: the largest of its row of W."""
        W = self._fitted()
        row = word if isinstance(word, int) else self._column(word)
        if not 0 <= row < W.shape[0]:
            raise DataError(f"query columns are numbered 0 to {W.shape[0] - 1}; got {row}")
        a, b = W.indptr[row], W.indptr[row + 1]
        best = np.argsort(-W.data[a:b], kind="stable")[: validation.count("k", k, low=1)]
        return [(self._word(self.document_words_, W.indices[a + i]), float(W.data[a + i])) for i in best]

    def top_pairs(self, k: int = 20) -> list[Contribution]:
        """The largest entries of W, whatever their sign, as (query word, document word, weight)."""
        W = keep_largest(self._fitted(), validation.count("k", k, low=1)).tocoo()
        order = np.argsort(-np.abs(W.data), kind="stable")
        return [
            Contribution(
                self._word(self.query_words_, W.row[i]), self._word(self.document_words_, W.col[i]), float(W.data[i])
            )
            for i in order
        ]

    def between(self, words: Sequence[str]) -> NDArray[np.float32]:
        """out[i, j] = what query word words[i] looks for document word words[j] with: a small block of W, dense."""
        W = self._fitted()
        if isinstance(words, str) or len(words) == 0:
            raise DataError(f"a list of words is wanted; got {words!r}")
        sides = (("query", self.query_words_), ("document", self.document_words_))
        row, column = ([_place(side, named, word) for word in words] for side, named in sides)
        return np.asarray(W[row][:, column].toarray(), dtype=np.float32)

    def heatmap(self, words: Sequence[str], path: PathLike) -> None:
        """Write `between(words)` as a PNG: query words down, document words across, red above 0 and blue below.

        Needs the extra `plot`. Every word must be among the query words and the document words.
        """
        from ..base.plots import MOST_WORDS, heatmap
        from ..data.files import write_bytes

        if len(words) > MOST_WORDS:
            raise DataError(f"a heat map shows at most {MOST_WORDS} words; got {len(words)}")
        write_bytes(path, heatmap(words, self.between(words)), pack=False)

    def _column(self, word: str) -> int:
        return _place("query", self.query_words_, word)

    @staticmethod
    def _word(words: tuple[str, ...] | None, column: Any) -> str:
        return str(int(column)) if words is None else words[int(column)]


def _place(side: str, words: tuple[str, ...] | None, word: str) -> int:
    """The number of a word's column, or a complaint that names the words most like it."""
    if words is None:
        raise DataError(f"the columns have no names; give {side}_words to fit, or ask by number")
    try:
        return words.index(word)
    except ValueError:
        alike = [other for other in words if other[:1] == str(word)[:1].lower()]  # difflib is slow on all of them
        near = get_close_matches(str(word).lower(), alike, n=3)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise DataError(f"{word!r} is not among the {len(words)} {side} words{hint}") from None


def _as_row(row: Any) -> Any:
    from scipy.sparse import issparse

    return row if issparse(row) else np.atleast_2d(np.asarray(row))


def named(
    query_words: Sequence[str] | None, document_words: Sequence[str] | None, shape: tuple[int, int]
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The words of both sides, one a column, or None."""
    for side, words, width in zip(("query", "document"), (query_words, document_words), shape, strict=True):
        if words is not None and len(words) != width:
            raise DataError(f"{width} {side} columns need {width} words; got {len(words)}")
    query, document = (None if words is None else tuple(words) for words in (query_words, document_words))
    return query, document

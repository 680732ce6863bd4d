"""What a learned W can be asked: scores, explanations, related words, its largest pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import check
from ..errors import DataError, NotFitted
from ..scores import Bilinear, rows
from ..solvers.density import cut
from .explanation import Contribution, Explanation

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
        """out[i, j] = Q[i]ᵀ W D[j]; a row without known words scores 0."""
        W, score = self._fitted(), Bilinear.of(Q, D)
        if score.shape != W.shape:
            raise DataError(f"W is {W.shape}, but Q has {score.shape[0]} columns and D {score.shape[1]}")
        return score.scores(W)

    @property
    def density_(self) -> float:
        """Nonzeros of W over all its places."""
        W = self._fitted()
        return float(W.nnz / (W.shape[0] * W.shape[1]))

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
        return Explanation(float(np.float32(value.sum())), pairs)

    def related(self, word: str | int, k: int = 5) -> list[tuple[str, float]]:
        """The document words that a query word has learned to look for, and how much: the largest of its row of W."""
        W = self._fitted()
        row = word if isinstance(word, int) else self._column(word)
        if not 0 <= row < W.shape[0]:
            raise DataError(f"query columns are numbered 0 to {W.shape[0] - 1}; got {row}")
        a, b = W.indptr[row], W.indptr[row + 1]
        best = np.argsort(-W.data[a:b], kind="stable")[: check.count("k", k, low=1)]
        return [(self._word(self.document_words_, W.indices[a + i]), float(W.data[a + i])) for i in best]

    def top_pairs(self, k: int = 20) -> list[Contribution]:
        """The largest entries of W, whatever their sign, as (query word, document word, weight)."""
        W = cut(self._fitted(), check.count("k", k, low=1)).tocoo()
        order = np.argsort(-np.abs(W.data), kind="stable")
        return [
            Contribution(
                self._word(self.query_words_, W.row[i]), self._word(self.document_words_, W.col[i]), float(W.data[i])
            )
            for i in order
        ]

    def _column(self, word: str) -> int:
        if self.query_words_ is None:
            raise DataError("the columns have no names; give query_words to fit, or ask by number")
        try:
            return self.query_words_.index(word)
        except ValueError:
            raise DataError(f"{word!r} is not among the {len(self.query_words_)} query words") from None

    @staticmethod
    def _word(words: tuple[str, ...] | None, column: Any) -> str:
        return str(int(column)) if words is None else words[int(column)]


def _as_row(row: Any) -> Any:
    from scipy.sparse import issparse

    return row if issparse(row) else np.atleast_2d(np.asarray(row))

"""Why a document has its score: which query word met which document word, and what it added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..search.explanation import Contribution, Explanation
from ..search.index import Index
from .model import TextModel

if TYPE_CHECKING:
    from scipy.sparse import csr_array


Met = tuple[str, str, float, bool]
"""A word of the query, one of the document, what the two add, and whether that was learned."""


class Rest(NamedTuple):
    """Pairs that are not listed: how many, and what they add as words themselves, as learned pairs, and below 0."""

    pairs: int
    lexical: float
    learned: float
    away: float


class Listed(NamedTuple):
    """A score, the pairs that made it, the largest first, and those that were left out."""

    score: float
    pairs: list[Met]
    rest: Rest


def explain(index: Index, query: csr_array, doc_id: str, words: Sequence[str]) -> Explanation:
    """Explain the score of one document for one query row.

    Every product is taken in 64 bits, as the search does, so the score is the one that the search shows.
    """
    terms = query.indices.astype(np.int64)
    value = query.data.astype(np.float64) * index.weights_of(doc_id, terms).astype(np.float64)
    return _explanation(value, terms, terms, words, words)


@dataclass(frozen=True)
class Explaining:
    """One query, to be explained for any number of documents: what depends on the query alone is looked up once."""

    model: TextModel
    index: Index
    text: str

    def parts(self, doc_id: str) -> tuple[Explanation, Explanation]:
        """Words that met themselves in the lexical score, and learned pairs."""
        lexical = explain(self.index, self._lexical, doc_id, self.model.lexical.words)
        if self._pairs is None or self.model.words is None:
            return lexical, Explanation(0.0, ())
        rows, columns, weight = self._pairs
        behind = columns + len(self.model.lexical.words)
        value = weight * self.index.weights_of(doc_id, behind).astype(np.float64)
        return lexical, _explanation(value, rows, columns, self.model.words.words, self.model.lexical.words)

    def listed(self, doc_id: str, most: int | None = None) -> Listed:
        """`parts` as one list, the largest first, of at most `most`: for those who show them and no more."""
        terms, rows, columns, weight, learned = self._all
        value = weight * self.index.weights_of(doc_id, terms).astype(np.float64)
        every = _largest_first(value)
        met, left = every[:most], every[len(every) if most is None else most :]
        words = self.model.lexical.words
        named = words if self.model.words is None else self.model.words.words
        listed = zip(
            rows[met].tolist(), columns[met].tolist(), value[met].tolist(), (met >= learned).tolist(), strict=True
        )
        pairs = [(named[row] if new else words[row], words[column], added, new) for row, column, added, new in listed]
        return Listed(float(np.float32(value.sum())), pairs, _rest(value[left], left >= learned))

    def whole(self, doc_id: str) -> Explanation:
        """Both together."""
        lexical, learned = self.parts(doc_id)
        return lexical.plus(learned) if learned.pairs else lexical

    @cached_property
    def _all(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]:
        """Terms of the index, rows and columns of what meets there, its weights; how many of them were not learned."""
        own = self._lexical.indices.astype(np.int64)
        weight = self._lexical.data.astype(np.float64)
        if self._pairs is None:
            return own, own, own, weight, len(own)
        rows, columns, adds = self._pairs
        terms = np.concatenate([own, columns + len(self.model.lexical.words)])
        return terms, np.r_[own, rows], np.r_[own, columns], np.r_[weight, adds], len(own)

    @cached_property
    def _lexical(self) -> csr_array:
        return self.model.one(self.text)[0]

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]] | None:
        """Every pair of the query's words: its row and column of W, and what it adds where the document counts 1."""
        query = self.model.one(self.text)[1]
        if query is None or self.model.W is None:
            return None
        entries = self.model.W[query.indices].tocoo()
        weight = self.model.gain * query.data.astype(np.float64)[entries.row] * entries.data
        return query.indices[entries.row].astype(np.int64), entries.col.astype(np.int64), weight


def _rest(value: NDArray[np.float64], learned: NDArray[np.bool_]) -> Rest:
    below = value < 0.0
    parts = (~below & ~learned, ~below & learned, below)
    return Rest(len(value), *(float(value[part].sum()) for part in parts))


def _largest_first(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where there is any, whatever its sign; of equal ones the first."""
    met = np.flatnonzero(value)
    return met[np.argsort(-np.abs(value[met]), kind="stable")]


def _explanation(
    value: NDArray[np.float64],
    rows: NDArray[Any],
    columns: NDArray[Any],
    named: Sequence[str],
    looked_for: Sequence[str],
) -> Explanation:
    """The largest first; what adds nothing is left out."""
    met = _largest_first(value)
    listed = zip(rows[met].tolist(), columns[met].tolist(), value[met].tolist(), strict=True)
    pairs = tuple(Contribution(named[row], looked_for[column], added) for row, column, added in listed)
    return Explanation(float(np.float32(value.sum())), pairs)

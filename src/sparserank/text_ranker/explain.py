"""Explanations: what each pair of a query word and a document word adds to a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..search.encoded_query import KernelRows
from ..search.explanation import Contribution, Explanation
from ..search.index import Index
from ..search.snippets import Passage, passage
from .model import TextModel
from .query_rewriting import RewrittenQuery

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Remainder(NamedTuple):
    """The pairs that are not listed: their number, and the sums of lexical, learned and negative contributions."""

    pairs: int
    lexical: float
    learned: float
    away: float


class Split(NamedTuple):
    """The sums of lexical, learned and negative contributions to a score."""

    lexical: float
    learned: float
    away: float


class Snippet(NamedTuple):
    """The passage of a document for a query, which of its pairs are learned, and what all pairs add to the score."""

    passage: Passage
    learned: list[bool]
    split: Split


class TopContributions(NamedTuple):
    """A score, its largest pairs as (query word, document word, contribution, learned), the remainder, and the notes of
    the pairs.
    """

    score: float
    pairs: list[tuple[str, str, float, bool]]
    remainder: Remainder
    notes: list[str]

    @property
    def split(self) -> Split:
        """The sums of all contributions, listed or not."""
        sums = {"lexical": self.remainder.lexical, "learned": self.remainder.learned, "away": self.remainder.away}
        for _, _, added, learned in self.pairs:
            sums["away" if added < 0.0 else "learned" if learned else "lexical"] += added
        return Split(**sums)


def explain(index: Index, query: csr_array, doc_id: str, words: Sequence[str]) -> Explanation:
    """Explain the score of one document for one query row.

    Products are float64, as in the search, so the score equals that of the search.
    """
    terms = query.indices.astype(np.int64)
    value = query.data.astype(np.float64) * index.weights_of(doc_id, terms).astype(np.float64)
    return _explanation(value, terms, terms, lambda term: (words[term], ""), words)


@dataclass(frozen=True)
class QueryExplainer:
    """Explain one query for any number of documents; what depends on the query alone is computed once."""

    model: TextModel
    index: Index
    query: RewrittenQuery

    def explain(self, doc_id: str) -> Explanation:
        """Explain the whole score."""
        lexical, learned = self.parts(doc_id)
        return replace(lexical.plus(learned), learned=learned.pairs) if learned.pairs else lexical

    def parts(self, doc_id: str) -> tuple[Explanation, Explanation]:
        """Explain the lexical score and the score of learned pairs."""
        words, own = self.model.lexical.words, self._lexical.indices.astype(np.int64)
        value = self._lexical.data.astype(np.float64) * self.index.weights_of(doc_id, own).astype(np.float64)
        lexical = _explanation(value, own, own, self._lexical_word, words)
        return lexical, self.learned(doc_id)

    def learned(self, doc_id: str) -> Explanation:
        """Explain the score of learned pairs."""
        if self._pairs is None or self.model.vocabulary is None:
            return Explanation(0.0, ())
        rows, columns, weight = self._pairs
        terms = columns + len(self.model.lexical.words)
        value = weight * self.index.weights_of(doc_id, terms).astype(np.float64)
        found = _explanation(value, rows, columns, self._learned_word, self.model.lexical.words)
        return replace(found, learned=found.pairs)

    def _lexical_word(self, column: int) -> tuple[str, str]:
        """The query word of a column and its note."""
        return self.query.notes.get(column) or (self.model.lexical.words[column], "")

    def _learned_word(self, row: int) -> tuple[str, str]:
        """The query word of a row of W and its note; a sequence of words has the note of a corrected one."""
        assert self.model.vocabulary is not None
        word = self.model.vocabulary.words[row]
        note = self.query.word_notes.get(word)
        if note is None and self.query.word_notes and " " in word:
            notes = [self.query.word_notes[part].text for part in word.split(" ") if part in self.query.word_notes]
            return word, ", ".join(notes)
        return note or (word, "")

    def top(self, doc_id: str, k: int | None = None) -> TopContributions:
        """Return the k largest contributions of both parts in one list; None returns all."""
        terms, rows, columns, weight, n_lexical = self._all
        value = weight * self.index.weights_of(doc_id, terms).astype(np.float64)
        order = _largest_first(value)
        top, others = order[:k], order[len(order) if k is None else k :]
        words, learned = self.model.lexical.words, (top >= n_lexical).tolist()
        names = [
            self._learned_word(row) if new else self._lexical_word(row)
            for row, new in zip(rows[top].tolist(), learned, strict=True)
        ]
        entries = zip(names, columns[top].tolist(), value[top].tolist(), learned, strict=True)
        pairs = [(query, words[column], added, new) for (query, _), column, added, new in entries]
        is_learned, negative = others >= n_lexical, value[others] < 0.0
        parts = (~negative & ~is_learned, ~negative & is_learned, negative)
        remainder = Remainder(len(others), *(float(value[others][part].sum()) for part in parts))
        return TopContributions(float(np.float32(value.sum())), pairs, remainder, [note for _, note in names])

    def snippets(self, doc_ids: Sequence[str], k: int) -> list[Snippet]:
        """Return the passage of each document for its k largest contributions, and the sums of all.

        The weights of all documents are looked up at once, which is faster than an explanation of each.
        """
        from .._kernels.rescoring import contributions

        terms, _, columns, weight, n_lexical = self._all
        distinct, which = np.unique(terms, return_inverse=True)  # several query words look for the same word
        numbers = [self.index.number(doc_id) for doc_id in doc_ids]
        found = self.index.weights_at(numbers, distinct)
        top, counts, sums = contributions(found, which, weight, n_lexical, k)
        words, analyzer, out = self.model.lexical.words, self.model.lexical.analyzer, []
        for row, (number, n, split) in enumerate(zip(numbers, counts.tolist(), sums.tolist(), strict=True)):
            at = top[row, :n]
            added = weight[at] * found[row, which[at]].astype(np.float64)
            pairs = [(words[column], value) for column, value in zip(columns[at].tolist(), added.tolist(), strict=True)]
            text = passage(analyzer, self.index.text_at(number), pairs)
            out.append(Snippet(text, (at >= n_lexical).tolist(), Split(*split)))
        return out

    @property
    def n_terms(self) -> int:
        """The number of words and pairs whose weights an explanation of one document looks up."""
        return len(self._all[0])

    def passage(self, doc_id: str) -> Passage:
        """Return the passage of a document that explains its score best."""
        words = [(word, contribution) for _, word, contribution, _ in self.top(doc_id).pairs]
        return passage(self.model.lexical.analyzer, self.index.text_of(doc_id), words)

    @cached_property
    def _all(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]:
        """Terms of the index, rows and columns of their pairs, weights; and the number of lexical ones among them."""
        own = self._lexical.indices.astype(np.int64)
        weight = self._lexical.data.astype(np.float64)
        if self._pairs is None:
            return own, own, own, weight, len(own)
        rows, columns, pair_weight = self._pairs
        terms = np.concatenate([own, columns + len(self.model.lexical.words)])
        return terms, np.r_[own, rows], np.r_[own, columns], np.r_[weight, pair_weight], len(own)

    @property
    def _lexical(self) -> KernelRows:
        return self.query.terms

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]] | None:
        """Rows and columns of W for the query's words, and what each adds for a document weight of 1."""
        query = self.query.words
        if query is None or self.model.W is None:
            return None
        W, rows = self.model.W, query.indices
        begin, sizes = W.indptr[rows].astype(np.int64), np.diff(W.indptr)[rows]
        ends = np.cumsum(sizes)
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begin - ends + sizes, sizes)
        weight = np.repeat(self.model.pair_weight * query.data.astype(np.float64), sizes) * W.data[at]
        return np.repeat(rows, sizes).astype(np.int64), W.indices[at].astype(np.int64), weight


def _largest_first(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """The positions of nonzero values, by absolute value; ties keep their order."""
    nonzero = np.flatnonzero(value)
    return nonzero[np.argsort(-np.abs(value[nonzero]), kind="stable")]


def _explanation(
    value: NDArray[np.float64], rows: NDArray[Any], columns: NDArray[Any],
    query_word: Callable[[int], tuple[str, str]], document_words: Sequence[str],
) -> Explanation:  # fmt: skip
    """Return the explanation; `query_word` gives the word of a row and its note."""
    order = _largest_first(value)
    entries = zip(rows[order].tolist(), columns[order].tolist(), value[order].tolist(), strict=True)
    pairs = []
    for row, column, added in entries:
        word, note = query_word(row)
        pairs.append(Contribution(word, document_words[column], added, note))
    return Explanation(float(np.float32(value.sum())), tuple(pairs))

"""The words of a vocabulary as texts spell them, by their first letters or with typing errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .features import TextFeatures
from .normalization import strip_accents
from .word_trie import WordTrie


class Candidate(NamedTuple):
    """A column of the vocabulary, a spelling of its word, and the number of errors between it and a query word."""

    column: int
    spelling: str
    errors: int


class SurfaceForms:
    """All spellings of the words of a fitted vocabulary: people type "apples", and the vocabulary has "appl".

    >>> forms = SurfaceForms(TextFeatures(analyzer="english").fit(["red apples", "an apple", "a pear"]))
    >>> forms.within("aples", errors=1)
    [Candidate(column=0, spelling='apples', errors=1)]
    >>> forms.with_prefix("app")
    (array([0], dtype=int32), array([0.6]))
    """

    def __init__(self, features: TextFeatures) -> None:
        self._folds_accents = features.analyzer_.folds_accents
        spelled, others = features.spellings_.most_frequent(), features.spellings_.others()
        columns: dict[str, list[int]] = {}
        for column, word in enumerate(features.words_):
            if " " not in word:
                columns.setdefault(self.fold(spelled.get(word, word)), []).append(column)
        for word, form in zip(others, features.analyzer_.normal_forms(others), strict=True):
            if form in features.vocabulary_:
                columns.setdefault(self.fold(word), []).append(features.vocabulary_[form])
        self.words = sorted(columns)
        self._columns = np.array([column for word in self.words for column in columns[word]], np.int32)
        self._starts = np.cumsum([0, *(len(columns[word]) for word in self.words)])
        self._lengths = np.repeat([len(word) for word in self.words], np.diff(self._starts))
        self._trie = WordTrie(self.words)

    def fold(self, word: str) -> str:
        """Return a word without accents if its stem has none."""
        return strip_accents(word) if self._folds_accents else word

    def with_prefix(self, prefix: str) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the columns whose words start with these letters, and the share of letters that they are."""
        found = self._trie.with_prefix(self.fold(prefix))
        at = slice(self._starts[found.start], self._starts[found.stop])
        columns, place = np.unique(self._columns[at], return_inverse=True)
        share = np.zeros(len(columns))
        np.maximum.at(share, place, len(prefix) / self._lengths[at])
        return columns, share

    def within(self, word: str, errors: int) -> list[Candidate]:
        """Return the columns of the words with at most so many errors; of several spellings the nearest."""
        best: dict[int, Candidate] = {}
        for position, n in self._trie.within(self.fold(word), errors).items():
            for column in self._columns[self._starts[position] : self._starts[position + 1]].tolist():
                if column not in best or n < best[column].errors:
                    best[column] = Candidate(column, self.words[position], n)
        return list(best.values())

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
    """All spellings of the words of a fitted vocabulary, and their stems: people type "apples" where it has "appl".

    >>> forms = SurfaceForms(TextFeatures(analyzer="english").fit(["red apples", "an apple", "a pear"]))
    >>> forms.within("aples", errors=1)
    [Candidate(column=0, spelling='apples', errors=1)]
    >>> forms.with_prefix("app")
    (array([0], dtype=int32), array([0.6]))
    >>> forms.beginnings("ppl", errors=1)
    ['appl']
    """

    def __init__(self, features: TextFeatures) -> None:
        self._folds_accents = features.analyzer_.folds_accents
        spelled, others = features.spellings_.most_frequent(), features.spellings_.others()
        self._spelled = {column: spelled.get(word, word) for column, word in enumerate(features.words_)}
        entries: dict[str, list[tuple[int, bool]]] = {}
        for column, word in enumerate(features.words_):
            if " " not in word:
                entries.setdefault(self.fold(self._spelled[column]), []).append((column, False))
                entries.setdefault(word, []).append((column, True))
        for word, form in zip(others, features.analyzer_.normal_forms(others), strict=True):
            if form in features.vocabulary_:
                entries.setdefault(self.fold(word), []).append((features.vocabulary_[form], False))
        self.words = sorted(entries)
        ordered = [entry for word in self.words for entry in entries[word]]
        self._columns = np.array([column for column, _ in ordered], np.int32)
        self._is_stem = np.array([is_stem for _, is_stem in ordered], np.bool_)
        self._starts = np.cumsum([0, *(len(entries[word]) for word in self.words)])
        self._lengths = np.repeat([len(word) for word in self.words], np.diff(self._starts))
        self._trie = WordTrie(self.words)

    def fold(self, word: str) -> str:
        """Return a word without accents if its stem has none."""
        return strip_accents(word) if self._folds_accents else word

    def with_prefix(self, *prefixes: str) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the columns with a spelling that starts with these letters, and the share of letters that they are.

        No prefix is the beginning of another one.
        """
        found = [(len(prefix), self._trie.with_prefix(self.fold(prefix))) for prefix in prefixes]
        ranges = [np.arange(self._starts[words.start], self._starts[words.stop]) for _, words in found]
        at = np.concatenate([np.zeros(0, np.int64), *ranges])
        letters = np.repeat([n for n, _ in found], [len(entries) for entries in ranges])
        kept = ~self._is_stem[at]
        at = at[kept]
        columns, place = np.unique(self._columns[at], return_inverse=True)
        share = np.zeros(len(columns))
        np.maximum.at(share, place, letters[kept] / self._lengths[at])
        return columns, share

    def beginnings(self, prefix: str, errors: int, *, same_first: bool = False) -> list[str]:
        """Return the shortest beginnings of words that differ from these letters by at most so many errors."""
        return self._trie.beginnings(self.fold(prefix), errors, same_first=same_first)

    def within(self, word: str, errors: int, *, stems: bool = False) -> list[Candidate]:
        """Return the columns with a spelling that has at most so many errors; of several spellings the nearest.

        With `stems`, the word is a stem and compared with stems: documents may have a word in the plural only.
        """
        best: dict[int, Candidate] = {}
        for position, n in self._trie.within(word if stems else self.fold(word), errors).items():
            at = slice(self._starts[position], self._starts[position + 1])
            for column in self._columns[at][self._is_stem[at] == stems].tolist():
                if column not in best or n < best[column].errors:
                    best[column] = Candidate(column, self._spelled[column] if stems else self.words[position], n)
        return list(best.values())

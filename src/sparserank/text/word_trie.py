"""Words by their first letters, and words that differ from a word by a typing error: `WordTrie`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tokens import code_points

MAX_LETTERS = 60
"""Longer words are found by their first letters only."""


class WordTrie:
    """A list of words in code-point order; results are positions in it.

    An error is a missing, an additional or a wrong letter, or two neighbours in the wrong order; no letter is changed
    twice. If there are `errors` errors, either the first half of a word has fewer, or the second half has none: a trie
    of the words is searched for the first case, and a trie of the words from their ends for the second.

    Parameters
    ----------
    words : sequence of str
        Distinct words in code-point order.

    Examples
    --------
    >>> words = WordTrie(["apple", "dishwasher", "dishwater", "maple"])
    >>> words.with_prefix("dish")
    range(1, 3)
    >>> words.within("dishwaser", errors=1)
    {1: 1, 2: 1}
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        short = [i for i, word in enumerate(words) if 0 < len(word) <= MAX_LETTERS]
        backward = [words[i][::-1] for i in short]
        order = sorted(range(len(short)), key=backward.__getitem__)
        self._alphabet = np.unique(code_points(backward)[0])
        self._forward = self._trie(np.array(short, np.int32), [words[i] for i in short])
        self._backward = self._trie(self._forward.words[order], [backward[i] for i in order])

    def _trie(self, positions: NDArray[np.int32], words: list[str]) -> _Trie:
        from .._kernels.word_trie import build_trie

        codes, ends = code_points(words)
        letters = np.searchsorted(self._alphabet, codes).astype(np.uint32)
        starts = np.concatenate([[0], ends]).astype(np.int64)
        return _Trie(positions, *build_trie(letters, starts, MAX_LETTERS))

    def with_prefix(self, prefix: str) -> range:
        """Return the positions of the words that start with these letters.

        Parameters
        ----------
        prefix : str
            The first letters.
        """
        first = bisect_left(self._words, prefix)
        if not prefix:
            return range(len(self._words))
        return range(first, bisect_left(self._words, prefix[:-1] + chr(min(ord(prefix[-1]) + 1, 0x10FFFF)), first))

    def within(self, word: str, errors: int) -> dict[int, int]:
        """Return {position: number of errors} of all words with at most so many errors.

        Parameters
        ----------
        word : str
            The word.
        errors : int
            The largest number of errors.
        """
        n, half = len(word), (len(word) + 1) // 2
        if n == 0 or n > MAX_LETTERS:
            return {}
        first = sum(1 << i for i in range(half))
        every = (1 << (n + 1)) - 1
        out = self._search(self._forward, word, [every] * errors + [every & ~first])
        last = sum(1 << i for i in range(n - half + 1))
        return out | self._search(self._backward, word[::-1], [every] + [every & ~last] * errors)

    def beginnings(self, prefix: str, errors: int, *, same_first: bool = False) -> list[str]:
        """Return the shortest beginnings of words that differ from these letters by at most so many errors.

        Parameters
        ----------
        prefix : str
            The first letters.
        errors : int
            The largest number of errors.
        same_first : bool, default=False
            Return only beginnings with the same first letter, which takes less time.

        Examples
        --------
        >>> WordTrie(["apple", "dishwasher", "dishwater", "maple"]).beginnings("dixhwa", errors=1)
        ['dishwa']
        """
        if not 0 < len(prefix) <= MAX_LETTERS:
            return []
        every = (1 << (len(prefix) + 1)) - 1
        first = prefix[0] if same_first else None
        found = self._search(self._forward, prefix, [every] * (errors + 1), beginnings=True, first=first)
        return [self._words[word][:n_letters] for word, n_letters in found.items()]

    def _search(
        self, trie: _Trie, word: str, allowed: list[int], beginnings: bool = False, first: str | None = None
    ) -> dict[int, int]:
        from .._kernels.word_trie import words_within

        masks = np.zeros(len(self._alphabet) + 1, np.uint64)
        codes = code_points([word])[0]
        for i, (letter, code) in enumerate(zip(np.searchsorted(self._alphabet, codes).tolist(), codes, strict=True)):
            if letter < len(self._alphabet) and self._alphabet[letter] == code:
                masks[letter] |= np.uint64(2 << i)
        start, stop = trie.child[:2].tolist()
        if first is not None:
            codes = self._alphabet[trie.letter[start:stop]]
            start, stop = (start + np.searchsorted(codes, ord(first), side) for side in ("left", "right"))
        room, limits = 256, np.array(allowed, np.uint64)
        while True:
            found, numbers = np.empty(room, np.int32), np.empty(room, np.int8)
            n = words_within(*trie[1:], start, stop, masks, len(word), limits, beginnings, found, numbers)
            if n <= room:
                return dict(zip(trie.words[found[:n]].tolist(), numbers[:n].tolist(), strict=True))
            room = n


class _Trie(NamedTuple):
    """The positions of its words, and the nodes as in `_kernels/word_trie.py`."""

    words: NDArray[np.int32]
    letter: NDArray[np.uint32]
    child: NDArray[np.int32]
    word: NDArray[np.int32]

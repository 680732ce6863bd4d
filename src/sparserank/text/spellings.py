"""How readers spell a normal form: the most frequent word among those that share a stem.

Stems such as "appl" are columns; people read "apples". Counting is postponed until a spelling is needed, so that a fit
takes no longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Runs = Sequence[Sequence[tuple[int, int, str]]]


class Spellings:
    """Counts of the words behind every normal form.

    >>> spellings = Spellings()
    >>> spellings.add(["apples", "apple", "pear"], ["appl", "appl", "pear"], np.array([0, 1, 0, 2]))
    >>> spellings.most_frequent()
    {'appl': 'apples'}
    >>> spellings.others()
    ['apple']
    """

    def __init__(self, known: Mapping[str, str] | None = None, others: Iterable[str] = ()) -> None:
        self._known, self._others = dict(known or {}), list(others)
        self._parts: list[tuple[Sequence[str], Sequence[str | None] | Runs, NDArray[np.intp]]] = []

    def add(self, words: Sequence[str], forms: Sequence[str | None] | Runs, tokens: NDArray[np.int32]) -> None:
        """Count tokens, which are numbers of words.

        forms[i] is the normal form of words[i]; if words[i] is a run of several words, start, end and form of each.
        """
        self._parts.append((words, forms, np.bincount(tokens, minlength=len(words))))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return {(normal form, word): its number of tokens}."""
        out: dict[tuple[str, str], int] = {}
        for words, forms, occurrences in self._parts:
            for word, form, count in zip(words, forms, occurrences.tolist(), strict=True):
                pairs = [(form, word)] if isinstance(form, str) else [(one, word[a:b]) for a, b, one in form or ()]
                for pair in pairs:
                    out[pair] = out.get(pair, 0) + count
        return out

    def most_frequent(self) -> dict[str, str]:
        """Return {normal form: word} where the two differ; of equally frequent words the first in code-point order."""
        if not self._parts:
            return self._known
        best: dict[str, tuple[int, str]] = {}
        counts = self.counts()
        for (form, word), count in counts.items():
            known = best.get(form)
            if known is None or (-count, word) < known:
                best[form] = -count, word
        self._others = sorted({*self._others, *(word for form, word in counts if word != best[form][1])})
        self._known |= {form: word for form, (_, word) in best.items() if word != form}
        self._parts = []
        return self._known

    def others(self) -> list[str]:
        """Return the words that are not the most frequent one of their normal form, in code-point order."""
        self.most_frequent()
        return self._others
